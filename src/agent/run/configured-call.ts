import type { ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import type { NewCall } from "../calls/calls.ts";
import { serverDueAt } from "../calls/due.ts";
import { failed } from "../calls/outcome.ts";
import { perform } from "../calls/perform.ts";
import type { CallRequest } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { callModeOf, mayRepeat } from "../tools/call-mode.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { failure, type Result, resultOf } from "./results.ts";
import { originFor, rootOfRun } from "./run-events.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";

/**
 * A call of a configured tool that has a row of its own: it shows in a space, waits for somebody, or its result comes
 * through the inbox.
 *
 * Invariants
 * 1. A call that shows in a space takes effect only after the space shows it.
 * 2. The row holds the call's phase: a replay, and a run that waited, go on from there (R3).
 */

/** One call of a step that is to be executed. */
export type Execution = LiveRun & {
  step: number;
  call: CallRequest;
  /** When an earlier life of this run journaled it as begun; undefined if none did. */
  begunAt: number | undefined;
  activeSpaceId: string | null;
  /** What the step said while it was generated; undefined in a replay. */
  speech: Speech | undefined;
};

/** Journals that the call has begun. Answers when. */
export const journalBegun = ({ services, run, step, call: { callId, toolName } }: Execution): number =>
  services.journal.append({ runOrdinal: run.ordinal, step, kind: "call", content: { callId, toolName } }).createdAt;

/** Throws if a call cannot show: no space is active, or the agent has left it. */
const checkPlace = ({ services, activeSpaceId }: Execution): void => {
  if (activeSpaceId === null) {
    throw new ColloquyError("no_active_space", "no space is active: call enter_space first, the call shows there");
  }
  if (!services.spaces.isMember(activeSpaceId)) {
    throw new ColloquyError("not_a_member", "you are in that space no more");
  }
};

/** Refuses a call whose result no person gives and could not wake the agent any more: its root's bound is reached (B1). */
const checkRoot = ({ services }: Execution, rootId: string): void => {
  const { maxWakesPerRoot } = services.identity.get().config.limits;
  if ((services.roots.wakes([rootId]).get(rootId) ?? 0) < maxWakesPerRoot) return;
  const message = `maxWakesPerRoot (${maxWakesPerRoot}) is reached: no result could wake you any more; end here`;
  throw new ColloquyError("limit_reached", message);
};

const newCall = (execution: Execution, tool: ToolConfig): NewCall => {
  const { services, run, call, activeSpaceId, speech } = execution;
  const { shows, asks, attached } = callModeOf(tool, continuityOf(run));
  if (shows) checkPlace(execution);
  const spaceId = shows ? activeSpaceId : null;
  const root = rootOfRun(services, run);
  if (!attached && asks === null) checkRoot(execution, root.id);
  const unasked = tool.executionType === "external" ? "out" : attached ? "running" : "ready";
  const phase = asks === null ? unasked : "asked";
  return {
    ...{ callId: call.callId, runOrdinal: run.ordinal, tool, input: call.input },
    ...{ spaceId, activeSpaceId, root, attached, phase },
    origin: spaceId === null ? null : (originFor(services, run, spaceId) ?? null),
    streamId: speech?.streamOf(call.index) ?? null,
    dueAt: phase === "out" ? serverDueAt({ tool, attached }, services.clock.now()) : null,
  };
};

const runHere = async ({ services, signal }: Execution, row: CallRow): Promise<Result> => {
  await faultOnceStored("call.after-begin", services.object);
  signal.throwIfAborted();
  const outcome = await perform(services, row, signal);
  await faultOnceStored("call.after-perform", services.object);
  signal.throwIfAborted();
  services.calls.settle(row.callId, outcome);
  return resultOf(outcome);
};

/** Takes a call that has a row as far as it goes now. `begunHere`: no earlier life of the run began its execution. */
const goOn = async (execution: Execution, row: CallRow, begunHere: boolean): Promise<Result | "waiting"> => {
  const { calls, wakeCalls } = execution.services;
  const { callId, tool, phase, attached } = row;
  if (!attached) {
    wakeCalls();
    return { value: { status: "pending", toolCallId: callId }, error: false };
  }
  if (phase === "asked") return "waiting";
  if (phase === "out" && calls.isAwaited(callId)) {
    wakeCalls();
    return "waiting";
  }
  if (phase === "out") {
    const warning = mayRepeat(tool) ? "" : ": it may be done all the same, so do not ask for it again meanwhile";
    const message = `no answer in ${tool.timeoutMs} ms (timeoutMs); a late one comes through your inbox${warning}`;
    return failure("tool_timeout", message);
  }
  if (phase === "ready") return goOn(execution, calls.beginExecution(row), true);
  if (phase !== "running")
    return row.outcome ? resultOf(row.outcome) : failure("run_canceled", "the call was canceled");
  if (begunHere || mayRepeat(tool)) return runHere(execution, row);
  const unknown = failed("error", "outcome_unknown", interruptedCall);
  calls.settle(callId, unknown);
  return resultOf(unknown);
};

/** Has the space show the call. A call that runs at once must be shown first; one that waits may be shown later. */
const show = async ({ services, call, speech }: Execution, row: CallRow): Promise<void> => {
  try {
    await services.tellCall(row.callId);
    speech?.said(call.index);
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    if (error.retryable && !(row.attached && row.phase === "running")) return;
    services.calls.settle(row.callId, failed("error", error.code, error.message));
    // The run reads the error as this call's result. Attached, the call sends none through the inbox (B1).
    services.calls.change(row.callId, { attached: true });
    throw error;
  }
};

/** The call's result, or `waiting` where somebody outside has it now. Refusals are thrown. */
export const callConfigured = async (execution: Execution, tool: ToolConfig): Promise<Result | "waiting"> => {
  const { services, call, signal, begunAt } = execution;
  const known = services.calls.get(call.callId);
  if (!known && begunAt !== undefined) throw new ColloquyError("outcome_unknown", interruptedCall);
  const begin = (): CallRow => {
    journalBegun(execution);
    return services.calls.begin(newCall(execution, tool));
  };
  const row = known ?? services.transaction(begin);
  if (!known) {
    await faultOnceStored("agent.after-call", services.object);
    signal.throwIfAborted();
  }
  // The run may have been cut before the space had shown the call.
  const isUnshown = row.spaceId !== null && (!known || (row.phase === "running" && row.told === null));
  if (isUnshown) await show(execution, row);
  if (!known) signal.throwIfAborted();
  return goOn(execution, services.calls.get(row.callId) ?? row, !known);
};
