import { ColloquyError } from "./errors.ts";

const tooLate = (timeoutMs: number): ColloquyError =>
  new ColloquyError("unavailable", `there was no answer in ${timeoutMs} ms`);

/** Settles as `promise` does; rejects with `unavailable` after `timeoutMs`. Leaves no timer behind. */
export const withTimeout = async <T>(timeoutMs: number, promise: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate(timeoutMs)), timeoutMs);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/** Resolves when `promise` has settled, or after `timeoutMs` at the latest. Never rejects, and leaves no timer behind. */
export const settledWithin = (timeoutMs: number, promise: Promise<unknown>): Promise<void> =>
  withTimeout(timeoutMs, promise).then(
    () => undefined,
    () => undefined,
  );

/** Settles as `promise` does, but rejects with the signal's reason once that is aborted, whatever `promise` does then. */
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

/** A signal that is aborted with `unavailable` after `timeoutMs`. */
export const timeoutSignal = (timeoutMs: number): AbortSignal => {
  const over = new AbortController();
  const abort = (): void => over.abort(tooLate(timeoutMs));
  AbortSignal.timeout(timeoutMs).addEventListener("abort", abort, { once: true });
  return over.signal;
};

/** Does `work` under a signal that is aborted with `unavailable` after `timeoutMs`. Leaves no timer behind. */
export const withinTime = async <T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(tooLate(timeoutMs)), timeoutMs);
  try {
    return await work(over.signal);
  } finally {
    clearTimeout(timer);
  }
};

/** Resolves after so long; rejects with the signal's reason as soon as it aborts. Tests see by it who pauses. */
export const pause = (milliseconds: number, signal?: AbortSignal): Promise<void> => {
  const over = new Promise<void>((resolve) => setTimeout(resolve, milliseconds));
  return signal ? unlessAborted(signal, over) : over;
};

/** Lets what else waits for this object have its turn. */
export const breathe = (): Promise<void> => pause(0);

/** Takes items off the list and does the work for each, at most `atOnce` at a time. To end early, empty the list. */
export const workOff = async <Item>(
  waiting: Item[],
  atOnce: number,
  work: (item: Item) => Promise<unknown>,
): Promise<void> => {
  const workOn = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, workOn));
};
