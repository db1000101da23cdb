import type { Heartbeat } from "../../protocol/agent.ts";
import type { Timers } from "../../timers/timers.ts";
import { nextCronTime } from "./recurrence.ts";

/** The timer whose due time is the agent's next heartbeat. Nothing else of the heartbeat is stored. */
export const heartbeatTimer = "heartbeat";

/** Starts, changes or stops (`undefined`) the heartbeat. */
export const startHeartbeat = (timers: Timers, heartbeat: Heartbeat | undefined, now: number): void => {
  if (heartbeat) timers.set(heartbeatTimer, nextHeartbeat(heartbeat, now, now));
  else if (timers.dueAt(heartbeatTimer) !== undefined) timers.clear(heartbeatTimer);
};

/** The timer fired: hands the beat that is due to `enter`, then sets the timer for the next. In a transaction. */
export const beat = (
  timers: Timers,
  heartbeat: Heartbeat | undefined,
  now: number,
  enter: (dueAt: number) => void,
): void => {
  const dueAt = timers.dueAt(heartbeatTimer);
  if (!heartbeat || dueAt === undefined) return;
  enter(dueAt);
  timers.set(heartbeatTimer, nextHeartbeat(heartbeat, dueAt, now));
};

const minuteMs = 60_000;
const utc = "UTC";

const hourIn = (timezone: string, at: number): number =>
  Number(new Intl.DateTimeFormat("en", { timeZone: timezone, hour: "numeric", hourCycle: "h23" }).format(at));

/** From `start` up to but not including `end`. Hours may cross midnight, such as from 22 to 6. */
const isActive = ({ start, end }: { start: number; end: number }, hour: number): boolean =>
  start < end ? start <= hour && hour < end : hour >= start || hour < end;

/**
 * The first beat after `now`, in milliseconds since the epoch. Beats keep their distance from `last`, when the last one
 * was due. Missed beats are skipped. A beat outside the active hours moves to where they begin.
 */
export const nextHeartbeat = (heartbeat: Heartbeat, last: number, now: number): number => {
  const everyMs = heartbeat.everyMinutes * minuteMs;
  const beats = Math.max(1, Math.floor((now - last) / everyMs) + 1);
  const next = last + beats * everyMs;
  const zone = heartbeat.timezone ?? utc;
  if (!heartbeat.activeHours || isActive(heartbeat.activeHours, hourIn(zone, next))) return next;
  return nextCronTime(`0 ${heartbeat.activeHours.start} * * *`, zone, next);
};
