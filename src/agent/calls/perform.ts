import { ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { mayRepeat } from "../tools/call-mode.ts";
import { runConfigured } from "../tools/configured/configured-tool.ts";
import { explained } from "../tools/input-issues.ts";
import { changedSinceApproval, completed, failed, interruptedCall, unknownInWords } from "../tools/outcome.ts";
import { builtinTool } from "../tools/registry.ts";
import type { AskedApproval } from "../tools/tool.ts";
import { begunAt, type CallServices, loggedCall } from "./calls.ts";

/**
 * Calls of built-in tools that people must agree to first. They are kept and shown like those of a tool that an owner
 * wrote, whose names are never those of built-in ones. Their description is where they go.
 */
export const builtinAsConfigured = (
  name: string,
  { target: description = name, input: _, ...approval }: AskedApproval,
): ToolConfig =>
  // The call's id makes it change nothing twice.
  ToolConfig.parse({ name, description, executionType: "internal", visible: true, idempotent: true, approval });

/** Where such a call goes, as people were told it. */
export const builtinTarget = ({ name, description }: ToolConfig): string | undefined =>
  description === name || !builtinTool(name) ? undefined : description;

/** Throws what refuses it, and the signal's reason where that was aborted. */
const carryOut = (services: CallServices, row: CallRow, signal: AbortSignal): Promise<unknown> => {
  const { callId, tool, input } = row;
  const run = services.runs.at(row.runOrdinal);
  const { type, spaceId, eventId } = run?.trigger ?? {};
  const call = {
    services,
    callId,
    runId: run?.id,
    // The run may have ended, and its events be gone: what woke it last is known.
    sources: () =>
      type === "space_message" && spaceId ? [services.ids.deriveFrom("msg", spaceId, eventId ?? "")] : [],
    signal,
    replayed: true,
    consented: true,
    root: () => row.root,
    activeSpaceId: row.activeSpaceId,
    approvedBy: row.approval?.ids,
    target: builtinTarget(tool),
    release: row.release,
    askedAt: row.createdAt,
    begunAt: begunAt(row),
  };
  const builtin = builtinTool(tool.name);
  if (!builtin) return runConfigured(tool, input, call);
  if (!builtin.consent) throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
  return builtin.consent.carryOut(input, call);
};

const performed = async (...[services, row, isCut, signal]: Parameters<typeof perform>): Promise<CallOutcome> => {
  const changed = changedSinceApproval(row, isCut);
  if (changed) return changed;
  try {
    return completed(await carryOut(services, row, signal), row.approval);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ColloquyError) {
      // The call may have been done before the crash, whatever refuses it now.
      const isOpen = isCut && builtinTool(row.tool.name) && error.code !== "outcome_unknown";
      const [code, message] = [error.code, explained(error)];
      return isOpen ? failed("error", "outcome_unknown", unknownInWords(message)) : failed("error", code, message);
    }
    log.error("call.failed", error, { ...loggedCall(services, row), tool: row.tool.name });
    return failed("error", "tool_failed", "the tool failed; try something else");
  }
};

/**
 * Runs a `running` call here, and stores what came of it. `isCut`: an earlier life of the object began it, so it is run
 * again only if its tool allows that (R3). Throws the signal's reason where that was aborted, and nothing else.
 */
export const perform = async (
  services: CallServices,
  row: CallRow,
  isCut: boolean,
  signal: AbortSignal,
): Promise<CallOutcome> => {
  let outcome = failed("error", "outcome_unknown", interruptedCall);
  if (!isCut || mayRepeat(row.tool)) {
    await faultOnceStored("call.after-begin", services.object);
    signal.throwIfAborted();
    outcome = await performed(services, row, isCut, signal);
    await faultOnceStored("call.after-perform", services.object);
    signal.throwIfAborted();
  }
  services.calls.settle(row.callId, outcome);
  return outcome;
};
