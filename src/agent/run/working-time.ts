import { workNoteMs } from "../bounds.ts";
import type { RunRow } from "../runs.ts";
import type { RunServices } from "./run-services.ts";

/**
 * How long a run has worked in all, in its row: `maxRunMinutes` bounds it (B3).
 *
 * Invariants
 * 1. `workedMs` holds the finished stretches. `worksSince` is the start of the one under way, null while the run pauses
 *    or rests. Pauses and rests count for nothing.
 * 2. A run that is not cut writes no row for it: its first stretch begins with its row and ends with the run.
 * 3. The watchdog stores the stretch under way every `workNoteMs`. After a crash at most `workNoteMs` of what was not
 *    stored counts, since the object may have been away.
 */
export type WorkingTime = Pick<RunRow, "workedMs" | "worksSince">;

/** A run that began less than this ago is still in its first stretch. */
const justBegunMs = 1000;

const since = ({ worksSince }: WorkingTime, now: number): number =>
  worksSince === null ? 0 : Math.max(0, now - worksSince);

/** Begins a stretch. Answers how long the run has worked before. `run` was read just now. */
export const beginWork = ({ clock, runs }: RunServices, run: RunRow): number => {
  const now = clock.now();
  if (run.worksSince !== null && since(run, now) < justBegunMs) return run.workedMs;
  const workedMs = run.workedMs + Math.min(since(run, now), workNoteMs);
  runs.update(run.ordinal, { workedMs, worksSince: now });
  return workedMs;
};

/** Stores the stretch under way, if that is due. `run` was read just now. */
export const noteWork = ({ clock, runs }: RunServices, run: RunRow): void => {
  const now = clock.now();
  const stretchMs = since(run, now);
  if (stretchMs >= workNoteMs) runs.update(run.ordinal, { workedMs: run.workedMs + stretchMs, worksSince: now });
};

/** The columns to store as the run pauses or rests. */
export const endWork = ({ clock, runs }: RunServices, run: RunRow): WorkingTime => {
  const row = runs.at(run.ordinal) ?? run;
  return { workedMs: row.workedMs + since(row, clock.now()), worksSince: null };
};
