import * as z from "zod";
import { rootHeader } from "../../auth/root-header.ts";
import { signStandard, standard } from "../../auth/webhooks/standard.ts";
import type { ToolConfig } from "../../protocol/tool.ts";
import {
  type AnsweredToolCall,
  type ClaimToolCall,
  ToolAnswer,
  type WaitingToolCall,
} from "../../protocol/tool-call.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fetchOutgoing } from "../../shared/fetch-outgoing.ts";
import { sameJson } from "../../shared/same-json.ts";
import { secretNames } from "../../shared/secret-places.ts";
import { pushTimeoutMs } from "../bounds.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { mayRepeat } from "../tools/call-mode.ts";
import { outsideOf, useOf } from "../tools/configured/configured-tool.ts";
import { createRedactor, type Redactor } from "../tools/configured/redact.ts";
import { renderRequest, templateIssues, unsealSecrets } from "../tools/configured/request-template.ts";
import { fitJson, readAnswer } from "../tools/configured/server-answer.ts";
import { changedSinceApproval, completed, failed, unknownInWords } from "../tools/outcome.ts";
import { begunAt, type CallServices } from "./calls.ts";
import { statusOf } from "./due.ts";

/** Calls of `external` tools: sent to their server, or listed, claimed and answered. */

const executionOf = (tool: ToolConfig) => (tool.executionType === "external" ? tool.execution : undefined);

/** The secrets that a request to the server holds or is signed with. */
const secretsOf = (execution: ReturnType<typeof executionOf>): string[] =>
  execution ? [execution.secret, ...secretNames(execution)] : [];

/** The answer in a server's response body. Any other body only says that the call was received. */
const AtOnce = z.union(ToolAnswer.options.map((option) => z.looseObject(option.shape)));

/** The part of an answer that the model and the space are told: without secrets sent to its server, and cut to fit. */
const outcomeOfAnswer = (
  answer: z.infer<typeof AtOnce>,
  { approval }: Pick<CallRow, "approval">,
  redactor: Redactor,
): CallOutcome =>
  "result" in answer
    ? completed(fitJson(redactor.json(answer.result)), approval)
    : failed("error", "tool_failed", redactor.text(answer.error.message));

/** Throws a `ColloquyError` that may be retried where another try may help, and one that may not where none does. */
const send = async (services: CallServices, row: CallRow, signal: AbortSignal): Promise<CallOutcome | null> => {
  const { callId, tool, input, spaceId, createdAt } = row;
  const execution = executionOf(tool);
  if (!execution) return null;
  const changed = changedSinceApproval(row, row.failures > 0);
  if (changed) return changed;
  const misconfigured = (message: string): ColloquyError => new ColloquyError("tool_misconfigured", message);
  const approved = tool.executionType === "external" && tool.approval?.required;
  const outside = { ...outsideOf(services), signal, approved };
  if (templateIssues(execution, outside).length > 0) throw misconfigured("the tool's request cannot be made");
  const names = secretsOf(execution);
  const use = {
    kind: "tool",
    name: tool.name,
    url: execution.url,
    cause: useOf(services.runs.at(row.runOrdinal)?.id, callId),
  } as const;
  const secrets = await unsealSecrets(names, (name) => outside.unsealSecret(name, use));
  const missing = names.find((name) => !secrets.has(name));
  if (missing !== undefined) throw misconfigured(`the workspace has no secret ${missing}`);
  const key = secrets.get(execution.secret) ?? "";
  const fault = standard.secretFault(key);
  if (fault !== undefined) throw misconfigured(`the secret ${execution.secret}, which signs what is sent, ${fault}`);
  const { url, headers } = renderRequest(execution, { input, secrets });
  const body = JSON.stringify({
    type: "tool_call",
    timestamp: isoTime(createdAt),
    data: { toolCallId: callId, agentId: services.identity.get().id, spaceId, name: tool.name, input },
  });
  const signed = signStandard([key], callId, services.clock.now(), body);
  const chained = outside.chained(row.root, begunAt(row));
  const own = Object.entries({ ...signed, ...chained, "content-type": "application/json", "idempotency-key": callId });
  const ownNames = new Set(own.map(([name]) => name));
  const all = [...headers.filter(([name]) => !ownNames.has(name.toLowerCase())), ...own];
  const redactor = createRedactor(secrets.values());
  const request = { method: "POST", url, headers: all, body };
  const answered = await fetchOutgoing(request, { ...outside, holdsSecret: redactor.isIn });
  if (!answered.ok) throw new ColloquyError("unavailable", `the tool's server: ${answered.reason}`);
  const { response } = answered;
  const { status } = response;
  if (status >= 500 || status === 408 || status === 429) {
    throw new ColloquyError("unavailable", `the tool's server answered ${status}`);
  }
  if (!response.ok) {
    throw new ColloquyError("tool_failed", `the tool's server refused the call: it answered ${status}`);
  }
  const answer = await readAnswer(response, signal);
  if (answer.end === "broken") throw new ColloquyError("unavailable", "the tool's server broke off in its answer");
  const atOnce = AtOnce.safeParse(answer.json?.value);
  return atOnce.success ? outcomeOfAnswer(atOnce.data, row, redactor) : null;
};

