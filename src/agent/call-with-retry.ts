import type { Env } from "../env/env.ts";
import type { SpaceMessage, SpaceWindow } from "../protocol/rpc.ts";
import { backoff, type Pauses } from "../shared/backoff.ts";
import { ColloquyError, type Outcome, unwrap } from "../shared/errors.ts";
import { pause, withTimeout } from "../shared/timeouts.ts";
import { firstReachPauseMs, reachSpaceTries, spaceAnswerMs } from "./bounds.ts";
import type { Identity } from "./identity.ts";

const pauses: Pauses = { firstMs: firstReachPauseMs, longestMs: spaceAnswerMs };

/**
 * Calls an actor again if it rejects, is silent or answers `unavailable`, as it does when it restarts or is overloaded.
 * `ask` must be idempotent. A canceled run still waits for an answer that is under way, since nothing may appear after
 * it has ended. A request that must not take effect late carries `until`, when its caller stops waiting.
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
      await pause(backoff(attempt, pauses), signal);
    }
  }
};

/**
 * Asks a compartment's open mind. Where that is gone, or is being removed, its agent was removed: `endMind` ends the
 * compartment, which nobody else may reach (B2).
 */
export const askOpenMind = async <T>(
  { endMind }: { endMind: () => void },
  ask: () => Promise<Outcome<T>>,
  signal: AbortSignal,
): Promise<T> => {
  const answer = await callWithRetry(ask, signal, "the agent's open mind");
  if (!answer.ok && answer.problem.code === "not_found") endMind();
  return unwrap(answer);
};

type Asking = { identity: Identity; env: Pick<Env, "SPACE"> };

/** The messages of one of the agent's spaces, as the space tells them: `offset` counts from the newest. */
export const spaceWindow = (
  { identity, env }: Asking,
  spaceId: string,
  page: { limit: number; offset: number },
): Promise<Outcome<SpaceWindow>> => {
  const { id, workspaceId, compartmentId } = identity.get();
  return env.SPACE.getByName(spaceId).window(workspaceId, id, page, compartmentId ?? undefined);
};

/** One message of one of the agent's spaces; `not_found` where the space has none with this id. */
export const spaceMessage = (
  { identity, env }: Asking,
  spaceId: string,
  messageId: string,
): Promise<Outcome<SpaceMessage>> => {
  const { id, workspaceId, compartmentId } = identity.get();
  return env.SPACE.getByName(spaceId).message(workspaceId, id, messageId, compartmentId ?? undefined);
};
