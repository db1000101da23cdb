import type { ModelMessage } from "ai";
import type { ContextConfig } from "../../../protocol/context-config.ts";
import { cutTo, estimateMessages, estimateText, firstFitting } from "../../tokens.ts";
import { quoteLines, unquoteLine } from "../wording.ts";
import { type CycleFacts, selfSummary } from "./cycle-summary.ts";

/** One earlier cycle that the agent lived through: its model messages, untouched. */
export type Cycle = { runId: string; messages: ModelMessage[] };

/**
 * Compacts the past of a consciousness: whole cycles, the oldest first. The running one is not among `past`. Compacted
 * cycles stay in the journal.
 */
export type CompactionLimits = {
  strategy: ContextConfig["compaction"]["strategy"];
  /** Cycles to keep whole: fewer if they are too large. */
  keepRecent: number;
  /** The estimated tokens that the summary and the kept cycles may fill together. */
  maxTokens: number;
};

/** Shares of the budget that the summaries, and the cycles kept whole beside others, may fill. */
const summaryShare = 0.25;
const keptShare = 0.5;

const truncated =
  "- (what was before has been left out; get_my_runs has it, read_messages what was said in your spaces)";

/** A summary as it stands in an input: with a bar before every line, since it tells what others wrote (C4). */
export const summaryText = (summary: string): string =>
  summary
    .split("\n")
    .map((each) => (each === truncated ? each : quoteLines(unquoteLine(each) ?? each)))
    .join("\n");

/** Index of the first cycle to keep: at most `keepRecent` of the newest, within their share, and one at least. */
export const keepFrom = (past: Cycle[], { keepRecent, maxTokens }: Omit<CompactionLimits, "strategy">): number => {
  const recent = past.slice(Math.max(0, past.length - keepRecent)).reverse();
  const tokensOf = ({ messages }: Cycle): number => estimateMessages(messages);
  const [newest] = recent;
  // The newest cycle may fill all that the summaries leave. A larger one cannot be kept whole.
  if (!newest || tokensOf(newest) > maxTokens * (1 - summaryShare)) return past.length;
  return past.length - Math.max(1, firstFitting(recent, maxTokens * keptShare, tokensOf).length);
};

/**
 * `self_summaries` keeps each older cycle's own final text, or its facts where it wrote none; `truncate` nothing of it. Both keep the newest cycles whole.
 * Null if there is nothing to compact. The first `folded` cycles are in `earlier` already, which a model has written.
 * For cycles that it has not summarised yet, their own final texts are used, or their facts. `factsOf` is asked for no others.
 */
export const compact = <One extends Cycle>(
  past: One[],
  earlier: string | null,
  limits: CompactionLimits,
  factsOf: (cycle: One) => CycleFacts = () => ({ lines: [], deeds: [] }),
  folded = 0,
): { summary: string; keptFrom: number } | null => {
  const keptFrom = Math.max(folded, keepFrom(past, limits));
  if (keptFrom === 0) return null;
  if (limits.strategy === "truncate") return { summary: truncated, keptFrom };
  const lines = [
    ...(earlier === null ? [] : earlier.split("\n")),
    ...past.slice(folded, keptFrom).map((cycle) => `- ${selfSummary(cycle.messages, () => factsOf(cycle))}`),
  ];
  const room = limits.maxTokens * summaryShare;
  const newest = firstFitting(lines.toReversed(), room, (line) => estimateText(`${line}\n`));
  // If not even the newest line fits, its beginning is kept.
  return { summary: cutTo(lines.slice(-Math.max(1, newest.length)).join("\n"), room), keptFrom };
};
