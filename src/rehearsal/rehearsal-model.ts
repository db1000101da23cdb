import { estimateTokenCount } from "tokenx";
import type { CallOptions, LanguageModel, ModelUsage, StreamPart } from "../models/language-model.ts";
import type { RehearsalSpec } from "../models/model-spec.ts";
import { partStream } from "../models/part-stream.ts";
import { type Action, decide } from "./decide.ts";
import { parsePrompt } from "./parse-prompt.ts";
import { route } from "./route.ts";
import { summarise } from "./summarise.ts";
import { toolsOf } from "./tool-view.ts";

/**
 * The embedded default model: deterministic, by plain rules, with no key and no network. It reads the same prompt as
 * any model, and says what it is when asked.
 */
const actOn = (options: CallOptions): { action: Action; callId: string } => {
  const said = route(options.prompt) ?? summarise(options.prompt);
  if (said !== undefined) return { action: { type: "text", text: said }, callId: "rehearsal-1" };
  const view = parsePrompt(options.prompt);
  return { action: decide(view, toolsOf(options.tools)), callId: `rehearsal-${view.callCount + 1}` };
};

/** Cuts text into words, each with the blanks after it. Joined again they are the text; no character is split. */
const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? [];

/** Resolves after `milliseconds`; rejects with the signal's reason as soon as it aborts. */
const pause = (milliseconds: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });

/** The generated text of an action: a call's input as JSON, or the words. */
const writtenOut = (action: Action): string =>
  action.type === "text" ? action.text : JSON.stringify(action.call.input);

const finishReasonOf = (action: Action) =>
  action.type === "call"
    ? { unified: "tool-calls" as const, raw: "tool-calls" }
    : { unified: "stop" as const, raw: "stop" };

const usageOf = (options: CallOptions, written: string): ModelUsage => {
  const input = estimateTokenCount(JSON.stringify([options.prompt, options.tools ?? []]));
  const output = Math.max(1, estimateTokenCount(written));
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
};

async function* speak(options: CallOptions, deltasPerSecond: number): AsyncGenerator<StreamPart> {
  const { action, callId } = actOn(options);
  const written = writtenOut(action);
  const signal = options.abortSignal;
  const started = Date.now();
  const inTime = async (index: number): Promise<void> => {
    signal?.throwIfAborted();
    if (deltasPerSecond > 0) await pause(started + (index * 1000) / deltasPerSecond - Date.now(), signal);
  };
  const id = callId;
  yield { type: "stream-start", warnings: [] };
  if (action.type === "text") yield { type: "text-start", id };
  else yield { type: "tool-input-start", id, toolName: action.call.toolName };
  for (const [index, delta] of wordsOf(written).entries()) {
    await inTime(index);
    yield { type: action.type === "text" ? "text-delta" : "tool-input-delta", id, delta };
  }
  if (action.type === "text") yield { type: "text-end", id };
  else {
    yield { type: "tool-input-end", id };
    yield { type: "tool-call", toolCallId: callId, toolName: action.call.toolName, input: written };
  }
  yield { type: "finish", usage: usageOf(options, written), finishReason: finishReasonOf(action) };
}

export const createRehearsalModel = (spec: Pick<RehearsalSpec, "name" | "deltasPerSecond">): LanguageModel => ({
  specificationVersion: "v4",
  provider: "rehearsal",
  modelId: spec.name,
  supportedUrls: {},
  doGenerate: async (options) => {
    const { action, callId } = actOn(options);
    const written = writtenOut(action);
    return {
      content: [
        action.type === "text"
          ? { type: "text", text: written }
          : { type: "tool-call", toolCallId: callId, toolName: action.call.toolName, input: written },
      ],
      finishReason: finishReasonOf(action),
      usage: usageOf(options, written),
      warnings: [],
    };
  },
  doStream: async (options) => {
    options.abortSignal?.throwIfAborted();
    return { stream: partStream(speak(options, spec.deltasPerSecond)) };
  },
});
