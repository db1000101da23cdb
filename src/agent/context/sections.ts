import type { ModelMessage, ToolSet } from "ai";
import type { Dropped } from "../records.ts";
import { toldMessage } from "./grammar.ts";
import { contentText, estimateContent, estimateText } from "./tokens.ts";

/** A part of an input, by name. Tokens are estimates before correction. */
export type Section = { name: string; tokens: number; text: string };

/** A section, and what was left out of it. */
export type Cut = { section: Section; dropped: Dropped[] };

/** A model's input, and its sections. */
export type Composed = {
  instructions: string;
  messages: ModelMessage[];
  tools: ToolSet;
  sections: Section[];
  /** Corrected by the model's earlier bills. */
  tokens: number;
  dropped: Dropped[];
  /** For a timeline: how many messages of each space lie before the shown ones. */
  unshown: { spaceId: string; messages: number }[];
  /** Index into `past` of the first cycle that is in; 0 in a timeline, which has none. */
  firstCycle: number;
};

/** The estimated tokens of sections together. */
export const tokensIn = (sections: Section[]): number => sections.reduce((sum, { tokens }) => sum + tokens, 0);

/** A line with its estimated tokens, the line's end included. */
export const lineTokens = (line: string): number => estimateText(line) + 1;

export const linesTokens = (lines: string[]): number => lines.reduce((sum, line) => sum + lineTokens(line), 0);

export const sectionOf = (name: string, lines: string[]): Section => ({
  name,
  text: lines.join("\n"),
  tokens: linesTokens(lines),
});

/** Blocks as a section. */
export const sectionOfBlocks = (texts: string[]): Section => {
  const text = texts.join("\n");
  return { name: "blocks", tokens: estimateText(text), text };
};

/**
 * The system message as sections. Blocks and rules in it are sections of their own, and their tokens are subtracted from
 * those of `instructions`, whose text is the whole.
 */
export const systemSections = (instructions: string, parts: Section[]): Section[] => {
  const tokens = Math.max(0, estimateText(instructions) - tokensIn(parts));
  return [{ name: "instructions", tokens, text: instructions }, ...parts];
};

/** Model messages as a section shows them. */
export const told = (name: string, messages: ModelMessage[]): Section => {
  const texts = messages.map(contentText);
  const lines = messages.map(({ role }, index) => toldMessage.write({ role, text: texts[index] ?? "" }));
  return { name, tokens: texts.reduce((sum, text) => sum + estimateContent(text), 0), text: lines.join("\n") };
};

/** Tokens that a note about left out items may need. */
const noteTokens = 120;

/**
 * The items that fit `room` tokens, in their own order. They are taken from the lowest `rank` on, until one does not fit.
 * If not all fit, room for a note about that is kept free.
 */
export const keepFitting = <Item>(
  items: Item[],
  room: number,
  tokensOf: (item: Item) => number,
  rank: (item: Item, index: number) => number,
): { kept: Item[]; left: Item[]; tokens: number } => {
  const sized = items.map((item, index) => ({ index, tokens: tokensOf(item), rank: rank(item, index) }));
  const all = sized.reduce((sum, { tokens }) => sum + tokens, 0);
  if (all <= room) return { kept: items, left: [], tokens: all };
  const fits = new Set<number>();
  let tokens = 0;
  for (const each of sized.toSorted((one, other) => one.rank - other.rank)) {
    if (tokens + each.tokens > room - noteTokens) break;
    tokens += each.tokens;
    fits.add(each.index);
  }
  return {
    kept: items.filter((_, index) => fits.has(index)),
    left: items.filter((_, index) => !fits.has(index)),
    tokens,
  };
};
