import type { ModelMessage, ToolSet } from "ai";
import type { Dropped } from "../records.ts";
import { toldMessage } from "./grammar.ts";
import { contentText, estimateContent, estimateText } from "./tokens.ts";

/** A part of an input, by name. Tokens are estimates before correction. */
export type Section = { name: string; tokens: number; text: string };

/** Blocks of memory as a section; they stand where the continuity has them. */
export const sectionOfBlocks = (texts: string[]): Section => {
  const text = texts.join("\n");
  return { name: "blocks", tokens: estimateText(text), text };
};

/**
 * The system message as sections: blocks and rules that stand in it are sections of their own, with their tokens taken
 * from the whole's, whose text is all of it.
 */
export const systemSections = (instructions: string, parts: Section[]): Section[] => {
  const within = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const tokens = Math.max(0, estimateText(instructions) - within);
  return [{ name: "instructions", tokens, text: instructions }, ...parts];
};

/** A section with what its own rule left out. */
export type Cut = { section: Section; dropped: Dropped[] };

/** What a model is given, and what it is made of. */
export type Composed = {
  instructions: string;
  messages: ModelMessage[];
  tools: ToolSet;
  sections: Section[];
  /** Corrected by what the model's provider billed before. */
  tokens: number;
  dropped: Dropped[];
  /** Of a timeline's histories, how many messages of each space lie before what is shown. */
  unshown: { spaceId: string; messages: number }[];
  /** Index into `past` of the first cycle that is in; 0 in a timeline, which has none. */
  firstCycle: number;
};

/** How one continuity makes a model's input. */
export type Strategy<Snapshot> = (snapshot: Snapshot) => Composed;

/** Model messages as a section shows them. */
export type Told = { lines: string[]; tokens: number };

export const told = (messages: ModelMessage[]): Told => {
  let tokens = 0;
  const lines = messages.map((message) => {
    const text = contentText(message);
    tokens += estimateContent(text);
    return toldMessage.write({ role: message.role, text });
  });
  return { lines, tokens };
};

export const toldSection = (name: string, parts: Told[]): Section => ({
  name,
  tokens: parts.reduce((sum, { tokens }) => sum + tokens, 0),
  text: parts.flatMap(({ lines }) => lines).join("\n"),
});
