import { rootHeader, rootSealer, toldOutside } from "../../../auth/root-header.ts";
import type { Root } from "../../../protocol/rpc.ts";
import type { SecretUse } from "../../../protocol/secret.ts";
import type { ToolConfig } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { fetchOutgoing } from "../../../shared/fetch-outgoing.ts";
import { schemaIssues } from "../../../shared/json-schema.ts";
import { secretNames } from "../../../shared/secret-places.ts";
import { mayRepeat } from "../call-mode.ts";
import { unknownOutcome } from "../outcome.ts";
import { broughtTool, type CallContext, invalidInput, schemaAsTold, type Tool, type ToolServices } from "../tool.ts";
import { createRedactor } from "./redact.ts";
import { renderRequest, templateIssues, unsealSecrets } from "./request-template.ts";
import { readAnswer, resultOf } from "./server-answer.ts";

type Gateway = Extract<ToolConfig, { executionType: "gateway" }>;

const quotedCharacters = 500;

/** How a request of a tool gets to the world. */
export const outsideOf = ({ identity, env, ids }: Pick<ToolServices, "identity" | "env" | "ids">) => ({
  unsealSecret: (name: string, use: SecretUse) => identity.unsealSecret(name, use),
  fetch: (...request: Parameters<typeof fetch>) => globalThis.fetch(...request),
  allowLoopback: env.ENVIRONMENT === "development",
  /** The header by which what a request sets off stays in its chain. `begunAt`: when its call was. */
  chained: (root: Root, begunAt: number): Record<string, string> => ({
    [rootHeader]: rootSealer(env, identity.get().workspaceId)(toldOutside(identity.get(), ids, root), begunAt),
  }),
});

/** What a secret is sent for: a call, and its run. */
export const useOf = (runId: string | undefined, callId: string): string =>
  runId === undefined ? callId : `${runId} ${callId}`;

/** By which one on the way says that the server gave it no answer (RFC 9110 15.6; Cloudflare's 520, 522 and 524). */
const unansweredStatuses = new Set([502, 504, 520, 522, 524]);

const runGateway = async (tool: Gateway, input: unknown, call: CallContext): Promise<unknown> => {
  const outside = outsideOf(call.services);
  const issues = templateIssues(tool.execution, outside);
  if (issues.length > 0) {
    throw new ColloquyError("tool_misconfigured", "the tool's request cannot be made", { issues });
  }
  const use = {
    kind: "tool",
    name: tool.name,
    url: tool.execution.url,
    cause: useOf(call.runId, call.callId),
  } as const;
  const secrets = await unsealSecrets(secretNames(tool.execution), (name) => outside.unsealSecret(name, use));
  const redactor = createRedactor(secrets.values());
  const { method } = tool.execution;
  const request = renderRequest(tool.execution, { input, secrets });

  const headers = new Map(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  if (!headers.has("user-agent")) headers.set("user-agent", "Colloquy");
  if (request.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
  if (method !== "GET" && !headers.has("idempotency-key")) headers.set("idempotency-key", call.callId);
  for (const [name, value] of Object.entries(outside.chained(call.root(), call.begunAt))) headers.set(name, value);

  const timeout = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([call.signal, timeout]);
  /** Where it is `open` what the server did, a request failed if it changes nothing or may be made again; else nobody knows. */
  const failed = (open: boolean, what: string, code: "tool_failed" | "tool_timeout" = "tool_failed"): ColloquyError =>
    open && method !== "GET" && !mayRepeat(tool) ? unknownOutcome(what) : new ColloquyError(code, what);
  try {
    const answered = await fetchOutgoing(
      { ...request, method, headers: [...headers] },
      {
        ...{ ...outside, signal },
        confidential: secretNames(tool.execution.body).length > 0,
        holdsSecret: redactor.isIn,
        approved: tool.approval?.required,
      },
    );
    if (!answered.ok) throw failed(answered.taken, `the tool's server: ${answered.reason}`);
    const { response, taken } = answered;
    const { ok, status } = response;
    const answer = await readAnswer(response, signal);
    const isBroken = answer.end === "broken";
    const result = resultOf(answer, status, redactor);
    if (ok && !isBroken) return result;
    const said = answer.text || isBroken ? `: ${JSON.stringify(result)}` : "";
    const end = isBroken ? ", and the connection broke in the middle" : "";
    throw failed(
      ok || taken || unansweredStatuses.has(status),
      `the tool's server answered ${status}${end}${said.slice(0, quotedCharacters)}`,
    );
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof ColloquyError || !timeout.aborted) throw error;
    throw failed(true, `the tool's server took longer than timeoutMs (${tool.timeoutMs})`, "tool_timeout");
  }
};

/**
 * Runs a tool that runs here, in or outside a run; its input was checked before. Refusals and failures are thrown as
 * `ColloquyError`s without any secret; the signal's reason where it was aborted.
 */
export const runConfigured = async (tool: ToolConfig, input: unknown, call: CallContext): Promise<unknown> => {
  if (tool.executionType === "gateway") return runGateway(tool, input, call);
  if (tool.executionType === "internal") return tool.output === undefined ? input : tool.output;
  throw new ColloquyError("tool_misconfigured", "this tool does not run here");
};

/** A tool that the agent's owner wrote, as the loop runs it. Its config was checked when it was set. */
export const configuredTool = (config: ToolConfig): Tool => {
  const schema = schemaAsTold(config.inputSchema);
  return {
    ...broughtTool,
    config,
    name: config.name,
    description: config.description,
    effect: () => config.executionType !== "internal",
    idempotent: mayRepeat(config),
    schema: () => schema,
    check: (input) => {
      const issues = schemaIssues(config.inputSchema, input);
      if (issues.length > 0) throw invalidInput(issues);
    },
    execute: async (input, context) => ({ value: await runConfigured(config, input, context) }),
  };
};
