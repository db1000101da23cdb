import { compact, keepFrom } from "../../context/consciousness/compaction.ts";
import { renderState } from "../../context/consciousness/state.ts";
import { quoteLines } from "../../context/grammar.ts";
import { estimateMessages, estimateText } from "../../context/tokens.ts";
import type { RunRow } from "../../runs.ts";
import { composingOf, newWindow } from "../composing.ts";
import { shownOwnBlocks } from "../known-blocks.ts";
import type { RunServices } from "../run-services.ts";
import { ownCycles } from "../summaries.ts";
import type { OrdinalCycle, WindowRow } from "../windows.ts";

/** A compaction is due from this share of the budget on, early enough that no run waits for one. */
const dueShare = 0.8;

/** How the cycles in a window are compacted: how many may stay whole, and the tokens that these and the summary may fill. */
const limitsIn = (services: RunServices, { instructions }: WindowRow) => {
  const { config, correction } = composingOf(services);
  const { minRecentCycles, maxTokens, reservedResponseTokens, compaction } = config.context;
  return {
    strategy: compaction.strategy,
    keepRecent: compaction.keepRecent ?? minRecentCycles,
    maxTokens: (maxTokens - reservedResponseTokens) / correction - estimateText(instructions),
  };
};

/** A model's summary of the oldest cycles in a window, up to the run with this ordinal, as far as it is made. */
export const foldedIn = ({ summaries }: RunServices, window: WindowRow): { text: string; upTo: number } | null => {
  const row = summaries.find(ownCycles);
  return row && row.text !== null && row.base === window.firstRun ? { text: row.text, upTo: row.upTo } : null;
};

/** The cycles that a compaction now would take out of the next run's input, oldest first. */
export const leavingCycles = (services: RunServices, window: WindowRow): OrdinalCycle[] => {
  const past = services.windows.past(window.firstRun, services.runs.nextOrdinal());
  return past.slice(0, keepFrom(past, limitsIn(services, window)));
};

/** Begins a window in which this summary, as a model wrote it, stands for all cycles up to run `upTo`. */
export const beginFolded = (services: RunServices, window: WindowRow, text: string, upTo: number): void => {
  const { runs, windows } = services;
  const toldFrom = runs.nextOrdinal();
  const firstRun = runs.kept(upTo + 1, toldFrom)[0]?.ordinal ?? toldFrom;
  windows.save(newWindow(services, { ...window, summary: quoteLines(text), firstRun, toldFrom }));
};

/**
 * Compacts the cycles before run `ordinal`, which is told the new window's state in full; null if there was nothing to
 * compact. If a model `refused` the input as too long, the past is halved, whatever the config allows.
 */
const compactBefore = (
  services: RunServices,
  window: WindowRow,
  ordinal: number,
  refused = false,
): WindowRow | null => {
  const past = services.windows.past(window.firstRun, ordinal);
  const limits = limitsIn(services, window);
  if (refused) {
    limits.keepRecent = Math.min(limits.keepRecent, Math.floor(past.length / 2));
    limits.maxTokens = past.reduce((sum, cycle) => sum + estimateMessages(cycle.messages), 0);
  }
  const folded = foldedIn(services, window);
  const inSummary = past.filter((cycle) => cycle.ordinal <= (folded?.upTo ?? 0)).length;
  const compaction = compact(past, folded ? quoteLines(folded.text) : window.summary, limits, inSummary);
  if (!compaction) return null;
  const firstRun = past[compaction.keptFrom]?.ordinal ?? ordinal;
  const { summary } = compaction;
  return services.windows.save(newWindow(services, { ...window, summary, firstRun, toldFrom: ordinal }));
};

/**
 * Compacts after a run whose last input came near `context.maxTokens`: the next run begins a new window with the
 * earlier cycles summarised. If a model has to write the summary, a later run does.
 */
export const compactIfDue = (services: RunServices, run: RunRow): void => {
  const { config, correction } = composingOf(services);
  const rows = services.journal.ofRun(run, run.journalTo ?? undefined);
  const last = rows.findLast((row) => row.meta?.kind === "assistant")?.meta;
  const budget = config.context.maxTokens - config.context.reservedResponseTokens;
  if (last?.kind !== "assistant" || last.estimatedInput * correction < budget * dueShare) return;
  const window = services.windows.window(run.windowId);
  if (!window) return;
  if (config.context.compaction.strategy === "recursive_summarization") services.wantSummary(ownCycles);
  else compactBefore(services, window, services.runs.nextOrdinal());
};

/**
 * The input of a running run is too long: compacts what lies before it and moves it to the new window. The cycle
 * that told the whole state may be gone with that, so the run is told it again. `refused`: the model said so.
 */
export const compactForRun = (services: RunServices, run: RunRow, step: number, refused = false): boolean => {
  const window = services.windows.window(run.windowId);
  if (!window) return false;
  return services.transaction(() => {
    const next = compactBefore(services, window, run.ordinal, refused);
    if (!next) return false;
    const events = services.inbox.rows(run.events).map(({ data }) => data);
    const { shown } = shownOwnBlocks(services, composingOf(services).config, events);
    services.journal.tell(run.ordinal, step, renderState(run.told, shown, next.blocks));
    run.windowId = next.id;
    services.runs.update(run.ordinal, { windowId: next.id });
    return true;
  });
};
