/** The wait after so many failures, in milliseconds: it doubles from the first to the longest. */
export const doubled = (failures: number, firstMs: number, longestMs: number): number =>
  Math.min(longestMs, firstMs * 2 ** Math.min(failures, 20));

/** The same with up to a half of jitter, for what many may ask of one server. Whole: a timer knows no parts of one. */
export const backoff = (failures: number, firstMs: number, longestMs: number): number =>
  Math.ceil(doubled(failures, firstMs, longestMs) * (1 + Math.random() / 2));
