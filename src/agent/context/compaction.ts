import type { ModelMessage } from "ai";
import { estimateMessages, estimateText } from "../tokens.ts";
import type { Cycle } from "./snapshot.ts";

/** A cycle's own last words: what the agent said to itself about what it did. */
export const selfSummary = (messages: ModelMessage[]): string => {
  for (const message of [...messages].reverse()) {
    if (message.role !== "assistant") continue;
    const text =
      typeof message.content === "string"
        ? message.content
        : message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    if (text.trim() !== "") return text.trim().replace(/\s+/g, " ");
  }
  return "(no summary was written)";
};

export type Compaction = { summary: string; keptFrom: number };

/** Share of the budget that the summaries may fill; past it the oldest lines go. They stay in the journal. */
const summaryShare = 0.25;

/**
 * `self_summaries`: keeps the last `minRecentCycles` cycles whole and, of each older one, its own final text.
 * Null if there is nothing to compact. Whole cycles only; the running one is not among `past`.
 */
export const compact = (
  past: Cycle[],
  earlier: string | null,
  limits: { minRecentCycles: number; maxTokens: number },
): Compaction | null => {
  let keptFrom = Math.max(0, past.length - limits.minRecentCycles);
  // Recent cycles too large to keep ten of: keep as many as fill half the budget, and always the newest.
  let kept = past.slice(keptFrom).reduce((sum, cycle) => sum + estimateMessages(cycle.messages), 0);
  while (keptFrom < past.length - 1 && kept > limits.maxTokens / 2) {
    kept -= estimateMessages(past[keptFrom]?.messages ?? []);
    keptFrom += 1;
  }
  if (keptFrom === 0) return null;
  const lines = [
    ...(earlier === null ? [] : earlier.split("\n")),
    ...past.slice(0, keptFrom).map((cycle) => `- ${selfSummary(cycle.messages)}`),
  ];
  let size = estimateText(lines.join("\n"));
  while (lines.length > 1 && size > limits.maxTokens * summaryShare) size -= estimateText(lines.shift() ?? "");
  return { summary: lines.join("\n"), keptFrom };
};
