import { createHash } from "node:crypto";
import type { ModelMessage } from "ai";
import type { CallRequest } from "../records.ts";

/** Spans as OTLP's JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. */
type Value =
  | { stringValue: string }
  | { boolValue: boolean }
  | { intValue: string }
  | { doubleValue: number }
  | { arrayValue: { values: Value[] } };

const spanKinds = { internal: 1, client: 3 } as const;
const failedStatus = 2;
const nanosecondsPerMillisecond = 1_000_000n;

const otlpValue = (value: AttributeValue): Value => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (attributes: Span["attributes"]) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: otlpValue(value) }]));

const nanoseconds = (milliseconds: number): string =>
  String(BigInt(Math.round(milliseconds)) * nanosecondsPerMillisecond);

export const otlpOf = (serviceName: string, spans: Span[]): object => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf({ [names.serviceName]: serviceName }) },
      scopeSpans: [
        {
          scope: { name: "colloquy" },
          spans: spans.map(({ startedAt, endedAt, kind, attributes, failed, ...ids }) => ({
            ...ids,
            kind: spanKinds[kind],
            startTimeUnixNano: nanoseconds(startedAt),
            endTimeUnixNano: nanoseconds(endedAt),
            attributes: attributesOf(attributes),
            status: failed ? { code: failedStatus } : {},
          })),
        },
      ],
    },
  ],
});

export type AttributeValue = string | number | boolean | string[];

/** One action of a run. Times are milliseconds since the epoch. */
export type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: "internal" | "client";
  startedAt: number;
  endedAt: number;
  attributes: Record<string, AttributeValue | undefined>;
  failed: boolean;
};

const hexId = (text: string, bytes: number): string =>
  createHash("sha256")
    .update(text)
    .digest("hex")
    .slice(0, 2 * bytes);

/** A run is one trace. Ids derive from the run, so that one that was cut goes on in the same trace. */
export const traceIdOf = (runId: string): string => hexId(runId, 16);
export const spanIdOf = (...path: (string | number)[]): string => hexId(path.join("/"), 8);

/**
 * The names that spans carry: OpenTelemetry's semantic conventions for generative AI, which still move, so they are
 * here and nowhere else (https://opentelemetry.io/docs/specs/semconv/gen-ai/). Other names are `colloquy.*`.
 */
export const names = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  agentId: "gen_ai.agent.id",
  agentName: "gen_ai.agent.name",
  requestModel: "gen_ai.request.model",
  stream: "gen_ai.request.stream",
  temperature: "gen_ai.request.temperature",
  maxTokens: "gen_ai.request.max_tokens",
  finishReasons: "gen_ai.response.finish_reasons",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  toolCallId: "gen_ai.tool.call.id",
  instructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  errorType: "error.type",
  serviceName: "service.name",
  workspaceId: "colloquy.workspace.id",
  runId: "colloquy.run.id",
  runStatus: "colloquy.run.status",
  spaceIds: "colloquy.space.ids",
  step: "colloquy.step",
  tokensEstimated: "colloquy.usage.estimated",
} as const;

export const operations = { run: "invoke_agent", step: "chat", call: "execute_tool" } as const;

/**
 * A model's input and output in the form of the conventions' message schemas:
 * https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#capturing-instructions-inputs-and-outputs.
 */
type Part = { type: string; [field: string]: unknown };
type SpanMessage = { role: string; parts: Part[]; finish_reason?: string };

export const textPart = (content: string): Part => ({ type: "text", content });

const callPart = (id: string, name: string, input: unknown): Part => ({
  type: "tool_call",
  id,
  name,
  arguments: input,
});

const partOf = (part: Exclude<ModelMessage["content"], string>[number]): Part => {
  if (part.type === "text") return textPart(part.text);
  if (part.type === "tool-call") return callPart(part.toolCallId, part.toolName, part.input);
  if (part.type !== "tool-result") return { type: part.type };
  const { toolCallId: id, output } = part;
  return { type: "tool_call_response", id, response: "value" in output ? output.value : null };
};

export const inputMessages = (messages: ModelMessage[]): SpanMessage[] =>
  messages.map(({ role, content }) => ({
    role,
    parts: typeof content === "string" ? [textPart(content)] : content.map(partOf),
  }));

/** Finish reasons whose names differ from ours. */
const finishReasons: Record<string, string> = { "tool-calls": "tool_call", "content-filter": "content_filter" };

export const outputMessages = (came: { text: string; calls: CallRequest[]; finishReason: string }): SpanMessage[] => [
  {
    role: "assistant",
    parts: [
      ...(came.text === "" ? [] : [textPart(came.text)]),
      ...came.calls.map(({ callId, toolName, input }) => callPart(callId, toolName, input)),
    ],
    finish_reason: finishReasons[came.finishReason] ?? came.finishReason,
  },
];
