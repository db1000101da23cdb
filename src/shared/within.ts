import { ColloquyError } from "./errors.ts";

/** What `promise` comes to; rejects with `unavailable` after `timeoutMs`. Leaves no timer behind. */
export const inTime = async <T>(timeoutMs: number, promise: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const reason = `there was no answer in ${timeoutMs} ms`;
  const timer = setTimeout(() => late.reject(new ColloquyError("unavailable", reason)), timeoutMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** Resolves when `promise` has settled, or after `timeoutMs` at the latest. Leaves no timer behind. */
export const settledWithin = async (timeoutMs: number, promise: Promise<unknown>): Promise<void> => {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, timeoutMs);
  try {
    await Promise.race([promise.catch(() => undefined), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** As `promise`, but rejects with the signal's reason once that is aborted, whether or not who works at it heeds that. */
export const unlessAborted = async <T>(signal: AbortSignal, promise: Promise<T>): Promise<T> => {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
};

/** Aborted with `unavailable` after `timeoutMs`: whoever works under it gives up in words. */
export const overAfter = (timeoutMs: number): AbortSignal => {
  const over = new AbortController();
  const reason = `there was no answer in ${timeoutMs} ms`;
  const abort = (): void => over.abort(new ColloquyError("unavailable", reason));
  AbortSignal.timeout(timeoutMs).addEventListener("abort", abort, { once: true });
  return over.signal;
};
