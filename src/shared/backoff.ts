/** Pauses between tries, in milliseconds: the first, the longest, and how many times the one before each is (2 if left out). */
export type Pauses = { firstMs: number; longestMs: number; times?: number };

/** What many were told to wait, they come back from within this time of each other. */
const longestSpreadMs = 10_000;
/** Who asks to be asked again at once, and fails each time, is asked no more often than this. */
const longestOverAskedMs = 60_000;

/**
 * The pause after a failure that so many others came before, in whole milliseconds: the one rule for whatever is tried
 * again, models first of all. Each pause is longer than the one before, up to the longest; a server's Retry-After takes
 * its place, is never cut short, and is trusted less the more often it was wrong. Up to a half of jitter is added, so that
 * those who failed together do not come back together.
 */
export const backoff = (failures: number, { firstMs, longestMs, times = 2 }: Pauses, retryAfterMs?: number): number => {
  const grown = Math.min(longestMs, firstMs * times ** Math.min(failures, 20));
  const pauseMs = retryAfterMs === undefined ? grown : Math.max(retryAfterMs, Math.min(grown, longestOverAskedMs));
  const spreadMs = retryAfterMs === undefined ? pauseMs / 2 : Math.min(pauseMs / 2, longestSpreadMs);
  return Math.ceil(pauseMs + spreadMs * Math.random());
};
