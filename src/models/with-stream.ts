import type { CallOptions, LanguageModel, StreamResult } from "./language-model.ts";

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
