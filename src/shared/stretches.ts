/**
 * Since when words stand in a text that was edited. Each stretch of `leastStretch` characters keeps the time at which the text
 * first had it, for as long as each version has it. No words are kept for that. Pure.
 */
export const leastStretch = 16;

/** When the stretches from each place on were first said, in milliseconds since the epoch. */
export type SaidAt = [from: number, at: number][];

/** Words, and when their message first had them. Without a time, it had them as it was created. */
type Said = [words: string, at: number];
export type Was = string | Said;

export const wordIn = (was: Was): string => (typeof was === "string" ? was : was[0]);

/** Whether a key of an object looks like one that a program named. Any other holds words. */
export const isFieldName = (key: string): boolean => /^[A-Za-z][\w-]*$/.test(key) && !/\d{3}/.test(key);

/** As agents are told of it. */
export const toldWas = (was: Was[], createdAt: string): { was: string[]; saidAt?: number[] } => ({
  was: was.map(wordIn),
  ...(was.some(Array.isArray) && {
    saidAt: was.map((each) => (Array.isArray(each) ? each[1] : Date.parse(createdAt))),
  }),
});

/** The same of the text that an edit at `at` makes of another. */
export const saidAfter = (before: { text: string; saidAt: SaidAt }, text: string, at: number): SaidAt => {
  const known = new Map<string, number>();
  for (const [index, [first, saidAt]] of before.saidAt.entries()) {
    const end = Math.min(before.saidAt[index + 1]?.[0] ?? before.text.length, before.text.length - leastStretch + 1);
    for (let from = first; from < end; from += 1) {
      const stretch = before.text.slice(from, from + leastStretch);
      known.set(stretch, Math.min(known.get(stretch) ?? saidAt, saidAt));
    }
  }
  const said: SaidAt = [];
  for (let from = 0; from === 0 || from + leastStretch <= text.length; from += 1) {
    const first = known.get(text.slice(from, from + leastStretch)) ?? at;
    if (said.at(-1)?.[1] !== first) said.push([from, first]);
  }
  return said;
};

/** A text, since when all of it stands there, and after it the parts that stood there before. */
export const saidIn = (text: string, saidAt: SaidAt): Said[] => {
  const newest = saidAt.reduce((last, [, at]) => Math.max(last, at), 0);
  const parts = saidAt.map(([from, at], index): Said => {
    const next = saidAt[index + 1]?.[0] ?? text.length;
    return [text.slice(from, next + leastStretch - 1), at];
  });
  return [[text, newest], ...parts.filter(([, at]) => at < newest)];
};

/** The stretches of a text that another has too, one behind another. */
export const heldBy = (other: string, text: string): string => {
  const said = saidIn(text, saidAfter({ text: other, saidAt: [[0, 0]] }, text, 1));
  return said.flatMap(([words, at]) => (at === 0 ? words : [])).join("\0");
};
