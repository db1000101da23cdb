import type { Heartbeat } from "../../protocol/agent.ts";
import { nextCronTime } from "./recurrence.ts";

const minuteMs = 60_000;
const utc = "UTC";

const hourIn = (timezone: string, at: number): number =>
  Number(new Intl.DateTimeFormat("en", { timeZone: timezone, hour: "numeric", hourCycle: "h23" }).format(at));

/** From `start` up to but not including `end`; hours may go over midnight, such as from 22 to 6. */
const isActive = ({ start, end }: { start: number; end: number }, hour: number): boolean =>
  start < end ? start <= hour && hour < end : hour >= start || hour < end;

/**
 * The first beat after `now`, in milliseconds since the epoch. `last` is when the last one was due: beats keep their
 * distance from it, and those that were missed are not made up for. Outside its hours the next is where they begin.
 */
export const nextHeartbeat = (heartbeat: Heartbeat, last: number, now: number): number => {
  const everyMs = heartbeat.everyMinutes * minuteMs;
  const beats = Math.max(1, Math.floor((now - last) / everyMs) + 1);
  const next = last + beats * everyMs;
  const zone = heartbeat.timezone ?? utc;
  if (!heartbeat.activeHours || isActive(heartbeat.activeHours, hourIn(zone, next))) return next;
  return nextCronTime(`0 ${heartbeat.activeHours.start} * * *`, zone, next);
};
