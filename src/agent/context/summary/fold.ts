import { excerpt } from "../quote.ts";
import { estimateText } from "../tokens.ts";

/** A cycle or a message that is folded into a summary. `at` is its place in their order. */
export type Foldable = { at: number; text: string };

export type FoldingLimits = {
  /** How many at a time. */
  chunkSize: number;
  /** The estimated tokens that they may fill together. */
  maxTokens: number;
};

const cutTo = (text: string, maxTokens: number): string => {
  let cut = text;
  while (cut.length > 1 && estimateText(cut) > maxTokens) cut = excerpt(cut, Math.floor(([...cut].length - 1) / 2));
  return cut;
};

/** The oldest items that fit a chunk: one at least, cut to fit if it is too long. Empty if there are none. */
export const nextChunk = <Item extends Foldable>(items: Item[], { chunkSize, maxTokens }: FoldingLimits): Item[] => {
  const [first] = items;
  if (!first) return [];
  const chunk = [{ ...first, text: cutTo(first.text, maxTokens) }];
  let room = maxTokens - estimateText(chunk[0]?.text ?? "");
  for (const item of items.slice(1, chunkSize)) {
    room -= estimateText(item.text);
    if (room < 0) break;
    chunk.push(item);
  }
  return chunk;
};

/** The share of the room for the beginning of a summary that is too long. Its end, which is newer, gets the rest. */
const headShare = 1 / 3;

const fittingLines = (lines: string[], maxTokens: number): string[] => {
  let room = maxTokens;
  const over = lines.findIndex((line) => {
    room -= estimateText(`${line}\n`);
    return room < 0;
  });
  return over === -1 ? lines : lines.slice(0, over);
};

/** A summary cut to `maxTokens`: its beginning, its end, and how many lines are left out between. */
export const fittedSummary = (summary: string, maxTokens: number): string => {
  const text = summary.trim();
  if (estimateText(text) <= maxTokens) return text;
  const lines = text.split("\n");
  const head = fittingLines(lines, maxTokens * headShare);
  const tail = fittingLines(lines.slice(head.length).reverse(), maxTokens * (1 - headShare)).reverse();
  const left = lines.length - head.length - tail.length;
  if (head.length + tail.length === 0) return cutTo(text, maxTokens);
  return [...head, `[... ${left} lines omitted ...]`, ...tail].join("\n");
};
