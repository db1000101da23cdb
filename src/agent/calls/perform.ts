import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import type { CallOutcome } from "../records.ts";
import { runConfigured } from "../tools/configured/run-configured.ts";
import type { CallRow } from "./call-row.ts";
import type { CallServices } from "./call-services.ts";
import { loggedCall } from "./calls.ts";
import { callConsented, isConsented } from "./consented.ts";
import { completed, failed } from "./outcome.ts";

/** Runs a call here, and answers what came of it. Throws the signal's reason where it was aborted, and nothing else. */
export const perform = async (services: CallServices, row: CallRow, signal: AbortSignal): Promise<CallOutcome> => {
  const { callId, tool, input, approval } = row;
  if (tool.executionType !== "gateway" && tool.executionType !== "internal") {
    return failed("error", "tool_misconfigured", "this tool does not run here");
  }
  try {
    if (isConsented(tool)) return completed(await callConsented(services, row, signal), approval);
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
