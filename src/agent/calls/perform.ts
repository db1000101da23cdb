import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import type { CallOutcome } from "../records.ts";
import type { Parts } from "../run/parts.ts";
import { runConfigured } from "../tools/configured/run-configured.ts";
import { openSecret } from "../tools/open-secret.ts";
import { loggedCall } from "../tracing/logged-run.ts";
import type { CallRow } from "./call-row.ts";
import { callConsented, isConsented } from "./consented.ts";
import { completed, failed } from "./outcome.ts";

/** Runs a call here, and answers what came of it. Throws the signal's reason where it was aborted, and nothing else. */
export const perform = async (parts: Parts, row: CallRow, signal: AbortSignal): Promise<CallOutcome> => {
  const { callId, tool, input, approval } = row;
  if (tool.executionType !== "gateway" && tool.executionType !== "internal") {
    return failed("error", "tool_misconfigured", "this tool does not run here");
  }
  try {
    if (isConsented(tool)) return completed(await callConsented(parts, row, signal), approval);
    const value = await runConfigured(tool, input, {
      callId,
      openSecret: (name) => openSecret(parts, name),
      fetch: (request, init) => globalThis.fetch(request, init),
      signal,
      allowLoopback: parts.env.ENVIRONMENT === "development",
    });
    return completed(value, approval);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ColloquyError) return failed("error", error.code, error.message);
    log.error("call.failed", error, { ...loggedCall(parts, row), tool: tool.name });
    return failed("error", "tool_failed", "the tool failed; try something else");
  }
};
