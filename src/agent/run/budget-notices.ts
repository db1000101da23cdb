import { isoTime } from "../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timeouts.ts";
import { spaceAnswerMs, tellBudgetAgainMs } from "../bounds.ts";
import { everybody, type Untold } from "../inbox/out-of-budget.ts";
import type { RunServices } from "./run-services.ts";

/**
 * Tells spaces for whom the agent has no tokens of the day or runs of the hour left. Nothing waits for it: a space that cannot be told is told
 * again by a later drain, which `dueAt` has the loop begin. A space tells its members once, however often it is told.
 */
export const createBudgetNotices = (
  { outOfBudget, identity, env, clock }: RunServices,
  background: (work: Promise<unknown>) => void,
) => {
  let isTelling = false;
  let notBefore = 0;

  const tellOne = async (untold: Untold): Promise<void> => {
    const { person, until, budget, spaceId } = untold;
    const { id, workspaceId } = identity.get();
    const notice = {
      resetsAt: isoTime(until),
      ...(person === everybody ? {} : { personId: person }),
      ...(budget === "tokens" ? {} : { budget }),
    };
    try {
      unwrap(await withTimeout(spaceAnswerMs, env.SPACE.getByName(spaceId).noteBudget(workspaceId, id, notice)));
    } catch (error) {
      // The agent has left, or the space is gone.
      if (!(error instanceof ColloquyError) || error.retryable) throw error;
    }
    outOfBudget.told(untold);
  };

  const tellAll = async (): Promise<void> => {
    try {
      for (const untold of outOfBudget.untold()) await tellOne(untold);
    } catch (error) {
      notBefore = clock.now() + tellBudgetAgainMs;
      log.warn("budget.untold", { agentId: identity.find()?.id, reason: String(error) });
    } finally {
      isTelling = false;
    }
  };

  return {
    tell(): void {
      if (isTelling || clock.now() < notBefore || outOfBudget.untold().length === 0) return;
      isTelling = true;
      background(tellAll());
    },

    /** When a drain is due for it, in milliseconds since the epoch. Also for what a crash may cut while it is told. */
    dueAt: (): number | undefined =>
      outOfBudget.untold().length === 0 ? undefined : Math.max(notBefore, clock.now() + tellBudgetAgainMs),
  };
};
