import type { ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import type { NewCall } from "../calls/calls.ts";
import { serverDueAt } from "../calls/due.ts";
import { failed } from "../calls/outcome.ts";
import { perform } from "../calls/perform.ts";
import type { CallOutcome, CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { CallRow } from "../schema.ts";
import { type Handling, handlingOf, mayRepeat } from "../tools/handling.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { continuityOf } from "./continuity/continuities.ts";
import type { Result } from "./result.ts";
import type { RunServices } from "./run-services.ts";
import type { Speech } from "./speech.ts";
import { originFor, rootOfRun } from "./utterance.ts";

/**
 * A call of a configured tool that has a row of its own: it shows in a space, waits for somebody, or its result comes
 * through the inbox.
 *
 * Invariants
 * 1. A call that shows in a space takes effect only after the space shows it.
 * 2. The row holds the call's phase: a replay, and a run that waited, go on from there (R3).
 */
const resultOf = (outcome: CallOutcome): Result => ({ value: outcome.value, error: outcome.status !== "complete" });

const settled = (services: RunServices, row: CallRow, outcome: CallOutcome): Result => {
  services.calls.settle(row.callId, outcome);
  return resultOf(outcome);
};

const pending = (callId: string): Result => ({ value: { status: "pending", toolCallId: callId }, error: false });

/** The space where the call shows; null if it shows nowhere. */
const placeOf = (services: RunServices, { shows }: Handling, activeSpaceId: string | null): string | null => {
  if (!shows) return null;
  if (activeSpaceId === null) {
    throw new ColloquyError("no_active_space", "no space is active: call enter_space first, the call shows there");
  }
  if (!services.spaces.isMember(activeSpaceId))
    throw new ColloquyError("not_a_member", "you are in that space no more");
  return activeSpaceId;
};

/** Refuses a call whose result no person gives and could not wake the agent any more: its root's bound is reached (B1). */
const checkRoot = (services: RunServices, { attached, asks }: Handling, rootId: string): void => {
  const { maxWakesPerRoot } = services.identity.get().config.limits;
  if (attached || asks !== null || (services.roots.wakes([rootId]).get(rootId) ?? 0) < maxWakesPerRoot) return;
  const message = `maxWakesPerRoot (${maxWakesPerRoot}) is reached: no result could wake you any more; end here`;
  throw new ColloquyError("limit_reached", message);
};

const newCall = (services: RunServices, { run, call, activeSpaceId, speech }: Execution, tool: ToolConfig): NewCall => {
  const handling = handlingOf(tool, continuityOf(run));
  const spaceId = placeOf(services, handling, activeSpaceId);
  const root = rootOfRun(services, run);
  checkRoot(services, handling, root.id);
  const outside = tool.executionType === "external";
  const { attached } = handling;
  const unasked = outside ? "out" : attached ? "running" : "ready";
  const phase = handling.asks === null ? unasked : "asked";
  return {
    callId: call.callId,
    runOrdinal: run.ordinal,
    tool,
    input: call.input,
    spaceId,
    activeSpaceId,
    root,
    origin: spaceId === null ? null : (originFor(services, run, spaceId) ?? null),
    streamId: speech?.streamOf(call.index) ?? null,
    attached,
    phase,
    dueAt: phase === "out" ? serverDueAt({ tool, attached }, services.clock.now()) : null,
  };
};

/** Executes what may run now, within the run. */
const runHere = async (services: RunServices, { signal }: Execution, row: CallRow): Promise<Result> => {
  await faultOnceStored("call.after-begin", services.object);
  signal.throwIfAborted();
  const outcome = await perform(services, row, signal);
  await faultOnceStored("call.after-perform", services.object);
  signal.throwIfAborted();
  services.calls.settle(row.callId, outcome);
  return resultOf(outcome);
};

/** Takes a call that has a row as far as it goes now. */
const goOn = async (
  services: RunServices,
  execution: Execution,
  row: CallRow,
  begunHere: boolean,
): Promise<Result | "waiting"> => {
  if (!row.attached) {
    services.wakeCalls();
    return pending(row.callId);
  }
  switch (row.phase) {
    case "asked":
      return "waiting";
    case "out":
      if (services.calls.isAwaited(row.callId)) {
        services.wakeCalls();
        return "waiting";
      }
      return resultOf(
        failed(
          "error",
          "tool_timeout",
          `no answer in ${row.tool.timeoutMs} ms (timeoutMs); a late one comes through your inbox${mayRepeat(row.tool) ? "" : ": it may be done all the same, so do not ask for it again meanwhile"}`,
        ),
      );
    case "ready": {
      const begun = services.calls.beginExecution(row);
      return goOn(services, execution, begun, true);
    }
    case "running":
      if (begunHere || mayRepeat(row.tool)) return runHere(services, execution, row);
      return settled(services, row, failed("error", "outcome_unknown", interruptedCall));
    default:
      return resultOf(row.outcome ?? failed("canceled", "run_canceled", "the call was canceled"));
  }
};

/** Has the space show the call. A call that runs at once must be shown first; one that waits may be shown later. */
const show = async (services: RunServices, { call, speech }: Execution, row: CallRow): Promise<void> => {
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
export const callConfigured = async (
  services: RunServices,
  execution: Execution,
  tool: ToolConfig,
): Promise<Result | "waiting"> => {
  const { call, run, step } = execution;
  const known = services.calls.get(call.callId);
  if (known) {
    // The run was cut before the space had shown the call.
    if (known.phase === "running" && known.spaceId !== null && known.told === null)
      await show(services, execution, known);
    return goOn(services, execution, services.calls.get(call.callId) ?? known, false);
  }
  if (execution.started) throw new ColloquyError("outcome_unknown", interruptedCall);
  const row = services.transaction(() => {
    services.journal.append({
      runOrdinal: run.ordinal,
      step,
      kind: "call",
      content: { callId: call.callId, toolName: call.toolName },
    });
    return services.calls.begin(newCall(services, execution, tool));
  });
  await faultOnceStored("agent.after-call", services.object);
  execution.signal.throwIfAborted();
  if (row.spaceId !== null) await show(services, execution, row);
  execution.signal.throwIfAborted();
  return goOn(services, execution, services.calls.get(row.callId) ?? row, true);
};

/** One call of a step that is to be executed. */
export type Execution = {
  run: RunRow;
  step: number;
  call: CallRequest;
  /** Its `call` row is there already: an earlier life of this run began it. */
  started: boolean;
  activeSpaceId: string | null;
  /** What the step said while it was generated; undefined in a replay. */
  speech: Speech | undefined;
  signal: AbortSignal;
  /** Called while a tool takes its time, which its own timeout bounds: the run has not stalled. */
  progressed: () => void;
};
