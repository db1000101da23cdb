import { thinkingNoteMs } from "../bounds.ts";
import type { RunRow } from "../runs.ts";
import type { RunServices } from "./run-services.ts";

/**
 * How long a run has thought in all, in its row: `maxRunMinutes` bounds it (B3).
 *
 * Invariants
 * 1. `thoughtMs` holds the finished stretches. `thinksSince` is the start of the one under way, null while the run pauses
 *    or rests. Pauses and rests count for nothing.
 * 2. A run that is not cut writes no row for it: its first stretch begins with its row and ends with the run.
 * 3. The watchdog stores the stretch under way every `thinkingNoteMs`. After a crash at most `thinkingNoteMs` of what was
 *    not stored counts, since the object may have been away.
 */
export type ThinkingTime = Pick<RunRow, "thoughtMs" | "thinksSince">;

/** A run that began less than this ago is still in its first stretch. */
const justBegunMs = 1000;

const since = ({ thinksSince }: ThinkingTime, now: number): number =>
  thinksSince === null ? 0 : Math.max(0, now - thinksSince);

/** Begins a stretch. Answers how long the run has thought before. `run` was read just now. */
export const beginThinking = (services: RunServices, run: RunRow): number => {
  const now = services.clock.now();
  if (run.thinksSince !== null && since(run, now) < justBegunMs) return run.thoughtMs;
  const thoughtMs = run.thoughtMs + Math.min(since(run, now), thinkingNoteMs);
  services.runs.update(run.ordinal, { thoughtMs, thinksSince: now });
  return thoughtMs;
};

/** Stores the stretch under way, if that is due. `run` was read just now. */
export const noteThinking = (services: RunServices, run: RunRow): void => {
  const now = services.clock.now();
  if (since(run, now) < thinkingNoteMs) return;
  services.runs.update(run.ordinal, { thoughtMs: run.thoughtMs + since(run, now), thinksSince: now });
};

/** The columns to store as the run pauses or rests. */
export const endThinking = (services: RunServices, run: RunRow): ThinkingTime => {
  const row = services.runs.at(run.ordinal) ?? run;
  return { thoughtMs: row.thoughtMs + since(row, services.clock.now()), thinksSince: null };
};
