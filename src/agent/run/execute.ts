import type { ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { stallMs } from "../bounds.ts";
import type { NewCall } from "../calls/calls.ts";
import { serverDueAt } from "../calls/due.ts";
import { builtinAsConfigured, perform } from "../calls/perform.ts";
import { ruleLine } from "../context/instructions.ts";
import { loggedRun } from "../runs.ts";
import type { CallRow } from "../schema.ts";
import { callModeOf, mayRepeat, needsRow } from "../tools/call-mode.ts";
import { maySpeakIn, releaseTo, requireHearing, requireOwnSpace } from "../tools/confidential.ts";
import { explained } from "../tools/input-issues.ts";
import { failed, interruptedCall } from "../tools/outcome.ts";
import { factsOf, findTool } from "../tools/registry.ts";
import { brokenRule } from "../tools/rules.ts";
import type { Tool } from "../tools/tool.ts";
import { kindOf, windowOf } from "./composing.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { pastCalls } from "./next-step.ts";
import { failure, type Result, recordResult, resultOf } from "./results.ts";
import { originFor, rootOfRun } from "./run-events.ts";
import { readRows } from "./run-rows.ts";
import type { Execution } from "./run-services.ts";
import { contextOf } from "./tool-context.ts";

/**
 * The execution of one call. Whatever its tool does, the call gets its result, which the model reads, at once or when
 * somebody has answered.
 *
 * Invariants
 * 1. A call has its `call` row in the journal before its effect, and its `result` row after (R2, R3).
 * 2. A configured tool's call has its own row too if it shows in a space, waits for somebody, or answers through the
 *    inbox. It holds the call's phase: a replay, and a run that waited, go on from there (R3).
 * 3. A call that shows in a space takes effect only after the space shows it.
 */

/** Journals that the call has begun, and as which message it shows in a space. Answers when. */
const journalBegun = ({ services, run, step, call }: Execution, spaceId: string | null = null): number => {
  const { callId, toolName } = call;
  const shown = spaceId === null ? {} : { messageId: services.ids.deriveOwned("msg", spaceId, callId) };
  const content = { callId, toolName, ...shown };
  return services.journal.append({ runOrdinal: run.ordinal, step, kind: "call", content }).createdAt;
};

type Configured = { tool: ToolConfig; input: unknown };

const newCall = (execution: Execution, { tool, input }: Configured): NewCall => {
  const { services, run, call, activeSpaceId, speech } = execution;
  const { shows, asks, attached } = callModeOf(tool, continuityOf(run));
  const isRelease = activeSpaceId !== null && factsOf(tool.name).speaks && !maySpeakIn(services, activeSpaceId);
  const target = isRelease ? services.spaces.get(activeSpaceId)?.snapshot : undefined;
  // Those who may let words out of a confidential space are asked there.
  const shownIn = isRelease ? services.identity.get().compartmentSpaceId : activeSpaceId;
  const spaceId = shows ? shownIn : null;
  if (shows && spaceId === null) {
    throw new ColloquyError("no_active_space", "no space is active: call enter_space first, the call shows there");
  }
  if (spaceId !== null && !services.spaces.isMember(spaceId)) {
    throw new ColloquyError("not_a_member", "you are in that space no more");
  }
  if (spaceId !== null) {
    requireOwnSpace(services, spaceId);
    if (asks !== null) requireHearing(services, spaceId, tool.name);
  }
  const root = rootOfRun(services, run);
  const { maxWakesPerRoot } = services.identity.get().config.limits;
  // A result that no person gives could not wake the agent any more (B1).
  if (!attached && asks === null && (services.roots.wakes([root.id]).get(root.id) ?? 0) >= maxWakesPerRoot) {
    const message = `maxWakesPerRoot (${maxWakesPerRoot}) is reached: no result could wake you any more; end here`;
    throw new ColloquyError("limit_reached", message);
  }
  const unasked = tool.executionType === "external" ? "out" : attached ? "running" : "ready";
  const phase = asks === null ? unasked : "asked";
  return {
    ...{ callId: call.callId, runOrdinal: run.ordinal, input },
    ...{ tool, spaceId, activeSpaceId, root, attached, phase },
    release: target && asks !== null ? releaseTo(target) : null,
    origin: spaceId === null ? null : (originFor(services, run, spaceId) ?? null),
    streamId: speech?.streamOf(call.index) ?? null,
    dueAt: phase === "out" ? serverDueAt({ tool, attached }, services.clock.now()) : null,
  };
};

/** Takes a call that has a row as far as it goes now. `begunHere`: no earlier life of the run began its execution. */
const goOn = async (execution: Execution, row: CallRow, begunHere: boolean): Promise<Result | "waiting"> => {
  const { calls, wakeCalls } = execution.services;
  const { callId, tool, phase, attached, release } = row;
  if (!attached) {
    wakeCalls();
    const value = { status: "pending", toolCallId: callId, ...(release && { release }) };
    return { value, error: false };
  }
  if (phase === "asked") return "waiting";
  if (phase === "out" && calls.isAwaited(callId)) {
    wakeCalls();
    return "waiting";
  }
  if (phase === "out") {
    const warning = mayRepeat(tool) ? "" : ": it may be done all the same, so do not ask for it again meanwhile";
    const message = `no answer in ${tool.timeoutMs} ms (timeoutMs); a late one comes through your inbox${warning}`;
    throw new ColloquyError("tool_timeout", message);
  }
  if (phase === "ready") return goOn(execution, calls.beginExecution(row), true);
  if (phase !== "running") {
    return row.outcome ? resultOf(row.outcome) : failure("run_canceled", "the call was canceled");
  }
  return resultOf(await perform(execution.services, row, !begunHere, execution.signal));
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
const callConfigured = async (execution: Execution, configured: Configured): Promise<Result | "waiting"> => {
  const { services, call, signal, begunAt } = execution;
  const known = services.calls.get(call.callId);
  if (!known && begunAt !== undefined) throw new ColloquyError("outcome_unknown", interruptedCall);
  const begin = (): CallRow => {
    const asked = newCall(execution, configured);
    journalBegun(execution, asked.spaceId);
    return services.calls.begin(asked, services.identity.get().config.limits);
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

/**
 * The tool's configuration and its input, if its call has a row of its own. A built-in tool that people must agree to first
 * is called as one that an owner configured so.
 */
const configuredFor = async (
  { services, run, call, signal, begunAt, activeSpaceId }: Execution,
  { name, config, consent }: Tool,
): Promise<Configured | undefined> => {
  const { input } = call;
  if (config) return needsRow(config, callModeOf(config, continuityOf(run))) ? { tool: config, input } : undefined;
  const known = consent && services.calls.get(call.callId);
  if (!consent || known || begunAt !== undefined) return known;
  const root = () => rootOfRun(services, run);
  const asking = {
    services,
    callId: call.callId,
    runId: run.id,
    replayed: false,
    consented: false,
    signal,
    root,
    activeSpaceId,
    begunAt: services.clock.now(),
  };
  const approval = await consent.approval(input, asking);
  return approval && { tool: builtinAsConfigured(name, approval), input: approval.input ?? input };
};

const attempt = async (execution: Execution): Promise<Result | "waiting"> => {
  const { services, call, run, begunAt } = execution;
  let alive: ReturnType<typeof setInterval> | undefined;
  try {
    if (call.invalid) throw new ColloquyError(call.invalid.code, call.invalid.message);
    const kind = kindOf(services, run);
    const tool = findTool(call.toolName, kind);
    if (!tool) throw new ColloquyError("tool_unknown", `there is no tool named ${call.toolName}`);
    const { toolRules } = windowOf(services, run).toolset;
    const past = pastCalls(readRows(services.journal.ofRun(run)).calls);
    const broken = begunAt === undefined && brokenRule(toolRules, call.toolName, past);
    if (broken) {
      const required = broken.rule === "requires_prior" ? broken.tools : [];
      const missing = required.filter((name) => !findTool(name, kind)).join(", ");
      const hopeless = missing && `. You do not have ${missing} here, so it cannot be kept: do not try again`;
      const message = `not executed, it breaks a rule: ${ruleLine(broken)}${hopeless}`;
      return { ...failure("tool_rule_broken", message), refused: true };
    }
    tool.check(call.input);
    if (tool.config || tool.isTimed) alive = setInterval(execution.progressed, stallMs / 3);
    const configured = await configuredFor(execution, tool);
    return configured ? await callConfigured(execution, configured) : await callHere(execution, tool);
  } catch (error) {
    execution.signal.throwIfAborted();
    if (error instanceof ColloquyError) return failure(error.code, explained(error));
    log.error("tool.failed", error, { ...loggedRun(services, run), callId: call.callId, tool: call.toolName });
    return failure("tool_failed", "the tool failed; try something else");
  } finally {
    clearInterval(alive);
  }
};

/** A call that is a step of its run and nothing more. */
const callHere = async (execution: Execution, tool: Tool): Promise<Result> => {
  const { services, call, begunAt, signal } = execution;
  if (begunAt !== undefined && !tool.idempotent) throw new ColloquyError("outcome_unknown", interruptedCall);
  const began = begunAt ?? journalBegun(execution);
  await faultOnceStored("agent.after-call", services.object);
  // Another run may have ended this one a moment ago: no effect begins after that (R5).
  signal.throwIfAborted();
  const output = await tool.execute(call.input, contextOf(execution, began));
  return { ...output, error: false };
};

/** Answers the space that the call entered, if it did. */
export const execute = async (execution: Execution): Promise<string | null> => {
  const { services, run, call, speech } = execution;
  const result = await attempt(execution);
  if (result === "waiting") return null;
  await faultOnceStored("agent.after-effect", services.object);
  const { calls } = readRows(services.journal.ofRun(run));
  const open = calls.find((each) => each.call.callId === call.callId && !each.result);
  // Whoever ended the run has told of it.
  if (!open) return null;
  services.transaction(() => {
    recordResult(services, run, open, result);
    services.calls.given(call.callId);
  });
  services.wakeCalls();
  if (result.error) speech?.drop(call.index, call.invalid?.code ?? "tool_failed", "the message was not sent");
  else speech?.said(call.index);
  return result.activeSpaceId ?? null;
};
