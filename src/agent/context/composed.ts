import type { ModelMessage, ToolSet } from "ai";
import type { Dropped } from "../records.ts";
import { toldMessage } from "./grammar.ts";
import { contentText, estimateContent, estimateText } from "./tokens.ts";

/** A part of an input, by name. Tokens are estimates before correction. */
export type Section = { name: string; tokens: number; text: string };

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
  const within = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const tokens = Math.max(0, estimateText(instructions) - within);
  return [{ name: "instructions", tokens, text: instructions }, ...parts];
};

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

/** Makes a model's input for one continuity. */
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
