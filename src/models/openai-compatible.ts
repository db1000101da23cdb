import { type LanguageModel, type StreamPart, withStream } from "./language-model.ts";
import type { ModelDeps, OpenAiCompatibleSpec } from "./model-spec.ts";
import { openAiServer } from "./provider-access.ts";

/** An error that the provider sent inside its stream, without the key. */
const partWithoutKey = (part: StreamPart, apiKey: string | undefined): StreamPart => {
  if (part.type !== "error" || !apiKey || part.error instanceof Error) return part;
  const text = JSON.stringify(part.error) ?? "null";
  const error: unknown = JSON.parse(text, (_, held: unknown) =>
    typeof held === "string" ? held.replaceAll(apiKey, "[redacted]") : held,
  );
  return { type: "error", error };
};

/** A model behind any address that speaks OpenAI's chat completions; the spec's address is already checked. */
export const createOpenAiCompatibleModel = (spec: OpenAiCompatibleSpec, deps: ModelDeps): LanguageModel => {
  const model = openAiServer(spec, deps).chatModel(spec.name);
  return withStream(model, async (options) => {
    const result = await model.doStream(options);
    const clean = new TransformStream<StreamPart, StreamPart>({
      transform: (part, controller) => controller.enqueue(partWithoutKey(part, spec.apiKey)),
    });
    return { ...result, stream: result.stream.pipeThrough(clean) };
  });
};
