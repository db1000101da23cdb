import { estimateTokenCount } from "tokenx";
import type { CallOptions, LanguageModel, ModelUsage, StreamPart } from "../models/language-model.ts";
import type { RehearsalSpec } from "../models/model-spec.ts";
import { partStream } from "../models/part-stream.ts";
import { pause } from "../shared/timeouts.ts";
import { type Action, decide } from "./decide.ts";
import { parsePrompt } from "./parse-prompt.ts";
import { route } from "./route.ts";
import { summarise } from "./summarise.ts";
import { toolsOf } from "./tool-view.ts";

/**
 * The embedded default model: deterministic, by plain rules, with no key and no network. It reads the same prompt as
 * any model, and says what it is when asked.
 */
const actOn = (options: CallOptions) => {
  const said = route(options.prompt) ?? summarise(options.prompt);
  if (said !== undefined) return written(options, { type: "text", text: said }, "rehearsal-1");
  const view = parsePrompt(options.prompt);
  return written(options, decide(view, toolsOf(options.tools)), `rehearsal-${view.callCount + 1}`);
};

/** An action as content of an answer. `text` is what is generated: the words, or a call's input as JSON. */
const written = (options: CallOptions, action: Action, id: string) => {
  const reason = action.type === "call" ? "tool-calls" : "stop";
  const text = action.type === "text" ? action.text : JSON.stringify(action.call.input);
  return {
    id,
    text,
    content:
      action.type === "text"
        ? { type: "text" as const, text }
        : { type: "tool-call" as const, toolCallId: id, toolName: action.call.toolName, input: text },
    usage: usageOf(options, text),
    finishReason: { unified: reason, raw: reason } as const,
  };
};

/** Cuts text into words, each with the blanks after it. Joined again they are the text; no character is split. */
const wordsOf = (text: string): string[] => text.match(/\S+\s*|\s+/g) ?? [];

const usageOf = (options: CallOptions, written: string): ModelUsage => {
  const input = estimateTokenCount(JSON.stringify([options.prompt, options.tools ?? []]));
  const output = Math.max(1, estimateTokenCount(written));
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
};

async function* speak(options: CallOptions, deltasPerSecond: number): AsyncGenerator<StreamPart> {
  const { id, text, content, usage, finishReason } = actOn(options);
  const signal = options.abortSignal;
  const started = Date.now();
  yield { type: "stream-start", warnings: [] };
  if (content.type === "text") yield { type: "text-start", id };
  else yield { type: "tool-input-start", id, toolName: content.toolName };
  for (const [index, delta] of wordsOf(text).entries()) {
    signal?.throwIfAborted();
    if (deltasPerSecond > 0) await pause(started + (index * 1000) / deltasPerSecond - Date.now(), signal);
    yield { type: content.type === "text" ? "text-delta" : "tool-input-delta", id, delta };
  }
  if (content.type === "text") yield { type: "text-end", id };
  else {
    yield { type: "tool-input-end", id };
    yield content;
  }
  yield { type: "finish", usage, finishReason };
}

export const createRehearsalModel = (spec: Pick<RehearsalSpec, "name" | "deltasPerSecond">): LanguageModel => ({
  specificationVersion: "v4",
  provider: "rehearsal",
  modelId: spec.name,
  supportedUrls: {},
  doGenerate: async (options) => {
    const { content, usage, finishReason } = actOn(options);
    return { content: [content], usage, finishReason, warnings: [] };
  },
  doStream: async (options) => {
    options.abortSignal?.throwIfAborted();
    return { stream: partStream(speak(options, spec.deltasPerSecond)) };
  },
});
