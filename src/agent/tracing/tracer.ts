import { createHash } from "node:crypto";
import type { ModelMessage } from "ai";
import * as z from "zod";
import type { Env } from "../../env/env.ts";
import { identifyModel } from "../../models/identify-model.ts";
import type { CallRequest } from "../../protocol/exported-history.ts";
import type { Usage } from "../../protocol/run.ts";
import type { Clock } from "../../shared/clock.ts";
import { errorCodes } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { maxBufferedSpans, maxSpanContentCharacters, spanExportTimeoutMs } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import type { AgentRow } from "../identity.ts";
import type { RunRow } from "../runs.ts";

/** The facts of a span of a step: what was generated, if anything was. `error`: why it is not kept. */
export type TracedStep = {
  index: number;
  startedAt: number;
  maxOutputTokens: number;
  composed: Composed;
  came?: { text: string; calls: CallRequest[]; usage: Usage; finishReason: string };
  error?: string | undefined;
};

/** `isTool`: whether the agent has a tool of this name, or a model made it up. */
type TracedCall = {
  step: number;
  startedAt: number;
  call: CallRequest;
  isTool: () => boolean;
  value: unknown;
  error: boolean;
};

/** One action of a run, which ends now. An attribute `error.type` says that it failed. */
type Span = {
  operation: "invoke_agent" | "chat" | "execute_tool";
  of: string;
  /** Its place below the run: ids derive from it. What lies above it is its parent. The run itself has the empty path. */
  path: (string | number)[];
  /** In milliseconds since the epoch. */
  startedAt: number;
  attributes: Attributes;
};

type Value = string | number | boolean | string[];
type Attributes = Record<string, Value | undefined>;

const Failed = z.object({ error: z.object({ code: z.string() }) });
const isOwnCode = (code: string): boolean => errorCodes.some((own) => own === code);

/**
 * Sends the operator's collector a span for each run, step and tool call: OTLP over HTTP, as JSON
 * (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding). Without an endpoint it does nothing. Attributes
 * have the names of OpenTelemetry's conventions for generative AI, which still move
 * (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Others are `colloquy.*`.
 *
 * Invariants
 * 1. Nobody waits for it, and its failures stop nothing: spans that cannot be sent are lost, and the log says how many.
 * 2. At most `maxBufferedSpans` wait, and one request is under way.
 * 3. Texts, prompts and inputs are left out unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` is `true`. A
 *    compartment always leaves them out: nobody checks that the collector's readers are in the space (C19).
 */
export type Tracer = ReturnType<typeof createTracer>;

