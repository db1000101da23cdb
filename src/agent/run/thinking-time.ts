import { thinkingNoteMs } from "../bounds.ts";
import type { RunRow } from "../runs.ts";
import type { RunServices } from "./run-services.ts";

/**
 * How long a run has thought in all, in its row: `maxRunMinutes` bounds it (B3).
 *
 * Invariants
 * 1. `thoughtMs` is what the stretches that were told hold; `thinksSince` is when the one under way began, null while
 *    the run pauses or rests. That time counts for nothing.
 * 2. No row is written for it on the plain way: a run's first stretch begins with its row, and is over with the run.
 * 3. The watchdog stores the stretch under way every `thinkingNoteMs`. Of one that was cut, what was not stored counts up to `thinkingNoteMs`: the
 *    object may have been away since.
 */
export type ThinkingTime = Pick<RunRow, "thoughtMs" | "thinksSince">;

/** A run that began no longer ago than this is in its first stretch still. */
const justBegunMs = 1000;

const since = ({ thinksSince }: ThinkingTime, now: number): number =>
  thinksSince === null ? 0 : Math.max(0, now - thinksSince);

/** A think takes up the run, whose row is as it was read just now. Answers for how long it has thought before. */
export const beginThinking = (services: RunServices, run: RunRow): number => {
  const now = services.clock.now();
  if (run.thinksSince !== null && since(run, now) < justBegunMs) return run.thoughtMs;
  const thoughtMs = run.thoughtMs + Math.min(since(run, now), thinkingNoteMs);
  services.runs.update(run.ordinal, { thoughtMs, thinksSince: now });
  return thoughtMs;
};

/** A think of this run, whose row is as it was read just now, is under way. */
export const noteThinking = (services: RunServices, run: RunRow): void => {
  const now = services.clock.now();
  if (since(run, now) < thinkingNoteMs) return;
  services.runs.update(run.ordinal, { thoughtMs: run.thoughtMs + since(run, now), thinksSince: now });
};

/** What to store where the run pauses or rests. */
export const endThinking = (services: RunServices, run: RunRow): ThinkingTime => {
  const row = services.runs.at(run.ordinal) ?? run;
  return { thoughtMs: row.thoughtMs + since(row, services.clock.now()), thinksSince: null };
};
