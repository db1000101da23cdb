import { z } from "zod";
import { signStandard, standard } from "../../auth/webhooks/standard.ts";
import type { HttpTemplate, ToolConfig } from "../../protocol/tool.ts";
import { ToolAnswer } from "../../protocol/tool-call.ts";
import { isoTime } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fetchOutgoing } from "../../shared/fetch-outgoing.ts";
import { pushTimeoutMs } from "../bounds.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";
import { mayRepeat } from "../tools/call-mode.ts";
import { createRedactor, type Redactor } from "../tools/configured/redact.ts";
import {
  type RenderedRequest,
  renderRequest,
  secretNames,
  templateIssues,
} from "../tools/configured/request-template.ts";
import { fitJson, readAnswer } from "../tools/configured/server-answer.ts";
import { unknownInWords } from "../tools/unknown-outcome.ts";
import type { CallServices } from "./calls.ts";
import { completed, failed } from "./outcome.ts";

type Execution = NonNullable<Extract<ToolConfig, { executionType: "external" }>["execution"]>;

/** The request that sends a call to its server; undefined where it cannot be made. */
const serverTemplate = (services: Pick<CallServices, "env">, { url, headers }: Execution): HttpTemplate | undefined => {
  const template: HttpTemplate = { url, headers, method: "POST" };
  const issues = templateIssues(template, { allowLoopback: services.env.ENVIRONMENT === "development" });
  return issues.length === 0 ? template : undefined;
};

/** The secrets that such a request holds or is signed with, by name; empty where the workspace has none. */
const serverSecrets = async (
  services: CallServices,
  execution: Execution,
  template: HttpTemplate,
): Promise<Map<string, string>> => {
  const names = [execution.secret, ...secretNames(template).all];
  const opened = names.map(async (name) => [name, (await services.identity.openSecret(name))?.trim() ?? ""] as const);
  return new Map(await Promise.all(opened));
};

/** Takes out of a server's answer what it was sent (S3). */
export const serverRedactor = async (services: CallServices, { tool }: Pick<CallRow, "tool">): Promise<Redactor> => {
  const execution = tool.executionType === "external" ? tool.execution : undefined;
  const template = execution && serverTemplate(services, execution);
  return createRedactor(execution && template ? (await serverSecrets(services, execution, template)).values() : []);
};

/** An answer in the body of what the server said to it: with other fields, or none of these, it is only taken in. */
const AtOnce = z.union(ToolAnswer.options.map((option) => z.looseObject(option.shape)));

/** What of an answer the model and the space are told: no secret that its server was sent, and no more than fits. */
export const outcomeOfAnswer = (
  answer: z.infer<typeof AtOnce>,
  { approval }: Pick<CallRow, "approval">,
  redactor: Redactor,
): CallOutcome =>
  "result" in answer
    ? completed(fitJson(redactor.json(answer.result)), approval)
    : failed("error", "tool_failed", redactor.text(answer.error.message));

const misconfigured = (message: string): CallOutcome => failed("error", "tool_misconfigured", message);

/** The request, or why it cannot be made with this input, which no other try mends. */
const rendered = (...what: Parameters<typeof renderRequest>): RenderedRequest | ColloquyError => {
  try {
    return renderRequest(...what);
  } catch (error) {
    if (error instanceof ColloquyError) return error;
    throw error;
  }
};

/**
 * Sends a call to its server, signed as Standard Webhooks with the call's id as `webhook-id` and `Idempotency-Key`. The
 * outcome, where the server answers at once or can never be asked; null where it took it in. Throws what may pass.
 */
export const push = async (services: CallServices, row: CallRow, stopped: AbortSignal): Promise<CallOutcome | null> => {
  const { callId, tool, input, spaceId, createdAt } = row;
  if (tool.executionType !== "external" || !tool.execution) return null;
  const { execution } = tool;
  const template = serverTemplate(services, execution);
  if (!template) return misconfigured("the tool's request cannot be made");
  const secrets = await serverSecrets(services, execution, template);
  for (const [name, value] of secrets) if (!value) return misconfigured(`the workspace has no secret ${name}`);
  const key = secrets.get(execution.secret) ?? "";
  const fault = standard.secretFault(key);
  if (fault !== undefined) return misconfigured(`the secret ${execution.secret}, which signs what is sent, ${fault}`);
  const request = rendered(template, { input, secrets });
  if (request instanceof ColloquyError) return failed("error", request.code, request.message);
  const { url, headers } = request;
  const body = JSON.stringify({
    type: "tool_call",
    timestamp: isoTime(createdAt),
    data: { toolCallId: callId, agentId: services.identity.get().id, spaceId, name: tool.name, input },
  });
  const signed = signStandard(key, callId, services.clock.now(), body);
  const own = [...Object.entries(signed), ["content-type", "application/json"], ["idempotency-key", callId]];
  const ownNames = new Set(own.map(([name]) => name));
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(Math.min(pushTimeoutMs, tool.timeoutMs))]);
  const all = [...headers.filter(([name]) => !ownNames.has(name.toLowerCase())), ...own] as [string, string][];
  const isDevelopment = services.env.ENVIRONMENT === "development";
  const answered = await fetchOutgoing(
    { method: "POST", url, headers: all, body },
    { fetch: (request, init) => globalThis.fetch(request, init), allowLoopback: isDevelopment, signal },
  );
  if (!answered.ok) throw new ColloquyError("unavailable", `the tool's server: ${answered.reason}`);
  const { response } = answered;
  const { status } = response;
  if (status >= 500 || status === 408 || status === 429) {
    throw new ColloquyError("unavailable", `the tool's server answered ${status}`);
  }
  if (!response.ok) {
    const refusal = `the tool's server refused the call: it answered ${status}`;
    // It may have taken in what it was sent before.
    if (row.failures > 0 && !mayRepeat(tool)) return failed("error", "outcome_unknown", unknownInWords(refusal));
    return failed("error", "tool_failed", refusal);
  }
  const answer = await readAnswer(response, signal);
  if (answer.kind === "broken") throw new ColloquyError("unavailable", "the tool's server broke off in its answer");
  const atOnce = AtOnce.safeParse(answer.kind === "json" ? answer.value : undefined);
  return atOnce.success ? outcomeOfAnswer(atOnce.data, row, createRedactor(secrets.values())) : null;
};
