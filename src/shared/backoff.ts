/** Pauses between tries, in milliseconds: the first, the longest, and how many times the one before each is (2 if left out). */
export type Pauses = { firstMs: number; longestMs: number; times?: number };

/** The most that a server's Retry-After is spread over, so that clients do not return together. */
const longestSpreadMs = 10_000;
/** The longest pause that replaces a Retry-After which was too short each time. */
const longestOverAskedMs = 60_000;

/**
 * The pause before the next try after `failures` failures, in whole milliseconds. Pauses grow up to the longest.
 * A server's Retry-After replaces the pause: it is never cut short, and is made longer where it failed again and again.
 * Jitter of up to a half is added, so that clients that failed together do not come back together.
 */
export const backoff = (failures: number, { firstMs, longestMs, times = 2 }: Pauses, retryAfterMs?: number): number => {
  const grown = Math.min(longestMs, firstMs * times ** Math.min(failures, 20));
  const pauseMs = retryAfterMs === undefined ? grown : Math.max(retryAfterMs, Math.min(grown, longestOverAskedMs));
  const spreadMs = retryAfterMs === undefined ? pauseMs / 2 : Math.min(pauseMs / 2, longestSpreadMs);
  return Math.ceil(pauseMs + spreadMs * Math.random());
};
