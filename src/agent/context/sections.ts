import type { ModelMessage, ToolSet } from "ai";
import type { Dropped } from "../../protocol/exported-history.ts";
import { charactersOf, contentText, estimateMessages, estimateText, firstFitting } from "../tokens.ts";
import { toldMessage } from "./grammar.ts";

/** A part of an input, by name. Tokens are estimates before correction. */
export type Section = { name: string; tokens: number; text: string };

export type Cut = { section: Section; dropped: Dropped[] };

/** The messages of a space that an input left out. `messages`: by the config alone. `between`: those that no summary has. */
export type Unshown = { spaceId: string; total: number; messages: number; between: number };

/** A model's input, and its sections. */
export type Composed = {
  instructions: string;
  messages: ModelMessage[];
  tools: ToolSet;
  sections: Section[];
  /** Corrected by the model's earlier bills. */
  tokens: number;
  dropped: Dropped[];
  /** For a timeline: what it does not show of each space. */
  unshown: Unshown[];
  /** Index into `past` of the first cycle that is in; 0 in a timeline, which has none. */
  firstCycle: number;
};

export const tokensIn = (sections: Section[]): number => sections.reduce((sum, { tokens }) => sum + tokens, 0);

/** A line with its estimated tokens, the line's end included. */
export const lineTokens = (line: string): number => estimateText(line) + 1;

export const linesTokens = (lines: string[]): number => lines.reduce((sum, line) => sum + lineTokens(line), 0);

export const sectionOf = (name: string, lines: string[]): Section => ({
  name,
  text: lines.join("\n"),
  tokens: linesTokens(lines),
});

export const textSection = (name: string, text: string): Section => ({ name, tokens: estimateText(text), text });

/**
 * The system message as sections. Blocks and rules in it are sections of their own, and their tokens are subtracted from
 * those of `instructions`, whose text is the whole.
 */
export const systemSections = (instructions: string, parts: Section[]): Section[] => {
  const tokens = Math.max(0, estimateText(instructions) - tokensIn(parts));
  return [{ name: "instructions", tokens, text: instructions }, ...parts];
};

/** Model messages as a section shows them. Its text is written when it is read: a run reads the tokens alone. */
export const told = (name: string, messages: ModelMessage[]): Section => ({
  name,
  tokens: estimateMessages(messages),
  get text() {
    return messages.map((each) => toldMessage.write({ role: each.role, text: contentText(each) })).join("\n");
  },
});

/** Tokens that a note about left out items may need. */
const noteTokens = 120;

/**
 * The indexes of the items that fit `room` tokens. They are taken from the lowest rank on, until one does not fit; without
 * `ranks` from the last one on. If not all fit, room for a note about that is kept free.
 */
export const keepFitting = (
  tokens: number[],
  room: number,
  ranks = tokens.map((_, index) => -index),
): ReadonlySet<number> => {
  const indexes = [...tokens.keys()];
  if (tokens.reduce((sum, each) => sum + each, 0) <= room) return new Set(indexes);
  const byRank = indexes.toSorted((one, other) => (ranks[one] ?? 0) - (ranks[other] ?? 0));
  return new Set(firstFitting(byRank, room - noteTokens, (index) => tokens[index] ?? 0));
};

type List = {
  name: string;
  heading: string;
  lines: string[];
  ranks?: number[];
  /** Stands in the place of no lines. Without it, a list of none is an empty section. */
  empty?: string;
  /** Tells in the list that some are left out; by their indexes. */
  note?: (left: number[]) => string;
  /** Stands below the list in any case. The note is then above it. */
  end?: string;
  reason: (left: number) => string;
};

/** The section of a list whose lines may be left out, by `ranks` as for `keepFitting`. `reason` says why they are. */
export const listSection = (room: number, { name, heading, lines, ranks, empty, note, end, reason }: List): Cut => {
  const around = end === undefined ? [heading] : [heading, end];
  const kept = keepFitting(lines.map(lineTokens), room - linesTokens(around), ranks);
  const left = [...lines.keys()].filter((index) => !kept.has(index));
  const shown = lines.length === 0 ? [empty ?? ""] : lines.filter((_, index) => kept.has(index));
  const notes = left.length === 0 || !note ? [] : [note(left)];
  const whole = end === undefined ? [heading, ...shown, ...notes] : [heading, ...notes, ...shown, end];
  return {
    section: sectionOf(name, lines.length === 0 && empty === undefined ? [] : whole),
    dropped: left.length === 0 ? [] : [{ name, reason: reason(left.length) }],
  };
};

type Input = Pick<Composed, "instructions" | "messages">;

const isSame = (one: ModelMessage | undefined, other: ModelMessage | undefined): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

/**
 * The share of an earlier input's characters that a later one repeats as its prefix; 1 is all of it. A provider with a
 * prefix cache would not bill it again. Messages that both have are the same objects, and their text is not written anew.
 */
export const prefixReuse = (earlier: Input, later: Input): number => {
  const [before, after] = [earlier.messages, later.messages];
  let same = 0;
  if (earlier.instructions === later.instructions) {
    while (same < before.length && isSame(before[same], after[same])) same += 1;
  }
  const repeated = before.slice(0, same).reduce((sum, message) => sum + charactersOf(message), 0);
  const restOf = ({ instructions, messages }: Input): string =>
    [instructions, ...messages.slice(same).map((message) => JSON.stringify(message))].join("");
  const [rest, laterRest] = [restOf(earlier), restOf(later)];
  let shared = 0;
  while (shared < rest.length && rest.charCodeAt(shared) === laterRest.charCodeAt(shared)) shared += 1;
  const all = repeated + rest.length;
  return all === 0 ? 1 : (repeated + shared) / all;
};
