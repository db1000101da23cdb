import type { ModelMessage } from "ai";
import type { CallRequest } from "../records.ts";

/**
 * What a model was given and what it answered, in the form that the conventions' schemas of messages have:
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

/** Where they differ from what providers' reasons are called here. */
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
