import { answer, type Doing, enter, ruleForPeople, spaceOf, type Turn } from "../turn.ts";
import { escaped, longestNameFirst } from "../words.ts";

/** The members of the space whose names begin a text ("Ahmad and Sara", "@A @B"), and the words after them. */
const namedFirst = (turn: Turn, text: string): { names: string[]; question: string } => {
  const members = spaceOf(turn)?.members.toSorted(longestNameFirst) ?? [];
  const others = members.map(({ name }) => name).filter((name) => name !== turn.view.name);
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

/** Asks others and waits for their answers. Two agents that ask each other to ask would wait in a ring. */
export const ask = ruleForPeople(/^\s*ask\s+(.+)$/is, (turn, text = "") => {
  if (!turn.cycle.canWait) return undefined;
  const { names, question } = namedFirst(turn, text);
  return names.length > 0 && question !== ""
    ? askAll(turn, names, question)
    : ["I know nobody here of that name, or no question followed.", "found nobody to ask"];
});

/** The answer of a run that waited: who answered what, and who did not. */
export const report = (turn: Turn): Doing => {
  const { resume, replies } = turn.view;
  const said = (resume?.replied ?? []).map((name) => {
    const words = replies.findLast((reply) => reply.name === name)?.text;
    return words === undefined ? `${name} answered, but I cannot see it any more.` : `${name} said: ${words}`;
  });
  const late = [...(resume?.timedOut ?? []), ...(resume?.sealed ?? [])].map(
    (name) => `${name} did not answer in time.`,
  );
  const gone = (resume?.gone ?? []).map((name) => `${name} left before answering.`);
  const apart = (resume?.apart ?? []).map((name) => `I left the space before ${name} answered.`);
  return answer(turn, [...said, ...late, ...gone, ...apart].join("\n") || "Nobody answered.", "reported the answers");
};
