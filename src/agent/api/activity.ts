import type { Agent } from "../../protocol/agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { AgentRow } from "../identity.ts";
import { heartbeatTimer } from "../plans/beats.ts";
import { plansTimer } from "../plans/plans.ts";
import type { LoopState } from "../run/loop.ts";
import type { Mind } from "../runtime.ts";

/** An agent's mind, as far as it can be seen from outside. */
export type Observed = Pick<Mind, "parts" | "timers" | "loop">;

/** When the loop has been in its state since; one that does nothing, since its last run ended or came to rest. */
const sinceOf = (state: LoopState, row: AgentRow, { parts }: Observed): number =>
  "since" in state && state.since !== undefined
    ? state.since
    : Math.max(row.createdAt, parts.runs.newest()?.completedAt ?? 0, parts.journal.newestAt() ?? 0);

const earliest = (times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};

/**
 * What the loop does, since when, what it waits for and what went wrong last: told from the rows that the loop itself
 * goes by, so that it cannot say otherwise than what happens.
 */
export const activityOf = (row: AgentRow, observed: Observed): NonNullable<Agent["activity"]> => {
  const { parts, timers, loop } = observed;
  const state = loop.state();
  const { lastError } = row;
  const refuses = parts.inbox.refuses(row.config.limits.maxWakesPerRoot);
  const resumesAt = "resumesAt" in state ? state.resumesAt : undefined;
  const nextRetryAt = earliest([state.state === "backing_off" ? resumesAt : undefined, parts.inbox.nextRetryAt()]);
  const nextPlanAt = timers.dueAt(plansTimer);
  const waitsEnd = [parts.waits.nextDueAt(), parts.calls.nextDueAt()];
  const nextDueAt = earliest([resumesAt, nextRetryAt, nextPlanAt, timers.dueAt(heartbeatTimer), ...waitsEnd]);
  return {
    state: state.state,
    since: isoTime(sinceOf(state, row, observed)),
    ...("runId" in state ? { runId: state.runId } : {}),
    ...(nextDueAt === undefined ? {} : { nextDueAt: isoTime(nextDueAt) }),
    ...(nextRetryAt === undefined ? {} : { nextRetryAt: isoTime(nextRetryAt) }),
    ...(nextPlanAt === undefined ? {} : { nextPlanAt: isoTime(nextPlanAt) }),
    waiting: {
      replies: parts.runs.active().filter(({ status }) => status === "waiting_reply").length,
      calls: parts.calls.waiting(),
      ...parts.inbox.counts(),
    },
    ...(refuses ? { refusing: "maxInboxEvents" as const } : {}),
    ...(lastError === null
      ? {}
      : { lastError: { code: lastError.code, message: lastError.message, at: isoTime(lastError.at) } }),
    tokensToday: parts.ledger.spent(),
  };
};
