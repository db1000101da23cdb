import { renderState } from "../../context/consciousness/state.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf, headOf } from "../composing.ts";
import { shownOwnBlocks } from "../known-blocks.ts";
import type { RunServices } from "../run-services.ts";
import { foldedIn, ownCycles } from "../summaries.ts";

/** A compaction is due from this share of the budget on, early enough that no run waits for one. */
const dueShare = 0.8;

/**
 * Compacts after a run whose last input came near `context.maxTokens`: the next run begins a new window with the
 * earlier cycles summarised. If a model has to write the summary, a later run does.
 */
export const compactIfDue = (services: RunServices, run: RunRow): boolean => {
  const { config, correction } = composingOf(services);
  const rows = services.journal.ofRun(run, run.journalTo ?? undefined);
  const last = rows.findLast((row) => row.meta?.kind === "assistant")?.meta;
  const budget = config.context.maxTokens - config.context.reservedResponseTokens;
  if (last?.kind !== "assistant" || last.estimatedInput * correction < budget * dueShare) return false;
  const window = services.windows.window(run.windowId);
  if (!window) return false;
  if (config.context.compaction.strategy === "recursive_summarization") {
    services.wantSummary(ownCycles);
    return true;
  }
  const next = services.runs.nextOrdinal();
  return services.windows.compact(window, next, next, { config, correction, head: headOf(services) }) !== null;
};

/**
 * The input of a running run is too long: compacts what lies before it and moves it to the new window. The cycle
 * that told the whole state may be gone with that, so the run is told it again. `refused`: the model said so.
 */
export const compactForRun = (services: RunServices, run: RunRow, step: number, refused = false): boolean => {
  const window = services.windows.window(run.windowId);
  if (!window) return false;
  return services.transaction(() => {
    const { config, correction } = composingOf(services);
    const folded = foldedIn(services.summaries, window);
    const compacting = { config, correction, head: headOf(services), folded, refused };
    const next = services.windows.compact(window, run.ordinal, run.ordinal, compacting);
    if (!next) return false;
    const events = services.inbox.rows(run.events).map(({ data }) => data);
    const { shown } = shownOwnBlocks(services, config, events);
    services.journal.tell(run.ordinal, step, renderState(run.told, shown, next.blocks));
    run.windowId = next.id;
    services.runs.update(run.ordinal, { windowId: next.id });
    return true;
  });
};
