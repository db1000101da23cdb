import { quote } from "../../shared/quote.ts";

/** The text as it stands in a JSON string. */
export const inner = (text: string): string => JSON.stringify(text).slice(1, -1);

/** A beginning that each quoted word has. */
const beginning = 3;
const [quotationMark, backslash] = [34, 92];

/**
 * Finds quoted words in a text. They are looked up by their beginnings, so that the time does not grow with their
 * number. A call may say ten thousand, and others than its agent wait too (C13). `words`: since when they go.
 */
const createFinder = (words: ReadonlyMap<string, number>) => {
  const lengths = new Map<string, number[]>();
  for (const word of words.keys()) {
    const known = lengths.get(word.slice(0, beginning)) ?? [];
    if (!known.includes(word.length)) lengths.set(word.slice(0, beginning), [...known, word.length]);
  }
  /** The next one from a place on, in a text that was written at a time. */
  return (text: string, from: number, writtenAt: number): { at: number; word: string } | undefined => {
    for (let at = from; at + beginning <= text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code !== quotationMark && code !== backslash) continue;
      for (const length of lengths.get(text.slice(at, at + beginning)) ?? []) {
        const word = text.slice(at, at + length);
        const since = words.get(word);
        if (since !== undefined && since <= writtenAt) return { at, word };
      }
    }
    return undefined;
  };
};

/** Takes out short words, each with when it was said, where they stand whole in quotes, plain or escaped once. Pure. */
export const createQuotedWords = (words: ReadonlyMap<string, number>, mark: string) => {
  const once = [...words].map(([word, since]): [string, number] => [quote(word), since]);
  const twice = once.map(([word, since]): [string, number] => [inner(word), since]);
  const next = createFinder(new Map([...once, ...twice]));
  const inJson = [...words.keys()].map((word) => JSON.stringify(word));
  const held = [...inJson, ...[...once, ...twice].map(([word]) => word), ...twice.map(([word]) => inner(word))];
  const nextHeld = createFinder(new Map(held.map((word) => [word, 0])));
  return {
    isIn: (text: string, writtenAt: number): boolean => next(text, 0, writtenAt) !== undefined,

    /** Whether a column may hold one: the text, or the JSON of a value. */
    mayBeIn: (column: string): boolean => nextHeld(column, 0, Number.POSITIVE_INFINITY) !== undefined,

    without(text: string, writtenAt: number): string {
      let [made, at] = ["", 0];
      for (let found = next(text, at, writtenAt); found; found = next(text, at, writtenAt)) {
        const { at: from, word } = found;
        // Its last quotation mark may be the first of another.
        const end = word.startsWith("\\") ? 2 : 1;
        made += text.slice(at, from) + (end === 2 ? inner(quote(mark)) : quote(mark)).slice(0, -end);
        at = from + word.length - end;
      }
      return made + text.slice(at);
    },
  };
};
