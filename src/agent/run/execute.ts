import type { ToolConfig, ToolRule } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { stallMs } from "../bounds.ts";
import { callBlocks } from "../calls/call-blocks.ts";
import { builtinAsConfigured } from "../calls/perform.ts";
import { ruleLine } from "../context/instructions.ts";
import { loggedRun } from "../runs.ts";
import { callModeOf, needsRow } from "../tools/call-mode.ts";
import { findTool } from "../tools/registry.ts";
import { brokenRule } from "../tools/rules.ts";
import type { Tool } from "../tools/tool.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { kindOf, windowOf } from "./composing.ts";
import { callConfigured, type Execution, journalBegun } from "./configured-call.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { pastCalls } from "./next-step.ts";
import { failure, type Result, recordResult } from "./results.ts";
import { readRows } from "./run-rows.ts";
import { contextOf } from "./tool-context.ts";

const brokenBy = ({ services, run, call, begunAt }: Execution): ToolRule | undefined => {
  const { toolRules } = windowOf(services, run).toolset;
  if (begunAt !== undefined || toolRules.length === 0) return undefined;
  return brokenRule(toolRules, call.toolName, pastCalls(readRows(services.journal.ofRun(run)).calls));
};

/** A built-in tool that people must agree to first is called as one that an owner configured so. */
const consentFor = async (
  { services, call, signal, begunAt }: Execution,
  tool: Tool,
): Promise<ToolConfig | undefined> => {
  if (!tool.consent) return undefined;
  const known = services.calls.get(call.callId)?.tool;
  if (known || begunAt !== undefined) return known;
  const blocks = callBlocks(services, { callId: call.callId, replayed: false, consented: false, signal });
  const approval = await tool.consent.approval(call.input, blocks);
  return approval && builtinAsConfigured(tool.name, approval);
};

const attempt = async (execution: Execution): Promise<Result | "waiting"> => {
  const { services, call, run } = execution;
  if (call.invalid) return failure(call.invalid.code, call.invalid.message);
  const tool = findTool(call.toolName, kindOf(services, run));
  if (!tool) return failure("tool_unknown", `there is no tool named ${call.toolName}`);
  const broken = brokenBy(execution);
  if (broken) {
    return { ...failure("tool_rule_broken", `not executed, it breaks a rule: ${ruleLine(broken)}`), refused: true };
  }
  const { config } = tool;
  let alive: ReturnType<typeof setInterval> | undefined;
  try {
    tool.check(call.input);
    if (config || tool.isTimed) alive = setInterval(execution.progressed, stallMs / 3);
    const asking = await consentFor(execution, tool);
    if (asking) return await callConfigured(execution, asking);
    if (config && needsRow(config, callModeOf(config, continuityOf(run))))
      return await callConfigured(execution, config);
    return await callHere(execution, tool);
  } catch (error) {
    execution.signal.throwIfAborted();
    if (error instanceof ColloquyError) return failure(error.code, error.message);
    log.error("tool.failed", error, { ...loggedRun(services, run), callId: call.callId, tool: call.toolName });
    return failure("tool_failed", "the tool failed; try something else");
  } finally {
    clearInterval(alive);
  }
};

/** A call that is a step of its run and nothing more. */
const callHere = async (execution: Execution, tool: Tool): Promise<Result> => {
  const { services, call, begunAt, signal } = execution;
  if (begunAt !== undefined && !tool.idempotent) return failure("outcome_unknown", interruptedCall);
  const began = begunAt ?? journalBegun(execution);
  await faultOnceStored("agent.after-call", services.object);
  // Another run may have ended this one a moment ago: no effect begins after that (R5).
  signal.throwIfAborted();
  const output = await tool.execute(call.input, contextOf(execution, began));
  return { ...output, error: false };
};

/**
 * Executes one call: a `call` row before its effect, a `result` row after (R2, R3). Whatever the tool does, the
 * call gets its result, which the model reads, at once or when somebody has answered. Answers the space that the call
 * entered, if it did.
 */
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
