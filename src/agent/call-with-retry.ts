import { backoff, type Pauses } from "../shared/backoff.ts";
import { ColloquyError, type Outcome } from "../shared/errors.ts";
import { unlessAborted, withTimeout } from "../shared/timeouts.ts";
import { firstReachPauseMs, reachSpaceTries, spaceAnswerMs } from "./bounds.ts";

const pauses: Pauses = { firstMs: firstReachPauseMs, longestMs: spaceAnswerMs };

/**
 * An actor that restarts or is overloaded rejects, is silent, or says `unavailable`; what is asked of it is idempotent,
 * so it is asked again. An answer that is under way is waited for even by a run that was canceled: nothing may appear
 * afterwards. What may not come late is asked with `until`, which is when nobody waits for it any more.
 */
export const callWithRetry = async <T>(
  ask: () => Promise<Outcome<T>>,
  signal: AbortSignal,
  whom = "the space",
): Promise<Outcome<T>> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await withTimeout(spaceAnswerMs, ask());
      if (answer.ok || answer.problem.code !== "unavailable") return answer;
      throw new ColloquyError(answer.problem.code, answer.problem.detail);
    } catch (error) {
      signal.throwIfAborted();
      if (attempt >= reachSpaceTries) {
        throw new ColloquyError("unavailable", `${whom} cannot be reached at the moment`, { cause: error });
      }
      // Nothing is asked for a run that was canceled meanwhile (R5).
      await unlessAborted(signal, new Promise((resolve) => setTimeout(resolve, backoff(attempt, pauses))));
    }
  }
};
