import type { Dropped, Section } from "../composed.ts";
import { entryLines, headingLines, type Marks, type Shown } from "./history.ts";
import { keepFitting, lineTokens } from "./keep-fitting.ts";
import type { History, HistoryEntry, TimelineSnapshot } from "./snapshot.ts";

/** What is shown of one history, its section, and what was left out by which rule. */
export type HistorySection = { shown: Shown; section: Section; dropped: Dropped[] };

/** The newest entries with at most `messages` messages among them. */
const newest = (entries: HistoryEntry[], messages: number): HistoryEntry[] => {
  let count = 0;
  const from = entries.findLastIndex((entry) => {
    if (entry.kind === "message") count += 1;
    return count > messages;
  });
  return entries.slice(from + 1);
};

const historySection = (
  history: History,
  marks: Marks,
  room: number,
  config: TimelineSnapshot["config"],
): HistorySection => {
  const { historyMessages, historyTokens } = config.context;
  const entries = newest(history.entries, historyMessages);
  const lines = new Map(entries.map((entry) => [entry, entryLines(entry, marks)]));
  const tokensOf = (entry: HistoryEntry): number =>
    (lines.get(entry) ?? []).reduce((sum, line) => sum + lineTokens(line), 0);
  const { kept, left, tokens } = keepFitting(entries, Math.min(room, historyTokens), tokensOf, (_, index) => -index);
  const messages = kept.filter(({ kind }) => kind === "message").length;
  const shown: Shown = { history, entries: kept, earlier: Math.max(0, history.total - messages) };
  const heading = headingLines(shown);
  const rule = left.length === 0 ? "historyMessages" : room < historyTokens ? "maxTokens" : "historyTokens";
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

/** The histories share the room evenly. */
export const historySections = (snapshot: TimelineSnapshot, marks: Marks, room: number): HistorySection[] =>
  snapshot.histories.map((history) =>
    historySection(history, marks, room / snapshot.histories.length, snapshot.config),
  );
