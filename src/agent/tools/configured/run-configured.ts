import type { ToolConfig } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { fetchOutgoing } from "../../../shared/fetch-outgoing.ts";
import { mayRepeat } from "../handling.ts";
import { unknownOutcome } from "../unknown-outcome.ts";
import { fitJson, fitText } from "./fit-result.ts";
import { type Answer, readAnswer } from "./read-answer.ts";
import { createRedactor, type Redactor } from "./redact.ts";
import { renderRequest } from "./render-request.ts";
import { parseTemplate, secretNames } from "./template.ts";

/** How a configured tool reaches the world while one call runs. */
export type Outside = {
  callId: string;
  /** Undefined where the workspace has no such secret. */
  openSecret(name: string): Promise<string | undefined>;
  fetch: typeof globalThis.fetch;
  signal: AbortSignal;
  /** In development only. */
  allowLoopback: boolean;
};

type Gateway = Extract<ToolConfig, { executionType: "gateway" }>;
type Internal = Extract<ToolConfig, { executionType: "internal" }>;

/** Tools that run here; the others are done by people, or by somebody's server. */
export type RunnableTool = Gateway | Internal;

const quotedCharacters = 500;

/** An answer as the model reads it: JSON as it is, text as text, anything else described. */
const resultOf = (answer: Answer, status: number, redactor: Redactor): unknown => {
  switch (answer.kind) {
    case "empty":
      return { status };
    case "other": {
      const size = answer.bytes === undefined ? {} : { bytes: answer.bytes };
      return {
        contentType: redactor.text(answer.contentType),
        ...size,
        note: "neither text nor JSON: it is not shown",
      };
    }
    case "broken":
      return redactor.text(answer.text, { cut: true });
    case "text":
      return fitText(redactor.text(answer.text, { cut: answer.cut }), answer.cut);
    case "json":
      return fitJson(redactor.json(answer.value));
  }
};

const openSecrets = async (names: string[], { openSecret }: Outside): Promise<Map<string, string>> => {
  const secrets = new Map<string, string>();
  for (const name of names) {
    const value = (await openSecret(name))?.trim();
    if (value) secrets.set(name, value);
  }
  return secrets;
};

/** By which one on the way says that the server gave it no answer (RFC 9110 15.6; Cloudflare's 520, 522 and 524). */
const unansweredStatuses = new Set([502, 504, 520, 522, 524]);

/** What no answer tells of: a failure, of a request that changes nothing or may be made again; else nobody knows. */
const unanswered = (tool: Gateway, code: "tool_failed" | "tool_timeout", what: string): ColloquyError =>
  tool.execution.method === "GET" || mayRepeat(tool) ? new ColloquyError(code, what) : unknownOutcome(what);

const runGateway = async (tool: Gateway, input: unknown, outside: Outside): Promise<unknown> => {
  const parsed = parseTemplate(tool.execution, outside);
  if (!parsed.ok) throw new ColloquyError("tool_misconfigured", "the tool's request cannot be made", parsed);
  const needed = secretNames(parsed.template);
  const secrets = await openSecrets(needed.all, outside);
  const redactor = createRedactor(secrets.values());
  const request = renderRequest(parsed.template, { input, secrets });

  const headers = new Map(request.headers.map(([name, value]) => [name.toLowerCase(), value]));
  if (!headers.has("user-agent")) headers.set("user-agent", "Colloquy");
  if (request.body !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
  if (request.method !== "GET" && !headers.has("idempotency-key")) headers.set("idempotency-key", outside.callId);

  const timeout = AbortSignal.timeout(tool.timeoutMs);
  const signal = AbortSignal.any([outside.signal, timeout]);
  try {
    const answered = await fetchOutgoing(
      { ...request, headers: [...headers] },
      { ...outside, signal, confidential: needed.inBody.length > 0 },
    );
    const failed = (isOpen: boolean, what: string): ColloquyError =>
      isOpen ? unanswered(tool, "tool_failed", what) : new ColloquyError("tool_failed", what);
    if (!answered.ok) throw failed(answered.taken, `the tool's server: ${answered.reason}`);
    const { response, taken } = answered;
    const { ok, status } = response;
    const answer = await readAnswer(response, signal);
    const isBroken = answer.kind === "broken";
    const result = resultOf(answer, status, redactor);
    if (ok && !isBroken) return result;
    const said = answer.kind === "empty" || answer.kind === "other" ? "" : `: ${JSON.stringify(result)}`;
    const end = isBroken ? ", and the connection broke in the middle" : "";
    throw failed(
      ok || taken || unansweredStatuses.has(status),
      `the tool's server answered ${status}${end}${said.slice(0, quotedCharacters)}`,
    );
  } catch (error) {
    outside.signal.throwIfAborted();
    if (error instanceof ColloquyError || !timeout.aborted) throw error;
    throw unanswered(tool, "tool_timeout", `the tool's server took longer than timeoutMs (${tool.timeoutMs})`);
  }
};

/**
 * Runs a tool that runs here, in or outside a run; its input was checked before. Refusals and failures are thrown as
 * `ColloquyError`s without any secret; the signal's reason where it was aborted.
 */
export const runConfigured = async (tool: RunnableTool, input: unknown, outside: Outside): Promise<unknown> => {
  if (tool.executionType === "gateway") return runGateway(tool, input, outside);
  return tool.output === undefined ? input : tool.output;
};
