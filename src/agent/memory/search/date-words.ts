const words = new Intl.DateTimeFormat("en", {
  timeZone: "UTC",
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** A time as people name its day, in UTC, so that it is found by it: `Sunday, November 22, 2026`. */
export const dateWords = (at: number): string => words.format(at);
