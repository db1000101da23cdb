import { createHash } from "node:crypto";
import type { ModelMessage } from "ai";
import type { CallRequest } from "../records.ts";

/** Spans as OTLP's JSON: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. */
export type AttributeValue = string | number | boolean | string[];
type Attributes = Record<string, AttributeValue | undefined>;

/** One action of a run. Times are milliseconds since the epoch. */
export type Span = {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: "internal" | "client";
  startedAt: number;
  endedAt: number;
  attributes: Attributes;
  failed: boolean;
};

const spanKinds = { internal: 1, client: 3 } as const;
const failedStatus = 2;
const nanosecondsPerMillisecond = 1_000_000n;

const otlpValue = (value: AttributeValue): object => {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(otlpValue) } };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "string") return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: otlpValue(value) }]));

const nanoseconds = (milliseconds: number): string =>
  String(BigInt(Math.round(milliseconds)) * nanosecondsPerMillisecond);

export const otlpOf = (serviceName: string, spans: Span[]): object => {
  const sent = spans.map(({ startedAt, endedAt, kind, attributes, failed, ...ids }) => ({
    ...ids,
    kind: spanKinds[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: attributesOf(attributes),
    status: failed ? { code: failedStatus } : {},
  }));
  const resource = { attributes: attributesOf({ "service.name": serviceName }) };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "colloquy" }, spans: sent }] }] };
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
