import { backoff, type Pauses } from "../../shared/backoff.ts";
import { ColloquyError, type Outcome } from "../../shared/errors.ts";
import { firstReachPauseMs, reachSpaceTries, spaceAnswerMs } from "../bounds.ts";

const pauses: Pauses = { firstMs: firstReachPauseMs, longestMs: spaceAnswerMs };

/** Rejects where there is no answer in `spaceAnswerMs`, so that a space that hangs holds up no run. */
const inTime = async <T>(answer: Promise<T>): Promise<T> => {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("no answer in time")), spaceAnswerMs);
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * An actor that restarts or is overloaded rejects, or is silent; what is asked of it is idempotent, so it is asked
 * again. An answer that is under way is waited for even by a run that was canceled: nothing may appear afterwards.
 */
export const reach = async <T>(ask: () => Promise<Outcome<T>>, signal: AbortSignal): Promise<Outcome<T>> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await inTime(ask());
    } catch (error) {
      signal.throwIfAborted();
      if (attempt >= reachSpaceTries) {
        throw new ColloquyError("unavailable", "the space cannot be reached at the moment", { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, backoff(attempt, pauses)));
    }
  }
};
