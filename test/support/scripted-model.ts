import { APICallError } from "ai";
import type {
  CallOptions,
  GenerateResult,
  LanguageModel,
  ModelFinishReason,
  ModelUsage,
  StreamPart,
} from "../../src/models/language-model.ts";
import type { ModelSpec } from "../../src/models/model-spec.ts";
import { providers } from "../../src/models/models.ts";
import { partStream } from "../../src/models/part-stream.ts";
import { createGate, type Gate } from "./gate.ts";

/** One thing that a scripted step does, in order. */
export type ScriptedPart =
  | { type: "text"; deltas: string[] }
  | { type: "reasoning"; deltas: string[] }
  | { type: "call"; toolName: string; id?: string | undefined; deltas: string[] }
  /** A tool call that is begun and never made. */
  | { type: "begun"; toolName: string; deltas: string[] }
  /** Nothing more comes until the gate is opened (or the call is aborted). */
  | { type: "gate"; gate: Gate }
  /** An `error` part, as providers send it inside a stream; the stream then ends. */
  | { type: "error"; error: unknown }
  /** The stream itself breaks off. */
  | { type: "cut"; error: unknown }
  /** Nothing comes any more, until the call is aborted. */
  | { type: "stall" };

export type ScriptedStep = {
  parts: ScriptedPart[];
  /** The call fails before anything is streamed. */
  refusal?: unknown;
  /** Left out: 100 in, 10 out. `null`: the provider tells none. */
  usage?: { inputTokens: number; outputTokens: number } | null;
  finishReason?: ModelFinishReason["unified"];
};

/** A script: its steps in order, or a function of the call. */
export type Script = ScriptedStep[] | ((call: CallOptions, index: number) => ScriptedStep | Promise<ScriptedStep>);

export type ScriptedModel = LanguageModel & {
  /** The options of every call so far; `calls[n].prompt` is what the model was given. */
  readonly calls: CallOptions[];
  /** Adds steps to a script that was given as a list. */
  push(...steps: ScriptedStep[]): void;
  /** Resolves when the model has been called `count` times. */
  called(count: number): Promise<void>;
};

const cut = (text: string, at: number[]): string[] =>
  [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length)).filter((delta) => delta !== "");

/** Text, as one delta or as several. */
export const text = (...deltas: string[]): ScriptedPart => ({ type: "text", deltas });
export const reasoning = (...deltas: string[]): ScriptedPart => ({ type: "reasoning", deltas });
/** A tool call; its JSON is cut at the given characters. */
export const call = (toolName: string, input: unknown, cuts: number[] = []): ScriptedPart => ({
  type: "call",
  toolName,
  deltas: cut(JSON.stringify(input), cuts),
});
/** A tool call whose input deltas are given as they are, so that they need not be JSON. */
export const rawCall = (toolName: string, ...deltas: string[]): ScriptedPart => ({ type: "call", toolName, deltas });
/** A tool call whose input begins like this, and which never comes. */
export const begunCall = (toolName: string, ...deltas: string[]): ScriptedPart => ({ type: "begun", toolName, deltas });
export const waitAt = (gate: Gate): ScriptedPart => ({ type: "gate", gate });
export const errorPart = (error: unknown): ScriptedPart => ({ type: "error", error });
export const cutStream = (error: unknown = new TypeError("terminated")): ScriptedPart => ({ type: "cut", error });
export const stall: ScriptedPart = { type: "stall" };
export const step = (...parts: ScriptedPart[]): ScriptedStep => ({ parts });
/** The answer of a provider that refuses a request. */
export const apiError = (
  statusCode: number,
  more: { message?: string; responseHeaders?: Record<string, string>; responseBody?: string } = {},
): APICallError =>
  new APICallError({ message: "no", url: "https://model.test/v1", requestBodyValues: {}, statusCode, ...more });

/** A step that fails at once, such as with an `apiError`. */
export const refusal = (error: unknown): ScriptedStep => ({ parts: [], refusal: error });

/** A living agent's usual cycle: enter, say, sum up. */
export const answer = (spaceId: string, words: string): ScriptedStep[] => [
  step(call("enter_space", { spaceId })),
  step(call("send_message", { text: words })),
  step(text("Answered.")),
];

const usageOf = (usage: ScriptedStep["usage"]): ModelUsage => {
  const told = usage === undefined ? { inputTokens: 100, outputTokens: 10 } : usage;
  return {
    inputTokens: { total: told?.inputTokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: told?.outputTokens, text: undefined, reasoning: undefined },
  };
};

