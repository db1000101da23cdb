import type { Dropped } from "../../records.ts";
import type { Section } from "../composed.ts";
import { keepFitting, linesTokens, lineTokens } from "../keep-fitting.ts";
import { turnOf } from "./as-messages.ts";
import { entryLines, headingLines, type Marks, type Shown } from "./history.ts";
import type { History, HistoryEntry, TimelineSnapshot } from "./snapshot.ts";

/** The shown part of one history, its section, and what was left out by which rule. */
export type HistorySection = { shown: Shown; section: Section; dropped: Dropped[] };

/** The tokens of a model message beside its text. */
const turnTokens = 4;

/** The newest entries with at most `messages` messages among them. */
const newest = (entries: HistoryEntry[], messages: number): HistoryEntry[] => {
  let count = 0;
  const from = entries.findLastIndex((entry) => {
    if (entry.kind === "message") count += 1;
    return count > messages;
  });
  return entries.slice(from + 1);
};

const historySection = (history: History, marks: Marks, limits: Limits): HistorySection => {
  const entries = newest(history.entries, limits.messages);
  const linesOf = (entry: HistoryEntry): string[] =>
    limits.asTurns ? turnOf(entry, marks).lines : entryLines(entry, marks);
  const lines = new Map(entries.map((entry) => [entry, linesOf(entry)]));
  const tokensOf = (entry: HistoryEntry): number =>
    linesTokens(lines.get(entry) ?? []) + (limits.asTurns ? turnTokens : 0);
  const longestHeading = linesTokens(headingLines({ history, entries: [], earlier: history.total }));
  const room = Math.min(limits.room, limits.tokens) - longestHeading;
  const { kept, left, tokens } = keepFitting(entries, room, tokensOf, (_, index) => -index);
  const messages = kept.filter(({ kind }) => kind === "message").length;
  const shown: Shown = { history, entries: kept, earlier: Math.max(0, history.total - messages) };
  const heading = headingLines(shown);
  const rule = left.length === 0 ? "historyMessages" : limits.room < limits.tokens ? "maxTokens" : "historyTokens";
  return {
    shown,
    section: {
      name: "history",
      text: [...heading, ...kept.flatMap((entry) => lines.get(entry) ?? [])].join("\n"),
      tokens: tokens + heading.reduce((sum, line) => sum + lineTokens(line), 0),
    },
    dropped:
      shown.earlier === 0
        ? []
        : [{ name: "history", reason: `${shown.earlier} earlier messages are beyond context.${rule}` }],
  };
};

type Limits = {
  /** The tokens that the rest of the input leaves, and those that the config allows. */
  room: number;
  tokens: number;
  messages: number;
  asTurns: boolean;
};

/** The histories share the room evenly. */
export const historySections = (
  { histories, context, correction }: TimelineSnapshot,
  marks: Marks,
  room: number,
): HistorySection[] =>
  histories.map((history) =>
    historySection(history, marks, {
      room: room / histories.length,
      tokens: context.historyTokens / correction / histories.length,
      messages: context.historyMessages,
      asTurns: context.history === "messages",
    }),
  );
