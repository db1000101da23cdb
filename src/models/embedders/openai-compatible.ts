import type { EmbedderConfig } from "../../protocol/model-config.ts";
import { billedTokens, estimatedTokens } from "../billed-tokens.ts";
import type { ModelDeps } from "../model-spec.ts";
import { checkedBaseUrl, openAiServer, secretKey } from "../openai-access.ts";
import type { Embedder } from "./embedder.ts";

type OpenAiEmbedder = Extract<EmbedderConfig, { provider: "openai-compatible" }>;

/** A model behind any address that speaks OpenAI's embeddings. */
export const openAiEmbedder = async (config: OpenAiEmbedder, id: string, deps: ModelDeps): Promise<Embedder> => {
  const apiKey = config.apiKeySecret === undefined ? undefined : await secretKey(config.apiKeySecret, deps);
  const model = openAiServer({ baseUrl: checkedBaseUrl(config.baseUrl, deps), apiKey }, deps).embeddingModel(
    config.name,
  );
  const { dimensions } = config;
  return {
    id,
    isEmbedded: false,
    maxTexts: 100,
    maxCharacters: 8000,
    leastLikeness: 0,
    sureLikeness: 0,
    embed: async (values, abortSignal) => {
      const { embeddings, usage } = await model.doEmbed({
        values,
        abortSignal,
        ...(dimensions === undefined ? {} : { dimensions }),
      });
      return { vectors: embeddings, tokens: billedTokens(usage?.tokens) || estimatedTokens(values) };
    },
  };
};
