import type { ToolCallPart } from "ai";
import { billedTokens } from "../../models/billed-tokens.ts";
import type { ResolvedModel } from "../../models/models.ts";
import { streamModel } from "../../models/stream-model.ts";
import type { AssistantMeta, CallRequest } from "../../protocol/exported-history.ts";
import type { Usage } from "../../protocol/run.ts";
import { textBytes } from "../../protocol/text.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxCallsPerStep, maxStepBytes, modelStallMs } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import { noAnswer } from "../context/wording.ts";
import { estimateText } from "../tokens.ts";
import { refusedCall } from "../tools/input-issues.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";

/** One generation of a model: its text, its calls and its usage. Nothing of it is stored yet. */
export type Generation = Pick<AssistantMeta, "text" | "calls" | "usage" | "durationMs" | "finishReason">;

export type GenerateInput = Pick<LiveRun, "signal" | "progressed"> & {
  model: ResolvedModel;
  composed: Composed;
  temperature: number | undefined;
  maxOutputTokens: number;
  speech: Speech;
  clock: Clock;
  /** Makes the id of the step's call number `index`. */
  callId: (index: number) => string;
};

/**
 * Streams one step. Tools are declared without `execute`: the calls are ours to run. Throws what the provider or
 * the network threw; `models/failure.ts` says what it means.
 */
export const generate = async (input: GenerateInput): Promise<Generation> => {
  const { model, composed, temperature, maxOutputTokens, speech, clock, signal } = input;
  const startedAt = clock.now();
  const calls: CallRequest[] = [];
  let begun = 0;
  const numbers = new Map<string, number>();
  /**
   * Calls are numbered in the order in which the model began them. The provider's own ids lead nowhere, and may come
   * again once their call is whole.
   */
  const numberOf = (providerId: string): number => {
    const known = numbers.get(providerId);
    if (known !== undefined) return known;
    if (begun >= maxCallsPerStep) {
      throw new ColloquyError("model_nonsense", `a step may make at most ${maxCallsPerStep} calls (maxCallsPerStep)`);
    }
    numbers.set(providerId, begun);
    begun += 1;
    return begun - 1;
  };
  let text = "";
  let bytes = 0;
  const weigh = (more: string): void => {
    bytes += textBytes(more);
    if (bytes > maxStepBytes) {
      throw new ColloquyError("model_nonsense", `a step may say at most ${maxStepBytes} bytes (maxStepBytes)`);
    }
  };
  let finishReason = "unknown";
  let billed: Billed = {};
  const stalled = `the model was silent for longer than modelStallMs (${modelStallMs})`;
  const parts = streamModel({
    ...{ model: model.model, messages: model.adapt(composed.messages), temperature, maxOutputTokens, signal },
    instructions: composed.instructions,
    tools: composed.tools,
    stall: { afterMs: modelStallMs, message: stalled },
  });
  for await (const part of parts) {
    input.progressed();
    switch (part.type) {
      case "text-delta":
        weigh(part.text);
        text += part.text;
        break;
      case "tool-input-start":
        speech.begin(numberOf(part.id), part.toolName);
        break;
      case "tool-input-delta":
        weigh(part.delta);
        speech.delta(numberOf(part.id), part.delta);
        break;
      case "tool-call": {
        const { toolCallId, toolName } = part;
        const isStreamed = numbers.has(toolCallId);
        const index = numberOf(toolCallId);
        if (!isStreamed) {
          // A provider that sends calls whole: the speech is one delta.
          const whole = JSON.stringify(part.input) ?? "";
          weigh(whole);
          speech.begin(index, toolName);
          speech.delta(index, whole);
        }
        numbers.delete(toolCallId);
        const invalid = "invalid" in part && part.invalid === true ? { invalid: refusedCall(part.error) } : {};
        calls.push({ callId: input.callId(index), index, toolName, input: part.input ?? {}, ...invalid });
        break;
      }
      case "finish-step":
        finishReason = part.finishReason;
        billed = part.usage;
        break;
    }
  }
  calls.sort((one, other) => one.index - other.index);
  return {
    // Half a character would be refused by whoever is sent it again.
    text: text.toWellFormed(),
    calls,
    usage: usageOf(billed, composed.tokens, text, calls),
    durationMs: clock.now() - startedAt,
    finishReason,
  };
};

type Billed = { inputTokens?: number | undefined; outputTokens?: number | undefined };

/** Billed tokens; our estimate where the provider told none, or nothing that can be. */
export const usageOf = (billed: Billed, estimatedInput: number, text: string, calls: CallRequest[]): Usage => {
  const inputTokens = billedTokens(billed.inputTokens);
  const said = estimateText(text) + calls.reduce((sum, call) => sum + estimateText(JSON.stringify(call.input)), 0);
  const outputTokens = billedTokens(billed.outputTokens) || said;
  if (inputTokens > 0) return { inputTokens, outputTokens, estimated: false };
  return { inputTokens: estimatedInput, outputTokens, estimated: true };
};

/** The assistant message as the journal keeps it. Providers refuse empty content, so silence is said in words. */
export const assistantContent = (
  generation: Generation,
): string | (ToolCallPart | { type: "text"; text: string })[] => {
  const text = generation.text.trim();
  if (generation.calls.length === 0) return text === "" ? noAnswer : text;
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...generation.calls.map((call) => ({
      type: "tool-call" as const,
      toolCallId: call.callId,
      toolName: call.toolName,
      // Input that could not be parsed is shown back as it came, in a shape that every provider takes.
      input: typeof call.input === "object" && call.input !== null ? call.input : { unparsed: String(call.input) },
    })),
  ];
};
