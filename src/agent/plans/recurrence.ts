import { Cron } from "croner";
import parseDuration from "parse-duration";
import { type PutPlan, ScheduledAt } from "../../protocol/plan.ts";
import { isTimeZone } from "../../protocol/text.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxPlanAheadMs, minPlanAheadMs } from "../bounds.ts";

/**
 * When a plan is due. Times are milliseconds since the epoch. An impossible time throws `invalid_time` with the reason.
 *
 * A time of day that a change of clocks skips is due at the first moment after the gap. One that comes twice is due the
 * first time. Crons with a `*` or a step in minute or hour go by elapsed time.
 */
export type PlanTimes = Pick<PutPlan, "runAfter" | "scheduledAt" | "cron" | "timezone">;

const utc = "UTC";
const ways = ["runAfter", "scheduledAt", "cron"] as const;

const invalid = (path: string, message: string, cause?: unknown): ColloquyError =>
  new ColloquyError("invalid_time", `${path}: ${message}`, { issues: [{ path, message }], cause });

const requireZone = (timezone: string): void => {
  if (isTimeZone(timezone)) return;
  throw invalid("timezone", `there is no time zone ${JSON.stringify(timezone)}; use an IANA name, such as Asia/Riyadh`);
};

/** Numbers with units only: the parser silently skips words that it does not know. */
const words = /^(?:(?:in|after)\s+)?(?:\d+(?:\.\d+)?\s*[a-z]+)(?:(?:\s*,?\s+and\s+|\s*,?\s*)\d+(?:\.\d+)?\s*[a-z]+)*$/;

const durationOf = (runAfter: string): number => {
  const text = runAfter
    .trim()
    .toLowerCase()
    .replace(/^((?:in|after)\s+)?(?:an?|one)\s+(?=[a-z])/, "$11 ");
  const durations = words.test(text)
    ? [...text.matchAll(/\d+(?:\.\d+)?\s*[a-z]+/g)].map(([part]) => parseDuration(part))
    : [];
  if (durations.length === 0 || durations.some((duration) => duration === null)) {
    throw invalid("runAfter", 'cannot be read; say it like "30 minutes", "2 hours" or "3 days"');
  }
  return durations.reduce<number>((sum, duration) => sum + (duration ?? 0), 0);
};

/** A time without an offset is read in `timezone`. */
const instantOf = (scheduledAt: string, timezone: string): number => {
  if (!ScheduledAt.safeParse(scheduledAt).success) {
    throw invalid("scheduledAt", "is no time; write it like 2026-02-18T15:00:00Z");
  }
  if (/(?:Z|[+-]\d\d:\d\d)$/.test(scheduledAt)) return Date.parse(scheduledAt);
  const [wholeSeconds = ""] = (/T\d\d:\d\d$/.test(scheduledAt) ? `${scheduledAt}:00` : scheduledAt).split(".");
  const local = new Cron(wholeSeconds, { timezone, paused: true, allowPast: true });
  return local.nextRun(new Date(0))?.getTime() ?? 0;
};

/** The first time of `cron` after `after`. Throws if there is none within `maxPlanAheadMs`. */
export const nextCronTime = (cron: string, timezone = utc, after: number): number => {
  requireZone(timezone);
  if (cron.includes("?")) throw invalid("cron", "? has no meaning here; write * for any");
  if (cron.trim().split(/\s+/).length > 5)
    throw invalid("cron", "nothing is finer than a minute: give five fields, minute hour day month weekday");
  let next: Date | null;
  try {
    const job = new Cron(cron, { timezone, mode: "5-part", fixedTimeRule: "no-wildcard", paused: true });
    next = job.nextRun(new Date(after));
  } catch (error) {
    // The pattern itself stands in parentheses.
    const why = error instanceof Error ? error.message.replace(/^Cron\w+: | \([^)]*\)/g, "") : String(error);
    throw invalid("cron", `cannot be read (${why}); give minute hour day month weekday`, error);
  }
  if (next === null) throw invalid("cron", "never comes: no such day is in any year");
  if (next.getTime() - after > maxPlanAheadMs) throw invalid("cron", "does not come within ten years");
  return next.getTime();
};

/** When a plan that is set at `setAt` is due first. Exactly one of its three times must be there. */
export const firstDueAt = (times: PlanTimes, setAt: number): number => {
  const given = ways.filter((way) => times[way] !== undefined);
  if (given.length > 1) throw invalid(given[1] ?? "cron", `give only one of ${given.join(" and ")}`);
  if (times.timezone !== undefined) requireZone(times.timezone);
  if (times.cron !== undefined) return nextCronTime(times.cron, times.timezone, setAt);
  if (times.runAfter !== undefined) {
    const duration = durationOf(times.runAfter);
    if (duration < minPlanAheadMs) throw invalid("runAfter", "must be a second or more");
    if (duration > maxPlanAheadMs) throw invalid("runAfter", "must be ten years or less");
    return Math.round(setAt + duration);
  }
  if (times.scheduledAt !== undefined) {
    const at = instantOf(times.scheduledAt, times.timezone ?? utc);
    const now = new Date(setAt).toISOString();
    if (at <= setAt) throw invalid("scheduledAt", `is past; now it is ${now}`);
    if (at - setAt > maxPlanAheadMs) throw invalid("scheduledAt", "must be within ten years");
    return at;
  }
  throw invalid("runAfter", "say when: give one of runAfter, scheduledAt and cron");
};
