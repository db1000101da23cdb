import type { Agent } from "../../protocol/agent.ts";
import { isoTime } from "../../shared/clock.ts";
import type { AgentRow } from "../identity.ts";
import { heartbeatTimer } from "../plans/beats.ts";
import { plansTimer } from "../plans/plans.ts";
import type { AgentRuntime } from "./agent-runtime.ts";

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
  const { state, runId, since, resumesAt } = loop.state();
  // A loop that does nothing has done so since its last run ended or came to rest.
  const rests = Math.max(row.createdAt, services.runs.newest()?.completedAt ?? 0, services.journal.newestAt() ?? 0);
  const { lastError } = row;
  const nextRetryAt = earliest([state === "backing_off" ? resumesAt : undefined, services.inbox.nextRetryAt()]);
  const nextPlanAt = timers.dueAt(plansTimer);
  const waitsEnd = [services.waits.nextDueAt(), services.calls.nextDueAt()];
  const nextDueAt = earliest([resumesAt, nextRetryAt, nextPlanAt, timers.dueAt(heartbeatTimer), ...waitsEnd]);
  return {
    state,
    since: isoTime(since ?? rests),
    ...(runId === undefined ? {} : { runId }),
    ...(nextDueAt === undefined ? {} : { nextDueAt: isoTime(nextDueAt) }),
    ...(nextRetryAt === undefined ? {} : { nextRetryAt: isoTime(nextRetryAt) }),
    ...(nextPlanAt === undefined ? {} : { nextPlanAt: isoTime(nextPlanAt) }),
    waiting: {
      replies: services.runs.active().filter(({ status }) => status === "waiting_reply").length,
      calls: services.calls.waiting(),
      ...services.inbox.counts(),
    },
    ...(services.inbox.isFull(1) ? { refusing: "maxInboxEvents" as const } : {}),
    ...(lastError === null ? {} : { lastError: { ...lastError, at: isoTime(lastError.at) } }),
    tokensToday: services.ledger.spent(),
  };
};
