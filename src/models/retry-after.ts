const longestMs = 24 * 60 * 60 * 1000;

/** How long a response asks to wait, in milliseconds, at most a day: `retry-after-ms`, or `Retry-After` in seconds or as a date. */
export const retryAfterMs = (headers: Record<string, string> | undefined, now: number): number | undefined => {
  const header = (name: string): string | undefined =>
    Object.entries(headers ?? {})
      .find(([key]) => key.toLowerCase() === name)?.[1]
      ?.trim();
  const bounded = (milliseconds: number): number | undefined =>
    Number.isFinite(milliseconds) ? Math.min(Math.max(0, Math.round(milliseconds)), longestMs) : undefined;
  const exact = header("retry-after-ms");
  if (exact && /^\d+(?:\.\d+)?$/.test(exact)) return bounded(Number(exact));
  const asked = header("retry-after");
  if (!asked) return undefined;
  return /^\d+(?:\.\d+)?$/.test(asked) ? bounded(Number(asked) * 1000) : bounded(Date.parse(asked) - now);
};
