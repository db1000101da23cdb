import type { ModelMessage } from "ai";

/** A part of an input, by name. Tokens are estimates before correction. */
export type Section = { name: string; tokens: number; text: string };

/** What was left out of an input, and by which rule. */
export type Dropped = { name: string; reason: string };

/** What a model is given, and what it is made of. */
export type Composed = {
  instructions: string;
  messages: ModelMessage[];
  sections: Section[];
  /** Corrected by what the model's provider billed before. */
  tokens: number;
  dropped: Dropped[];
  /** Index into `past` of the first cycle that is in; 0 in a timeline, which has none. */
  firstCycle: number;
};

/** How one continuity makes a model's input. `correction` is billed over estimated tokens. */
export type Strategy<Snapshot> = (snapshot: Snapshot, correction: number) => Composed;

const textOf = ({ role, content }: ModelMessage): string =>
  `${role}: ${typeof content === "string" ? content : JSON.stringify(content)}`;

/** Model messages as a section shows them. */
export const messagesText = (messages: ModelMessage[]): string => messages.map(textOf).join("\n");
