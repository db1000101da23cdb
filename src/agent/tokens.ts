import type { ModelMessage } from "ai";
import { estimateTokenCount } from "tokenx";
import { textBytes } from "../protocol/text.ts";
import { oncePerObject } from "../shared/once-per-object.ts";
import { excerpt, visible } from "../shared/quote.ts";
import { maxToolOutputBytes, maxToolOutputTokens } from "./bounds.ts";
import type { Account } from "./records.ts";

/**
 * Estimated tokens, before the correction by what the model's provider billed. `tokenx` looks at words and
 * scripts; we count every message's own overhead too.
 */
const perMessage = 4;

/** Estimates by text: what a run reads was read by the one before, and counting is most of what composing costs. */
const known = new Map<string, number>();
const maxKnownCharacters = 2_000_000;
let knownCharacters = 0;

export const estimateText = (text: string): number => {
  if (text === "") return 0;
  const before = known.get(text);
  if (before !== undefined) return before;
  // As models read it: escapes are longer than what they stand for.
  const tokens = estimateTokenCount(visible(text));
  if (text.length > maxKnownCharacters) return tokens;
  if (knownCharacters + text.length > maxKnownCharacters) {
    known.clear();
    knownCharacters = 0;
  }
  known.set(text, tokens);
  knownCharacters += text.length;
  return tokens;
};

/** How many characters a message has as JSON. */
export const charactersOf = oncePerObject((message: ModelMessage): number => JSON.stringify(message).length);

/** The first items that fit `room` tokens together. */
export const firstFitting = <Item>(items: Item[], room: number, tokensOf: (item: Item) => number): Item[] => {
  let left = room;
  const over = items.findIndex((item) => {
    left -= tokensOf(item);
    return left < 0;
  });
  return over === -1 ? items : items.slice(0, over);
};

/** The beginning of a text: all of it, or as much as surely fits. */
export const cutTo = (text: string, maxTokens: number, tokensOf: (text: string) => number = estimateText): string => {
  let cut = text;
  for (let tokens = tokensOf(cut); cut.length > 1 && tokens > maxTokens; tokens = tokensOf(cut)) {
    cut = excerpt(cut, Math.floor(([...cut].length - 1) * Math.min(0.95, maxTokens / tokens)));
  }
  return cut;
};

/** The beginning of a text that a next page goes on from: without an ellipsis, and never empty. */
export const pageOf = (text: string, maxTokens: number, tokensOf: (text: string) => number): string => {
  const cut = cutTo(text, maxTokens, tokensOf);
  return cut === text ? text : cut.slice(0, -1) || excerpt(text, 1).slice(0, -1);
};

/** The size of a value in a tool's result: estimated tokens, or what its bytes count where they are no words. */
export const sizeOf = (value: unknown): number => {
  const text = JSON.stringify(value) ?? "";
  return Math.max(estimateText(text), (textBytes(text) * maxToolOutputTokens) / maxToolOutputBytes);
};

export const contentText = ({ content }: ModelMessage): string =>
  typeof content === "string" ? content : JSON.stringify(content);

export const estimateContent = (text: string): number => perMessage + estimateText(text);

/** A message never changes, so each is counted once. */
const estimateMessage = oncePerObject((message: ModelMessage) => estimateContent(contentText(message)));

export const estimateMessages = (messages: ModelMessage[]): number =>
  messages.reduce((sum, message) => sum + estimateMessage(message), 0);

const weight = 0.2;
const lowest = 0.5;
const highest = 3;

/**
 * The moving average of billed over estimated input tokens. Missing or senseless usage changes nothing. A single step
 * moves it by a fifth, and it stays between half and three.
 */
export const correct = (ratio: number, estimated: number, billed: number): number => {
  if (!Number.isFinite(billed) || billed <= 0 || estimated <= 0) return ratio;
  const observed = Math.min(highest, Math.max(lowest, billed / estimated));
  return ratio * (1 - weight) + observed * weight;
};

/** All tokens that these accounts spent and reserved. */
export const total = (...accounts: (Account | undefined)[]): number =>
  accounts
    .flatMap((account) => [account?.spent ?? 0, ...Object.values(account?.reserved ?? {})])
    .reduce((sum, tokens) => sum + tokens, 0);

const settled = <Of extends Account>(account: Of, step: string, billed: number): Of => {
  const { [step]: _, ...reserved } = account.reserved;
  return { ...account, spent: account.spent + billed, reserved };
};

/** A call of the step that was cut may have been billed: it counts whole. */
export const reservedIn = (account: Account, step: string, tokens: number): Account => {
  const { spent, reserved } = settled(account, step, account.reserved[step] ?? 0);
  return { spent, reserved: { ...reserved, [step]: tokens } };
};

type Accounts = Record<string, Account>;

/** In the day and in each account within it that the step is in. */
export const settledIn = <Day extends Account & { within: Accounts }>(day: Day, step: string, billed: number): Day => {
  const within = { ...day.within };
  for (const [of, account] of Object.entries(within)) {
    if (step in account.reserved) within[of] = settled(account, step, billed);
  }
  return { ...settled(day, step, billed), within };
};

/** Accounts with steps under way are busy, the others idle. */
export const byBusiness = (accounts: Accounts): Record<"busy" | "idle", [of: string, Account][]> => {
  const isBusy = ([, { reserved }]: [string, Account]): boolean => Object.keys(reserved).length > 0;
  const all = Object.entries(accounts);
  return { busy: all.filter(isBusy), idle: all.filter((account) => !isBusy(account)) };
};

/** The account of vectors and of summaries of spaces, which no person's run asks for. It has the share of one person (C11). */
export const unasked = "unasked";
