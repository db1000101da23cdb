import type { ComponentProps } from "react";

/** Times as people read them, in their own language and zone. */
const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const fullTime = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "short" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });
const shortDate = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const relativeDay = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

const dayMs = 24 * 60 * 60 * 1000;

const startOfDay = (time: Date): number => new Date(time).setHours(0, 0, 0, 0);

/** Whole calendar days from `time` to `now`; rounding takes care of days of 23 and 25 hours. */
export const daysAgo = (time: Date, now: Date): number => Math.round((startOfDay(now) - startOfDay(time)) / dayMs);

export const isSameDay = (one: string, other: string): boolean => daysAgo(new Date(one), new Date(other)) === 0;

export const clock = (iso: string): string => clockTime.format(new Date(iso));

export const full = (iso: string): string => fullTime.format(new Date(iso));

/** "Today", "Yesterday", "Monday, 3 February", "3 February 2025". */
export const day = (iso: string, now = new Date()): string => {
  const time = new Date(iso);
  const days = daysAgo(time, now);
  if (days === 0 || days === 1) {
    const word = relativeDay.format(-days, "day");
    return word.charAt(0).toLocaleUpperCase() + word.slice(1);
  }
  return (time.getFullYear() === now.getFullYear() ? weekday : date).format(time);
};

/** For lists: the clock today, else the date. */
export const short = (iso: string, now = new Date()): string => {
  const time = new Date(iso);
  return daysAgo(time, now) === 0 ? clockTime.format(time) : shortDate.format(time);
};

type TimeProps = ComponentProps<"time"> & { iso: string };

/** A time in short, with all of it in its tooltip. */
export const Time = ({ iso, children = short(iso), ...time }: TimeProps) => (
  <time dateTime={iso} title={full(iso)} {...time}>
    {children}
  </time>
);
