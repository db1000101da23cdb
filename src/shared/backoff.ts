/** The wait after so many failures: exponential, with up to a half of jitter, in whole milliseconds: a timer knows no others. */
export const backoff = (failures: number, firstMs: number, longestMs: number): number =>
  Math.ceil(Math.min(longestMs, firstMs * 2 ** Math.min(failures, 20)) * (1 + Math.random() / 2));
