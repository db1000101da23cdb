import type { Approval, ToolConfig } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { runConfigured } from "../tools/configured/configured-tool.ts";
import { builtinNames, builtinTool } from "../tools/registry.ts";
import { callBlocks } from "./call-blocks.ts";
import { type CallServices, loggedCall } from "./calls.ts";
import { completed, failed } from "./outcome.ts";

/**
 * Calls of built-in tools that people must agree to first. They are kept and shown like those of a tool that an owner
 * wrote, whose names are never those of built-in ones.
 */
export const builtinAsConfigured = (name: string, approval: Approval): ToolConfig => ({
  name,
  description: name,
  inputSchema: {},
  async: false,
  timeoutMs: 30_000,
  // The call's id makes it change nothing twice.
  idempotent: true,
  executionType: "internal",
  approval,
});

/** Does what was agreed to. Throws what refuses it. */
const carryOut = async (services: CallServices, row: CallRow, signal: AbortSignal): Promise<unknown> => {
  const { callId, tool, input } = row;
  const known = builtinTool(tool.name);
  if (!known?.consent) throw new ColloquyError("tool_unknown", `there is no tool named ${tool.name} any more`);
  const blocks = callBlocks(services, { callId, replayed: true, consented: true, signal });
  return known.consent.carryOut(input, blocks);
};

/** Runs a call here, and answers what came of it. Throws the signal's reason where it was aborted, and nothing else. */
export const perform = async (services: CallServices, row: CallRow, signal: AbortSignal): Promise<CallOutcome> => {
  const { callId, tool, input, approval } = row;
  if (tool.executionType !== "gateway" && tool.executionType !== "internal") {
    return failed("error", "tool_misconfigured", "this tool does not run here");
  }
  try {
    if (builtinNames.has(tool.name)) return completed(await carryOut(services, row, signal), approval);
    const value = await runConfigured(tool, input, {
      callId,
      openSecret: (name) => services.identity.openSecret(name),
      fetch: (request, init) => globalThis.fetch(request, init),
      signal,
      allowLoopback: services.env.ENVIRONMENT === "development",
    });
    return completed(value, approval);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ColloquyError) return failed("error", error.code, error.message);
    log.error("call.failed", error, { ...loggedCall(services, row), tool: tool.name });
    return failed("error", "tool_failed", "the tool failed; try something else");
  }
};
