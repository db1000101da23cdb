import type { ToolCall } from "../protocol/tool-call.ts";
import { maxExpiredAtOnce } from "./bounds.ts";
import { type Append, record, type SpaceServices } from "./services.ts";
import type { CallRow } from "./tool-calls/tool-calls.ts";
import { changeCall } from "./tool-calls/tool-calls.ts";
import type { CallOutcome } from "./types.ts";

/**
 * Calls that end without anybody's word: their time is up, or their agent has left.
 *
 * Invariants
 * 1. While people may answer a call, the timer `calls` is set no later than its time is up.
 * 2. One go ends a bounded number of calls; the timer is set to now while there are more.
 */
export const callsTimer = "calls";

const end = (
  services: SpaceServices,
  append: Append,
  rows: CallRow[],
  status: ToolCall["status"],
  outcome: CallOutcome | null,
): void => {
  for (const row of rows) changeCall(services, append, row, { ...row.message.toolCall, status }, outcome);
};

/** The calls' time is up: their agents are told. */
export const expire = (services: SpaceServices, rows: CallRow[]): void => {
  if (rows.length > 0) record(services, (append) => end(services, append, rows, "expired", "expired"));
};

/** An agent leaves: nobody waits for its calls. Belongs in the transaction of its leaving, before it. */
export const cancelCallsOf = (services: SpaceServices, append: Append, agentId: string): void => {
  const open = services.toolCalls.openOf(agentId, maxExpiredAtOnce);
  end(services, append, open, "canceled", null);
  if (open.length === maxExpiredAtOnce) services.timers.setNoLater(callsTimer, services.clock.now());
};

/** The timer `calls` went off. */
export const onCallsTimer = (services: SpaceServices): void => {
  if (services.settings.find()?.deletedSeq !== null) return;
  const due = services.toolCalls.due(services.clock.now(), maxExpiredAtOnce);
  expire(services, due);
  const orphans = services.toolCalls.orphans(maxExpiredAtOnce);
  if (orphans.length > 0) record(services, (append) => end(services, append, orphans, "canceled", null));
  const isMore = due.length === maxExpiredAtOnce || orphans.length === maxExpiredAtOnce;
  const next = isMore ? services.clock.now() : services.toolCalls.nextDue();
  if (next !== undefined) services.timers.set(callsTimer, next);
};
