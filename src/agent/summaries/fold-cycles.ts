import { unquoteLines } from "../context/grammar.ts";
import { cycleText, nextChunk } from "../context/summary.ts";
import { composingOf } from "../run/composing.ts";
import { headOf } from "../run/head.ts";
import type { RunServices } from "../run/run-services.ts";
import { foldedIn, ownCycles, type SummaryRow } from "../run/summaries.ts";
import { askSummary, foldingLimits } from "./ask-summary.ts";

/**
 * Folds one more chunk of the cycles that leave the input. Once all are folded, the next run begins a new window with the
 * summary in their place. They stay in the journal.
 */
export const foldCycles = async (services: RunServices, row: SummaryRow, signal: AbortSignal): Promise<void> => {
  const { windows, summaries, runs } = services;
  const { config, correction } = composingOf(services);
  const window = windows.newestWindow();
  if (!window) return summaries.done(ownCycles);
  const leaving = windows.leaving(window, runs.nextOrdinal(), config, correction);
  const last = leaving.at(-1);
  if (!last) return summaries.done(ownCycles);
  const folded = foldedIn(summaries, window);
  const chunk = nextChunk(
    leaving
      .filter(({ ordinal }) => ordinal > (folded?.upTo ?? 0))
      .map(({ ordinal, messages }) => ({ at: ordinal, text: cycleText(messages) })),
    foldingLimits(services, row),
  );
  const end = chunk.at(-1);
  if (!end) {
    return services.transaction(() => {
      windows.beginWith(window, headOf(services), { text: folded?.text ?? "", upTo: last.ordinal }, runs.nextOrdinal());
      summaries.done(ownCycles);
    });
  }
  const earlier = folded?.text ?? (window.summary === null ? null : unquoteLines(window.summary));
  const text = await askSummary(
    services,
    { of: { kind: "cycles" }, earlier, parts: chunk.map((each) => each.text) },
    signal,
  );
  summaries.folded(ownCycles, { text, base: window.firstRun, upTo: end.at });
};
