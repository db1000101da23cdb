import type { ToolCall } from "../../protocol/tool-call.ts";
import { maxExpiredAtOnce } from "../bounds.ts";
import { type Append, type Parts, record } from "../parts.ts";
import type { CallOutcome } from "./call-outcome.ts";
import { changeCall } from "./change.ts";
import type { CallRow } from "./tool-calls.ts";

/**
 * Calls that end without anybody's word: their time is up, or their agent has left.
 *
 * Invariants
 * 1. While people may answer a call, the timer `calls` is set no later than its time is up.
 * 2. One go ends a bounded number of calls; the timer is set to now while there are more.
 */
export const callsTimer = "calls";

const end = (
  parts: Parts,
  append: Append,
  rows: CallRow[],
  status: ToolCall["status"],
  outcome: CallOutcome | null,
): void => {
  for (const row of rows) changeCall(parts, append, row, { ...row.message.toolCall, status }, outcome);
};

/** The calls' time is up: their agents are told. */
export const expire = (parts: Parts, rows: CallRow[]): void => {
  if (rows.length > 0) record(parts, (append) => end(parts, append, rows, "expired", "expired"));
};

/** An agent leaves: nobody waits for its calls. Belongs in the transaction of its leaving, before it. */
export const cancelCallsOf = (parts: Parts, append: Append, agentId: string): void => {
  const open = parts.toolCalls.openOf(agentId, maxExpiredAtOnce);
  end(parts, append, open, "canceled", null);
  if (open.length === maxExpiredAtOnce) parts.timers.setNoLater(callsTimer, parts.clock.now());
};

/** The timer `calls` went off. */
export const onCallsTimer = (parts: Parts): void => {
  if (parts.settings.find()?.deletedSeq !== null) return;
  const due = parts.toolCalls.due(parts.clock.now(), maxExpiredAtOnce);
  expire(parts, due);
  const orphans = parts.toolCalls.orphans(maxExpiredAtOnce);
  if (orphans.length > 0) record(parts, (append) => end(parts, append, orphans, "canceled", null));
  const isMore = due.length === maxExpiredAtOnce || orphans.length === maxExpiredAtOnce;
  const next = isMore ? parts.clock.now() : parts.toolCalls.nextDue();
  if (next !== undefined) parts.timers.set(callsTimer, next);
};
