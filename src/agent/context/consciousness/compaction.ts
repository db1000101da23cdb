import type { ModelMessage } from "ai";
import type { ContextConfig } from "../../../protocol/context-config.ts";
import { excerpt } from "../quote.ts";
import { estimateMessages, estimateText } from "../tokens.ts";
import type { Cycle } from "./snapshot.ts";

/**
 * Makes room in a consciousness. Whole cycles only, the oldest first; the running one is not among `past`. What is
 * compacted stays in the journal.
 */
export type CompactionLimits = {
  strategy: ContextConfig["compaction"]["strategy"];
  /** Cycles to keep whole: fewer if they are too large. */
  keepRecent: number;
  /** What summary and kept cycles may fill together, in estimated tokens. */
  maxTokens: number;
};

export type Compaction = { summary: string; keptFrom: number };

const summaryCharacters = 1000;

/** A cycle's own last words: what the agent said to itself about what it did. */
export const selfSummary = (messages: ModelMessage[]): string => {
  for (const message of [...messages].reverse()) {
    if (message.role !== "assistant") continue;
    const text =
      typeof message.content === "string"
        ? message.content
        : message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    if (text.trim() !== "") return excerpt(text.trim().replace(/\s+/g, " "), summaryCharacters);
  }
  return "(no summary was written)";
};

/** Shares of the budget that the summaries, and the cycles kept whole beside others, may fill. */
const summaryShare = 0.25;
const keptShare = 0.5;

const truncated = "- (what was before has been left out; read_messages shows what was said in your spaces)";

/** Index of the first cycle to keep: of the newest as many as are wanted and fill their share, and one at least. */
export const keepFrom = (
  past: Cycle[],
  { keepRecent, maxTokens }: Pick<CompactionLimits, "keepRecent" | "maxTokens">,
): number => {
  let from = Math.max(0, past.length - keepRecent);
  let kept = past.slice(from).reduce((sum, cycle) => sum + estimateMessages(cycle.messages), 0);
  while (from < past.length - 1 && kept > maxTokens * keptShare) {
    kept -= estimateMessages(past[from]?.messages ?? []);
    from += 1;
  }
  // The newest alone may fill all that the summaries leave; a cycle beyond even that cannot be kept whole.
  return kept > maxTokens * (1 - summaryShare) ? past.length : from;
};

/** The newest lines that fit, oldest first; of a single one that does not, its beginning. */
const fitting = (lines: string[], maxTokens: number): string => {
  let from = lines.length;
  let room = maxTokens;
  while (from > 0 && room > 0) {
    from -= 1;
    room -= estimateText(`${lines[from]}\n`);
  }
  if (room < 0 && from < lines.length - 1) from += 1;
  let text = lines.slice(from).join("\n");
  while (text.length > 1 && estimateText(text) > maxTokens)
    text = excerpt(text, Math.floor(([...text].length - 1) / 2));
  return text;
};

/**
 * `self_summaries` keeps each older cycle's own final text, `truncate` nothing of it; both keep the newest cycles
 * whole. Null if there is nothing to compact. Of the cycles, the first `folded` are in `earlier` already: what a model
 * has summarised of them. Where one is to and has not got so far, their own words stand for the others.
 */
export const compact = (
  past: Cycle[],
  earlier: string | null,
  limits: CompactionLimits,
  folded = 0,
): Compaction | null => {
  const keptFrom = Math.max(folded, keepFrom(past, limits));
  if (keptFrom === 0) return null;
  if (limits.strategy === "truncate") return { summary: truncated, keptFrom };
  const lines = [
    ...(earlier === null ? [] : earlier.split("\n")),
    ...past.slice(folded, keptFrom).map((cycle) => `- ${selfSummary(cycle.messages)}`),
  ];
  return { summary: fitting(lines, limits.maxTokens * summaryShare), keptFrom };
};