/**
 * Sends a call to its server, signed as Standard Webhooks with the call's id as `webhook-id` and `Idempotency-Key`. The
 * outcome, where the server answers at once or can never be asked; null where it took it in. Throws what may pass.
 */
export const push = async (services: CallServices, row: CallRow, stopped: AbortSignal): Promise<CallOutcome | null> => {
  const timeoutMs = Math.min(pushTimeoutMs, row.tool.timeoutMs ?? pushTimeoutMs);
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(timeoutMs)]);
  try {
    return await send(services, row, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ColloquyError) || error.retryable) throw error;
    // An earlier try may have reached the server.
    const isOpen = row.failures > 0 && !mayRepeat(row.tool);
    if (isOpen) return failed("error", "outcome_unknown", unknownInWords(error.message));
    return failed("error", error.code, error.message);
  }
};

/** A call as it is shown to the servers that execute `external` tools. */
export const waitingCall = (agentId: string, row: CallRow): WaitingToolCall => ({
  toolCallId: row.callId,
  agentId,
  name: row.tool.name,
  input: row.input,
  createdAt: isoTime(row.createdAt),
  dueAt: isoTime(row.dueAt ?? row.createdAt),
  ...(row.lease === null ? {} : { claim: { holder: row.lease.holder, until: isoTime(row.lease.until) } }),
});

const external = (services: CallServices, callId: string): CallRow => {
  const row = services.calls.get(callId);
  if (row?.tool.executionType === "external" && row.phase !== "asked") return row;
  throw new ColloquyError("not_found", "there is no such call that waits for a server, or it is long over");
};

const isOver = ({ phase }: CallRow): boolean => phase === "answered" || phase === "done";

/** Gives a waiting call to one server. No other server gets it until the lease ends. */
export const claimCall = async (
  services: CallServices,
  callId: string,
  { holder, leaseSeconds }: ClaimToolCall,
): Promise<WaitingToolCall> => {
  const row = external(services, callId);
  const { [rootHeader]: root } = outsideOf(services).chained(row.root, begunAt(row));
  if (isOver(row)) throw new ColloquyError("gone", `the call is over: it is ${statusOf(row)}`);
  // Words may have been deleted from it since it was listed.
  const changed = changedSinceApproval(row, row.lease !== null);
  if (changed) {
    services.transaction(() => {
      services.calls.settle(callId, changed);
      services.armLoop();
    });
    throw new ColloquyError("gone", "its arguments are not those that people approved any more: take another call");
  }
  const now = services.clock.now();
  if (row.lease && row.lease.until > now && row.lease.holder !== holder) {
    throw new ColloquyError("conflict", `it is claimed until ${isoTime(row.lease.until)}: take another, or wait`);
  }
  const lease = { holder, until: now + leaseSeconds * 1000 };
  // A call that was listed before is listed again, with a new lease.
  services.calls.change(callId, { lease, listed: false });
  return { ...waitingCall(services.identity.get().id, { ...row, lease }), root };
};

/** The first answer wins. */
export const answerCall = async (
  services: CallServices,
  callId: string,
  answer: ToolAnswer,
): Promise<AnsweredToolCall> => {
  const execution = executionOf(external(services, callId).tool);
  // Secrets that the server was sent are removed from its answer (S3).
  const secrets = await unsealSecrets(secretsOf(execution), (name) => services.identity.unsealSecret(name));
  const row = external(services, callId);
  // As it is kept, so that one that comes again is the same.
  const outcome = services.calls.clean(outcomeOfAnswer(answer, row, createRedactor(secrets.values())));
  if (!isOver(row)) {
    services.transaction(() => {
      services.calls.settle(callId, outcome);
      services.armLoop();
    });
    return { toolCallId: callId, status: outcome.status, created: true };
  }
  if (row.outcome?.status === "canceled" || row.outcome?.status === "expired") {
    throw new ColloquyError("gone", `nobody waits for it any more: the call is ${row.outcome.status}`);
  }
  if (!sameJson(row.outcome?.value, outcome.value)) {
    throw new ColloquyError("conflict", "the call was answered before, with something else");
  }
  return { toolCallId: callId, status: outcome.status, created: false };
};
