import { streamText, type ToolCallPart } from "ai";
import { billedTokens } from "../../models/billed-tokens.ts";
import type { ResolvedModel } from "../../models/models.ts";
import type { CallRequest } from "../../protocol/exported-history.ts";
import type { Usage } from "../../protocol/run.ts";
import { textBytes } from "../../protocol/text.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxCallsPerStep, maxInvalidCharacters, maxStepBytes, modelStallMs } from "../bounds.ts";
import type { Composed } from "../context/sections.ts";
import { estimateText } from "../context/tokens.ts";
import { excerpt } from "../context/wording.ts";
import type { LiveRun } from "./run-services.ts";
import type { Speech } from "./speech.ts";

/** One generation of a model: its text, its calls and its usage. Nothing of it is stored yet. */
export type Generation = {
  text: string;
  calls: CallRequest[];
  usage: Usage;
  durationMs: number;
  finishReason: string;
};

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

/** The SDK's message may repeat the whole input, so it is cut. */
const messageOf = (error: unknown): string =>
  excerpt(error instanceof Error ? error.message : String(error), maxInvalidCharacters);

const isUnknownTool = (error: unknown): boolean => error instanceof Error && error.name === "AI_NoSuchToolError";

/**
 * Streams one step. Tools are declared without `execute`: the calls are ours to run. Throws what the provider or
 * the network threw; `models/failure.ts` says what it means.
 */
export const generate = async (input: GenerateInput): Promise<Generation> => {
  const startedAt = input.clock.now();
  const calls: CallRequest[] = [];
  let begun = 0;
  const numbers = new Map<string, number>();
  /**
   * Calls are numbered in the order in which the model began them; the provider's own ids lead nowhere, and may come
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
  let billed: { inputTokens: number | undefined; outputTokens: number | undefined } | undefined;
  /** The SDK keeps a copy of the stream, which goes on when ours is left: what is left has to be aborted. */
  const left = new AbortController();
  let silence: ReturnType<typeof setTimeout> | undefined;
  const listen = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => left.abort(), modelStallMs);
  };
  listen();

  const result = streamText({
    model: input.model.model,
    instructions: input.composed.instructions,
    messages: input.model.adapt(input.composed.messages),
    tools: input.composed.tools,
    maxRetries: 0,
    maxOutputTokens: input.maxOutputTokens,
    ...(input.temperature === undefined ? {} : { temperature: input.temperature }),
    abortSignal: AbortSignal.any([input.signal, left.signal]),
    // Errors come as parts of the stream; the default would log them with what they hold.
    onError: () => undefined,
  });

  try {
    for await (const part of result.fullStream) {
      listen();
      input.progressed();
      switch (part.type) {
        case "text-delta":
          weigh(part.text);
          text += part.text;
          break;
        case "tool-input-start":
          input.speech.begin(numberOf(part.id), part.toolName);
          break;
        case "tool-input-delta":
          weigh(part.delta);
          input.speech.delta(numberOf(part.id), part.delta);
          break;
        case "tool-call": {
          const streamed = numbers.has(part.toolCallId);
          const index = numberOf(part.toolCallId);
          if (!streamed) {
            // A provider that sends calls whole: the speech is one delta.
            const whole = JSON.stringify(part.input) ?? "";
            weigh(whole);
            input.speech.begin(index, part.toolName);
            input.speech.delta(index, whole);
          }
          numbers.delete(part.toolCallId);
          const invalid = "invalid" in part && part.invalid === true;
          calls.push({
            callId: input.callId(index),
            index,
            toolName: part.toolName,
            input: part.input ?? {},
            ...(invalid
              ? {
                  invalid: {
                    code: isUnknownTool(part.error) ? ("tool_unknown" as const) : ("tool_input_invalid" as const),
                    message: messageOf(part.error),
                  },
                }
              : {}),
          });
          break;
        }
        case "finish-step":
          finishReason = part.finishReason;
          billed = part.usage;
          break;
        case "error":
          throw part.error;
        case "abort":
          throw input.signal.aborted
            ? input.signal.reason
            : new ColloquyError("model_stalled", `the model was silent for longer than modelStallMs (${modelStallMs})`);
      }
    }
  } finally {
    clearTimeout(silence);
    left.abort();
  }
  calls.sort((one, other) => one.index - other.index);
  return {
    // A half of a character would be refused by who is sent it again.
    text: text.toWellFormed(),
    calls,
    usage: usageOf(billed, input.composed.tokens, text, calls),
    durationMs: input.clock.now() - startedAt,
    finishReason,
  };
};

/** Billed tokens; our estimate where the provider told none, or nothing that can be. */
const usageOf = (
  billed: { inputTokens: number | undefined; outputTokens: number | undefined } | undefined,
  estimatedInput: number,
  text: string,
  calls: CallRequest[],
): Usage => {
  const inputTokens = billedTokens(billed?.inputTokens);
  const said = estimateText(text) + calls.reduce((sum, call) => sum + estimateText(JSON.stringify(call.input)), 0);
  const outputTokens = billedTokens(billed?.outputTokens) || said;
  if (inputTokens > 0) return { inputTokens, outputTokens, estimated: false };
  return { inputTokens: estimatedInput, outputTokens, estimated: true };
};

/** The assistant message as the journal keeps it. Providers refuse empty content, so silence is said in words. */
export const assistantContent = (
  generation: Generation,
): string | (ToolCallPart | { type: "text"; text: string })[] => {
  const text = generation.text.trim();
  if (generation.calls.length === 0) return text === "" ? "(no answer)" : text;
  return [
    ...(text === "" ? [] : [{ type: "text" as const, text }]),
    ...generation.calls.map((call) => ({
      type: "tool-call" as const,
      toolCallId: call.callId,
      toolName: call.toolName,
      // What could not be parsed is shown back as it came, in a shape that every provider takes.
      input: typeof call.input === "object" && call.input !== null ? call.input : { unparsed: String(call.input) },
    })),
  ];
};
