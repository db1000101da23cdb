import type { ComposedConfig } from "../../context/agent-state.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import { renderState } from "../../context/consciousness/state.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf } from "../composing.ts";
import { headOf } from "../head.ts";
import { shownOwnBlocks } from "../known-blocks.ts";
import type { RunServices } from "../run-services.ts";
import { foldedIn, ownCycles } from "../summaries.ts";

/** Share of the budget from which on a compaction is due: early enough that no run has to wait for one. */
const dueShare = 0.8;

/**
 * After a run and in the agent's own time: if its last input came near `context.maxTokens`, the next run begins a
 * new window with the earlier cycles summarised; a later one, where a model has to write the summary.
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

/** The blocks that a run reads, as they are now. */
const shownTo = (services: RunServices, { events }: RunRow, config: ComposedConfig): ShownBlock[] =>
  shownOwnBlocks(
    services,
    config,
    services.inbox.rows(events).map(({ data }) => data),
  ).shown;

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
    const next = services.windows.compact(window, run.ordinal, run.ordinal, {
      config,
      correction,
      head: headOf(services),
      folded,
      refused,
    });
    if (!next) return false;
    services.journal.append({
      runOrdinal: run.ordinal,
      step,
      kind: "preview",
      content: { role: "user", content: renderState(run.told, shownTo(services, run, config), next.blocks) },
    });
    run.windowId = next.id;
    services.runs.update(run.ordinal, { windowId: next.id });
    return true;
  });
};
