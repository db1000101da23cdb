import { slug } from "../slug.ts";
import { answer, type Doing, type Rule, type Turn } from "../turn.ts";

/** "my birthday" said by Husam is `husam_birthday`; "the wifi password" is `wifi_password`. */
const keyOf = (subject: string, turn: Turn): string =>
  slug(subject.replace(/^\s*(?:the|our|a|an)\s+/i, "").replace(/\bmy\b/gi, turn.event.senderName));

const withoutEnd = (text: string): string => text.trim().replace(/[.!?\s]+$/, "");

function* keep(turn: Turn, key: string, value: string): Doing {
  const result = yield { toolName: "set_memories", input: { memories: [{ key, value }] } };
  if (!result.ok) return yield* answer(turn, "I could not keep that.", `could not remember ${key}`);
  turn.cycle.memories.set(key, value);
  return yield* answer(turn, `${turn.tone.done} I will remember ${key}: ${value}`, `remembered ${key}`);
}

export const remember: Rule = {
  forAgents: true,
  match: (turn) => {
    const match = /^\s*remember(?: that|:| this:?)?\s+(.+)$/is.exec(turn.request);
    const fact = match?.[1] === undefined ? "" : withoutEnd(match[1]);
    if (fact === "" || turn.request.trim().endsWith("?")) return undefined;
    const [, subject, value] = /^(.{1,80}?)\s+(?:is|are|=)\s+(.+)$/is.exec(fact) ?? [];
    if (subject !== undefined && value !== undefined && keyOf(subject, turn) !== "") {
      return keep(turn, keyOf(subject, turn), value.trim());
    }
    return keep(turn, keyOf(fact.split(/\s+/).slice(0, 5).join(" "), turn) || "note", fact);
  },
};

function* drop(turn: Turn, key: string): Doing {
  const result = yield { toolName: "delete_memories", input: { keys: [key] } };
  if (!result.ok) return yield* answer(turn, "I could not forget that.", `could not forget ${key}`);
  turn.cycle.memories.delete(key);
  return yield* answer(turn, `${turn.tone.done} I have forgotten ${key}.`, `forgot ${key}`);
}

export const forget: Rule = {
  forAgents: true,
  match: (turn) => {
    const match = /^\s*forget(?: about)?\s+(.+)$/is.exec(turn.request);
    const key = match?.[1] === undefined ? "" : keyOf(withoutEnd(match[1]), turn);
    if (key === "") return undefined;
    return turn.cycle.memories.has(key)
      ? drop(turn, key)
      : answer(turn, `I remember nothing under ${key}.`, "nothing to forget");
  },
};

/** Memories whose key or value holds every word of what is asked for. */
const found = (turn: Turn, subject: string): [string, string][] => {
  const words = keyOf(subject, turn).split("_").filter(Boolean);
  return [...turn.cycle.memories].filter(([key, value]) => {
    const known = new Set(`${slug(key)}_${slug(value)}`.split("_"));
    return words.length > 0 && words.every((word) => known.has(word));
  });
};

const listed = (memories: [string, string][]): string => memories.map(([key, value]) => `${key}: ${value}`).join("; ");

const asksForAll =
  /^\s*(?:what (?:do|did|can) you (?:remember|recall|know)|recall(?: everything| all)?|list (?:your )?memories)\s*[.!?]*$/i;
const asksFor =
  /^\s*(?:what do you (?:remember|recall|know) (?:about|of)|do you (?:remember|recall|know)|recall|remind me of|remind me what)\s+(.+?)(?:\s+is)?\s*[.!?]*$/is;
const asksWhat = /^\s*(?:what(?:'s| is| are| was)|when(?:'s| is)|where(?:'s| is))\s+(.+?)\s*[.!?]*$/is;

export const recall: Rule = {
  forAgents: true,
  match: (turn) => {
    if (asksForAll.test(turn.request)) {
      const all = [...turn.cycle.memories];
      const text = all.length > 0 ? `I remember ${listed(all)}` : "I remember nothing yet.";
      return answer(turn, turn.tone.dress(text), "recalled");
    }
    const asked = asksFor.exec(turn.request)?.[1];
    if (asked !== undefined) {
      const memories = found(turn, asked);
      const text = memories.length > 0 ? `I remember ${listed(memories)}` : `I remember nothing about ${asked.trim()}.`;
      return answer(turn, turn.tone.dress(text), "recalled");
    }
    const what = asksWhat.exec(turn.request)?.[1];
    const memories = what === undefined ? [] : found(turn, what);
    return memories.length > 0
      ? answer(turn, turn.tone.dress(`I remember ${listed(memories)}`), "recalled")
      : undefined;
  },
};
