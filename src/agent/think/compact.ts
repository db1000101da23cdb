import type { RunRow } from "../runs.ts";
import type { Parts } from "./parts.ts";

/** Share of the budget from which on a compaction is due: early enough that no run has to wait for one. */
const dueShare = 0.8;

/**
 * After a run and in the agent's own time: if its last input came near `context.maxTokens`, the next run begins a
 * new window with the earlier cycles summarised.
 */
export const compactIfDue = (parts: Parts, run: RunRow): boolean => {
  const { config, correction } = parts.identity.get();
  const rows = parts.journal.ofRun(run.ordinal, run.journalFrom, run.journalTo ?? undefined);
  const last = rows.findLast((row) => row.meta?.kind === "assistant")?.meta;
  const budget = config.context.maxTokens - config.context.reservedResponseTokens;
  if (last?.kind !== "assistant" || last.estimatedInput * correction < budget * dueShare) return false;
  const window = parts.consciousness.window(run.windowId);
  return window !== undefined && parts.consciousness.compact(window, parts.runs.nextOrdinal(), config) !== null;
};

/** The provider said that the input is too long: compacts what lies before this run and moves it to the new window. */
export const compactForRun = (parts: Parts, run: RunRow): boolean => {
  const window = parts.consciousness.window(run.windowId);
  const next = window && parts.consciousness.compact(window, run.ordinal, parts.identity.get().config);
  if (!next) return false;
  run.windowId = next.id;
  parts.runs.update(run.ordinal, { windowId: next.id });
  return true;
};