const finishOf = (scripted: ScriptedStep): ModelFinishReason => {
  const called = scripted.parts.some((part) => part.type === "call");
  return { unified: scripted.finishReason ?? (called ? "tool-calls" : "stop"), raw: undefined };
};

const untilAborted = (signal: AbortSignal | undefined): Promise<never> =>
  new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

async function* play(scripted: ScriptedStep, options: CallOptions, index: number): AsyncGenerator<StreamPart> {
  yield { type: "stream-start", warnings: [] };
  for (const [place, part] of scripted.parts.entries()) {
    options.abortSignal?.throwIfAborted();
    const id = `${index}-${place}`;
    switch (part.type) {
      case "text":
      case "reasoning":
        yield { type: `${part.type}-start`, id };
        for (const delta of part.deltas) yield { type: `${part.type}-delta`, id, delta };
        yield { type: `${part.type}-end`, id };
        break;
      case "call": {
        const callId = part.id ?? `call-${id}`;
        yield { type: "tool-input-start", id: callId, toolName: part.toolName };
        for (const delta of part.deltas) yield { type: "tool-input-delta", id: callId, delta };
        yield { type: "tool-input-end", id: callId };
        yield { type: "tool-call", toolCallId: callId, toolName: part.toolName, input: part.deltas.join("") };
        break;
      }
      case "begun":
        yield { type: "tool-input-start", id: `begun-${id}`, toolName: part.toolName };
        for (const delta of part.deltas) yield { type: "tool-input-delta", id: `begun-${id}`, delta };
        break;
      case "gate":
        part.gate.reach();
        await Promise.race([part.gate.opened, untilAborted(options.abortSignal)]);
        break;
      case "error":
        yield { type: "error", error: part.error };
        yield { type: "finish", usage: usageOf(scripted.usage), finishReason: { unified: "error", raw: undefined } };
        return;
      case "cut":
        throw part.error;
      case "stall":
        await untilAborted(options.abortSignal);
    }
  }
  yield { type: "finish", usage: usageOf(scripted.usage), finishReason: finishOf(scripted) };
}

const generated = async (parts: AsyncGenerator<StreamPart>): Promise<GenerateResult> => {
  const content: GenerateResult["content"] = [];
  const texts = new Map<string, { type: "text"; text: string }>();
  for await (const part of parts) {
    if (part.type === "text-start") {
      const block = { type: "text" as const, text: "" };
      texts.set(part.id, block);
      content.push(block);
    } else if (part.type === "text-delta") {
      const block = texts.get(part.id);
      if (block) block.text += part.delta;
    } else if (part.type === "tool-call") content.push(part);
    else if (part.type === "error") throw part.error;
    else if (part.type === "finish") {
      return { content, finishReason: part.finishReason, usage: part.usage, warnings: [] };
    }
  }
  throw new Error("a scripted step always finishes");
};

/** A model whose every answer is given as data. Asked more often than the script has steps, it fails the call. */
export const scriptedModel = (script: Script = []): ScriptedModel => {
  const calls: CallOptions[] = [];
  const waiting = new Map<number, Gate>();
  const steps = Array.isArray(script) ? [...script] : [];
  const begin = async (options: CallOptions): Promise<AsyncGenerator<StreamPart>> => {
    const index = calls.push(options) - 1;
    for (const [count, gate] of waiting) if (calls.length >= count) gate.open();
    const scripted = Array.isArray(script) ? steps[index] : await script(options, index);
    if (!scripted) throw new Error(`The scripted model was called ${index + 1} times; its script has fewer steps.`);
    if (scripted.refusal !== undefined) throw scripted.refusal;
    return play(scripted, options, index);
  };
  return {
    specificationVersion: "v4",
    provider: "scripted",
    modelId: "scripted",
    supportedUrls: {},
    calls,
    push: (...more) => {
      steps.push(...more);
    },
    called: (count) => {
      const gate = waiting.get(count) ?? createGate();
      waiting.set(count, gate);
      if (calls.length >= count) gate.open();
      return gate.opened;
    },
    doStream: async (options) => ({ stream: partStream(await begin(options)) }),
    doGenerate: async (options) => generated(await begin(options)),
  };
};

/**
 * Puts a model (or one for each config, such as by `spec.name`) in the place of the rehearsal provider's.
 * Returns what puts the real one back.
 */
export const installModel = (model: LanguageModel | ((spec: ModelSpec) => LanguageModel)): (() => void) => {
  const before = providers.rehearsal;
  providers.rehearsal = async (spec) => (typeof model === "function" ? model(spec) : model);
  return () => {
    providers.rehearsal = before;
  };
};
