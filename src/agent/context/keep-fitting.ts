import { estimateText } from "./tokens.ts";

/** A line with its estimated tokens, the line's end included. */
export const lineTokens = (line: string): number => estimateText(line) + 1;

export const linesTokens = (lines: string[]): number => lines.reduce((sum, line) => sum + lineTokens(line), 0);

/** Tokens that a note about left out items may need. */
const noteTokens = 120;

export type Fitting<Item> = { kept: Item[]; left: Item[]; tokens: number };

/**
 * The items that fit `room` tokens, in their own order. They are taken from the lowest `rank` on, until one does not fit.
 * If not all fit, room for a note about that is kept free.
 */
export const keepFitting = <Item>(
  items: Item[],
  room: number,
  tokensOf: (item: Item) => number,
  rank: (item: Item, index: number) => number | string = (_, index) => index,
): Fitting<Item> => {
  const sized = items.map((item, index) => ({ item, index, tokens: tokensOf(item), rank: rank(item, index) }));
  const all = sized.reduce((sum, { tokens }) => sum + tokens, 0);
  if (all <= room) return { kept: items, left: [], tokens: all };
  const ranked = sized.toSorted((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.index - b.index));
  const kept = new Set<number>();
  let tokens = 0;
  for (const each of ranked) {
    if (tokens + each.tokens > room - noteTokens) break;
    tokens += each.tokens;
    kept.add(each.index);
  }
  return {
    kept: items.filter((_, index) => kept.has(index)),
    left: items.filter((_, index) => !kept.has(index)),
    tokens,
  };
};
