import { answer, type Doing, enter, type Rule, type Turn } from "../turn.ts";

/** Asking others and waiting for what they say, where messaging is threaded. */
const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** The members of the space whom a text begins with ("Ahmad and Sara", "@A @B"), and what follows. */
const namedFirst = (turn: Turn, text: string): { names: string[]; question: string } => {
  const members = turn.view.spaces.find(({ id }) => id === turn.event.spaceId)?.members ?? [];
  const others = members
    .map(({ name }) => name)
    .filter((name) => name !== turn.view.name)
    .toSorted((one, other) => other.length - one.length);
  const names: string[] = [];
  let rest = text;
  for (;;) {
    const words = names.length === 0 ? rest : rest.replace(/^(?:[\s,&]+(?:and\s+)?)/i, "");
    const next = others.find((name) => new RegExp(`^@?${escaped(name)}(?![\\p{L}\\p{N}_])`, "iu").test(words));
    if (next === undefined) break;
    if (!names.includes(next)) names.push(next);
    rest = words.slice(next.length + (words.startsWith("@") ? 1 : 0));
  }
  return { names, question: rest.replace(/^[\s,:]+/, "").replace(/^to\s+/i, "") };
};

function* askAll(turn: Turn, names: string[], question: string): Doing {
  if (yield* enter(turn.cycle, turn.event.spaceId)) {
    const text = `${names.map((name) => `@${name}`).join(" ")} ${question}`;
    const result = yield { toolName: "send_message", input: { text, wait: true } };
    if (result.ok) return `asked ${names.join(", ")}`;
  }
  return yield* answer(turn, `I could not ask ${names.join(", ")}.`, "could not ask");
}

export const ask: Rule = {
  // Two agents that ask each other to ask would wait in a ring.
  forAgents: false,
  match: (turn) => {
    const text = turn.cycle.canWait ? /^\s*ask\s+(.+)$/is.exec(turn.request)?.[1] : undefined;
    if (text === undefined) return undefined;
    const { names, question } = namedFirst(turn, text);
    return names.length > 0 && question !== ""
      ? askAll(turn, names, question)
      : answer(turn, "I know nobody here of that name, or no question followed.", "found nobody to ask");
  },
};

/** What a run that waited has to say: who answered what, and who did not. */
export const report = (turn: Turn): Doing => {
  const { resume, replies } = turn.view;
  const said = (resume?.replied ?? []).map((name) => {
    const words = replies.findLast((reply) => reply.name === name)?.text;
    return words === undefined ? `${name} answered, but I cannot see it any more.` : `${name} said: ${words}`;
  });
  const late = (resume?.timedOut ?? []).map((name) => `${name} did not answer in time.`);
  const gone = (resume?.gone ?? []).map((name) => `${name} left before answering.`);
  return answer(turn, [...said, ...late, ...gone].join("\n") || "Nobody answered.", "reported the answers");
};
