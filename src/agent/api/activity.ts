import type { Agent } from "../../protocol/agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { AgentRow } from "../identity.ts";
import { heartbeatTimer } from "../plans/beats.ts";
import { plansTimer } from "../plans/plans.ts";
import type { LoopState } from "../run/loop.ts";
import type { AgentRuntime } from "./agent-runtime.ts";

/** When the loop has been in its state since; one that does nothing, since its last run ended or came to rest. */
const sinceOf = (state: LoopState, row: AgentRow, { services }: AgentRuntime): number =>
  "since" in state && state.since !== undefined
    ? state.since
    : Math.max(row.createdAt, services.runs.newest()?.completedAt ?? 0, services.journal.newestAt() ?? 0);

const earliest = (times: (number | undefined)[]): number | undefined => {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};

/**
 * What the loop does, since when, what it waits for and what went wrong last: told from the rows that the loop itself
 * goes by, so that it cannot say otherwise than what happens.
 */
export const activityOf = (row: AgentRow, runtime: AgentRuntime): NonNullable<Agent["activity"]> => {
  const { services, timers, loop } = runtime;
  const state = loop.state();
  const { lastError } = row;
  const refuses = services.inbox.isFull(1);
  const resumesAt = "resumesAt" in state ? state.resumesAt : undefined;
  const nextRetryAt = earliest([state.state === "backing_off" ? resumesAt : undefined, services.inbox.nextRetryAt()]);
  const nextPlanAt = timers.dueAt(plansTimer);
  const waitsEnd = [services.waits.nextDueAt(), services.calls.nextDueAt()];
  const nextDueAt = earliest([resumesAt, nextRetryAt, nextPlanAt, timers.dueAt(heartbeatTimer), ...waitsEnd]);
  return {
    state: state.state,
    since: isoTime(sinceOf(state, row, runtime)),
    ...("runId" in state ? { runId: state.runId } : {}),
    ...(nextDueAt === undefined ? {} : { nextDueAt: isoTime(nextDueAt) }),
    ...(nextRetryAt === undefined ? {} : { nextRetryAt: isoTime(nextRetryAt) }),
    ...(nextPlanAt === undefined ? {} : { nextPlanAt: isoTime(nextPlanAt) }),
    waiting: {
      replies: services.runs.active().filter(({ status }) => status === "waiting_reply").length,
      calls: services.calls.waiting(),
      ...services.inbox.counts(),
    },
    ...(refuses ? { refusing: "maxInboxEvents" as const } : {}),
    ...(lastError === null
      ? {}
      : { lastError: { code: lastError.code, message: lastError.message, at: isoTime(lastError.at) } }),
    tokensToday: services.ledger.spent(),
  };
};
