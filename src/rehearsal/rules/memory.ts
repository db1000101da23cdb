import { callAndTell, rule, type Said, type Turn } from "../turn.ts";
import { slug, withoutEnd } from "../words.ts";

/** "my birthday" said by Husam is `husam_birthday`; "the wifi password" is `wifi_password`. */
const keyOf = (subject: string, turn: Turn): string =>
  slug(subject.replace(/^\s*(?:the|our|a|an)\s+/i, "").replace(/\bmy\b/gi, turn.event.senderName));

export const remember = rule(/^\s*remember(?: that|:| this:?)?\s+(.+)$/is, (turn, text = "") => {
  const fact = withoutEnd(text);
  if (fact === "" || turn.request.trim().endsWith("?")) return undefined;
  const [, subject = "", said = ""] = /^(.{1,80}?)\s+(?:is|are|=)\s+(.+)$/is.exec(fact) ?? [];
  const firstWords = fact.split(/\s+/).slice(0, 5).join(" ");
  const named = keyOf(subject, turn);
  const [key, value] = named === "" ? [keyOf(firstWords, turn) || "note", fact] : [named, said.trim()];
  return callAndTell(
    turn,
    "set_memories",
    { memories: [{ key, value }] },
    [`I will remember ${key}: ${value}`, `remembered ${key}`],
    () => ["I could not keep that.", `could not remember ${key}`],
    () => turn.cycle.memories.set(key, value),
  );
});

export const forget = rule(/^\s*forget(?: about)?\s+(.+)$/is, (turn, subject = "") => {
  const key = keyOf(withoutEnd(subject), turn);
  if (key === "") return undefined;
  if (!turn.cycle.memories.has(key)) return [`I remember nothing under ${key}.`, "nothing to forget"];
  return callAndTell(
    turn,
    "delete_memories",
    { keys: [key] },
    [`I have forgotten ${key}.`, `forgot ${key}`],
    () => ["I could not forget that.", `could not forget ${key}`],
    () => turn.cycle.memories.delete(key),
  );
});

type Found = [key: string, value: string][];

/** Memories whose key or value holds every word of what is asked for. */
const found = (turn: Turn, subject: string): Found => {
  const words = keyOf(subject, turn).split("_").filter(Boolean);
  return [...turn.cycle.memories].filter(([key, value]) => {
    const known = new Set(`${slug(key)}_${slug(value)}`.split("_"));
    return words.length > 0 && words.every((word) => known.has(word));
  });
};

const tell = ({ tone }: Turn, memories: Found, nothing: string): Said => {
  const listed = memories.map(([key, value]) => `${key}: ${value}`).join("; ");
  return [tone.dress(`I remember ${listed || nothing}`), "recalled"];
};

export const recallAll = rule(
  /^\s*(?:what (?:do|did|can) you (?:remember|recall|know)|recall(?: everything| all)?|list (?:your )?memories)\s*[.!?]*$/i,
  (turn) => tell(turn, [...turn.cycle.memories], "nothing yet."),
);

export const recall = rule(
  /^\s*(?:what do you (?:remember|recall|know) (?:about|of)|do you (?:remember|recall|know)|recall|remind me of|remind me what)\s+(.+?)(?:\s+is)?\s*[.!?]*$/is,
  (turn, subject = "") => tell(turn, found(turn, subject), `nothing about ${subject.trim()}.`),
);

export const recallWhat = rule(
  /^\s*(?:what(?:'s| is| are| was)|when(?:'s| is)|where(?:'s| is))\s+(.+?)\s*[.!?]*$/is,
  (turn, subject = "") => {
    const memories = found(turn, subject);
    return memories.length > 0 ? tell(turn, memories, "") : undefined;
  },
);