export const createTracer = (
  env: Env,
  clock: Clock,
  agent: () => AgentRow,
  background: (work: Promise<unknown>) => void,
) => {
  const waiting: object[] = [];
  let lost = 0;
  let sending = false;

  const add = (run: RunRow, span: () => Span): void => {
    if (!env.OTEL_EXPORTER_OTLP_ENDPOINT) return;
    if (waiting.length >= maxBufferedSpans) {
      lost += 1;
      return;
    }
    const { operation, of, path, startedAt, attributes } = span();
    const { id, workspaceId, config } = agent();
    waiting.push({
      // A run is one trace. Ids derive from the run, so that one that was cut goes on in the same trace.
      traceId: hexId([run.id], 16),
      spanId: hexId([run.id, ...path], 8),
      ...(path.length === 0 ? {} : { parentSpanId: hexId([run.id, ...path.slice(0, -1)], 8) }),
      name: `${operation} ${of}`,
      kind: operation === "chat" ? clientKind : internalKind,
      startTimeUnixNano: `${startedAt}000000`,
      endTimeUnixNano: `${clock.now()}000000`,
      attributes: attributesOf({
        "gen_ai.agent.id": id,
        "gen_ai.agent.name": config.name,
        "colloquy.workspace.id": workspaceId,
        "colloquy.run.id": run.id,
        "gen_ai.operation.name": operation,
        ...attributes,
      }),
      status: attributes["error.type"] === undefined ? {} : { code: failedStatus },
    });
  };

  const isConfidential = (): boolean => agent().compartmentId !== null;

  const content = (value: unknown): string | undefined => {
    if (isConfidential()) return undefined;
    if (env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT !== "true") return undefined;
    return (JSON.stringify(value) ?? "null").slice(0, maxSpanContentCharacters);
  };

  const askedModel = () => {
    const { family, name } = identifyModel(agent().config.model, env);
    return { "gen_ai.provider.name": family, "gen_ai.request.model": name };
  };

  /** Why it failed, or nothing. */
  const post = async (spans: object[]): Promise<string | undefined> => {
    const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS = "", OTEL_SERVICE_NAME = "colloquy" } = env;
    const headers = headersOf(OTEL_EXPORTER_OTLP_HEADERS);
    if (!headers) return "OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value";
    headers.set("content-type", "application/json");
    const resource = { attributes: attributesOf({ "service.name": OTEL_SERVICE_NAME }) };
    try {
      const answer = await fetch(`${OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, "")}/v1/traces`, {
        method: "POST",
        headers,
        body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "colloquy" }, spans }] }] }),
        redirect: "manual",
        signal: AbortSignal.timeout(spanExportTimeoutMs),
      });
      await answer.body?.cancel();
      return answer.ok ? undefined : `the collector answered ${answer.status}`;
    } catch (error) {
      return String(error);
    }
  };

  const send = async (): Promise<void> => {
    while (waiting.length > 0) {
      const spans = waiting.splice(0);
      const missed = lost;
      lost = 0;
      const failure = await post(spans);
      const unsent = failure === undefined ? 0 : spans.length;
      if (missed + unsent > 0) log.warn("spans.lost", { spans: missed + unsent, why: failure ?? "maxBufferedSpans" });
    }
    sending = false;
  };

  return {
    run(run: RunRow): void {
      add(run, () => ({
        ...{ operation: "invoke_agent", of: agent().config.name, path: [], startedAt: run.startedAt },
        attributes: {
          ...askedModel(),
          "colloquy.run.status": run.status,
          "colloquy.space.ids": run.spaceIds,
          "error.type": run.error?.code,
        },
      }));
    },

    step(run: RunRow, { index, startedAt, maxOutputTokens, composed, came, error }: TracedStep): void {
      add(run, () => ({
        ...{ operation: "chat", of: identifyModel(agent().config.model, env).name, startedAt },
        // Only the generation that is kept has the step's own id.
        path: [error === undefined ? index : `${index}/${startedAt}/${error}`],
        attributes: {
          ...askedModel(),
          "gen_ai.request.stream": true,
          "gen_ai.request.max_tokens": maxOutputTokens,
          "gen_ai.request.temperature": agent().config.model.temperature,
          "colloquy.step": index,
          "gen_ai.system_instructions": content([textPart(composed.instructions)]),
          "gen_ai.input.messages": content(composed.messages.map(spanMessage)),
          "error.type": error,
          ...(came && {
            "gen_ai.response.finish_reasons": [came.finishReason],
            "gen_ai.usage.input_tokens": came.usage.inputTokens,
            "gen_ai.usage.output_tokens": came.usage.outputTokens,
            "colloquy.usage.estimated": came.usage.estimated,
            "gen_ai.output.messages": content(outputMessages(came)),
          }),
        },
      }));
    },

    /** A call has its result: of a detached one, that it is pending. */
    call(run: RunRow, { step, startedAt, call, isTool, value, error }: TracedCall): void {
      add(run, () => {
        const code = error ? (Failed.safeParse(value).data?.error.code ?? "tool_failed") : undefined;
        // The name of an unknown tool is the model's own words, and a code may be a server's.
        const name = isConfidential() && !isTool() ? "unknown" : call.toolName;
        return {
          ...{ operation: "execute_tool" as const, of: name, path: [step, call.callId], startedAt },
          attributes: {
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.callId,
            "colloquy.step": step,
            "error.type": isConfidential() && code !== undefined && !isOwnCode(code) ? "tool_failed" : code,
            "gen_ai.tool.call.arguments": content(call.input),
            "gen_ai.tool.call.result": content(value),
          },
        };
      });
    },

    flush(): void {
      if (sending || waiting.length === 0) return;
      sending = true;
      background(send());
    },
  };
};

const internalKind = 1;
const clientKind = 3;
const failedStatus = 2;

const hexId = (path: (string | number)[], bytes: number): string =>
  createHash("sha256")
    .update(path.join("/"))
    .digest("hex")
    .slice(0, 2 * bytes);

const otlpValue = (value: Value): object => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: otlpValue(value) }]));

/**
 * A model's input and output in the form of the conventions' message schemas:
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#capturing-instructions-inputs-and-outputs.
 */
const spanMessage = ({ role, content }: ModelMessage) => ({
  role,
  parts: typeof content === "string" ? [textPart(content)] : content.map(partOf),
});

const textPart = (content: string) => ({ type: "text", content });

const partOf = (part: Exclude<ModelMessage["content"], string>[number]): object => {
  if (part.type === "text") return textPart(part.text);
  if (part.type === "tool-call") {
    return { type: "tool_call", id: part.toolCallId, name: part.toolName, arguments: part.input };
  }
  if (part.type !== "tool-result") return { type: part.type };
  const { toolCallId: id, output } = part;
  return { type: "tool_call_response", id, response: "value" in output ? output.value : null };
};

/** Finish reasons whose names differ from ours. */
const finishReasons: Record<string, string> = { "tool-calls": "tool_call", "content-filter": "content_filter" };

const outputMessages = (came: { text: string; calls: CallRequest[]; finishReason: string }) => [
  {
    role: "assistant",
    parts: [
      ...(came.text === "" ? [] : [textPart(came.text)]),
      ...came.calls.map(({ callId, ...call }) => partOf({ ...call, type: "tool-call", toolCallId: callId })),
    ],
    finish_reason: finishReasons[came.finishReason] ?? came.finishReason,
  },
];

/**
 * `name=value,name=value`, values percent-encoded, as OpenTelemetry writes headers in a variable. Undefined where they
 * are malformed: they are secrets, so nothing says how.
 */
const headersOf = (text: string): Headers | undefined => {
  const headers = new Headers();
  try {
    for (const pair of text.split(",").filter((each) => each.trim() !== "")) {
      const [name = "", ...value] = pair.split("=");
      headers.set(name.trim(), decodeURIComponent(value.join("=").trim()));
    }
    return headers;
  } catch {
    return undefined;
  }
};
