import type { LanguageModel as AnyLanguageModel } from "ai";

/** The one version of the AI SDK's model interface that Colloquy builds on; the types follow the installed `ai`. */
export type LanguageModel = Extract<AnyLanguageModel, { specificationVersion: "v4" }>;

export type CallOptions = Parameters<LanguageModel["doStream"]>[0];
export type ModelPrompt = CallOptions["prompt"];
export type PromptMessage = ModelPrompt[number];
export type GenerateResult = Awaited<ReturnType<LanguageModel["doGenerate"]>>;
export type StreamResult = Awaited<ReturnType<LanguageModel["doStream"]>>;
export type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;
export type ModelUsage = GenerateResult["usage"];
export type ModelFinishReason = GenerateResult["finishReason"];

/** The model with another way to stream. Not a spread: what a model answers may stand in its class. */
export const withStream = (
  model: LanguageModel,
  doStream: (options: CallOptions) => Promise<StreamResult>,
): LanguageModel => ({
  specificationVersion: model.specificationVersion,
  provider: model.provider,
  modelId: model.modelId,
  supportedUrls: model.supportedUrls,
  doGenerate: (options) => model.doGenerate(options),
  doStream,
});
