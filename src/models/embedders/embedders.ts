import * as z from "zod";
import type { EmbedderConfig } from "../../protocol/model-config.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { unlessAborted } from "../../shared/timeouts.ts";
import { billedTokens, estimatedTokens } from "../billed-tokens.ts";
import { modelError } from "../failure.ts";
import type { ModelDeps } from "../model-spec.ts";
import { checkedBaseUrl, openAiServer, secretKey, workersAiBinding } from "../provider-access.ts";
import { type Embedder, maxDimensions } from "./embedder.ts";
import { featureHashing } from "./feature-hashing.ts";

/** For an agent whose config names no embedder. */
const defaultEmbedder: EmbedderConfig = { provider: "feature-hashing" };

/** The stable id of an embedder: the same model at the same address has the same id. Null where there is none. */
export const embedderIdOf = (config: EmbedderConfig = defaultEmbedder): string | null => {
  switch (config.provider) {
    case "none":
      return null;
    case "feature-hashing":
      return featureHashing.id;
    case "workers-ai":
      return `workers-ai/${config.name}`;
    case "openai-compatible":
      return `openai-compatible/${new URL(config.baseUrl).host}/${config.name}/${config.dimensions ?? ""}`;
  }
};

/** The embedder that a config names, or null. Throws `model_misconfigured`, saying what to set. */
export const resolveEmbedder = async (
  config: EmbedderConfig = defaultEmbedder,
  deps: ModelDeps,
): Promise<Embedder | null> => {
  switch (config.provider) {
    case "none":
      return null;
    case "feature-hashing":
      return featureHashing;
    case "workers-ai":
      return embedderOf(config, 2000, workersAi(config, deps));
    case "openai-compatible":
      return embedderOf(config, 8000, await openAi(config, deps));
  }
};

/** An embedder of a provider. Checks every answer, and turns every failure into a `modelError`. */
const embedderOf = (config: EmbedderConfig, maxCharacters: number, ask: Embedder["embed"]): Embedder => ({
  id: embedderIdOf(config) ?? "",
  isEmbedded: false,
  maxTexts: 100,
  maxCharacters,
  leastLikeness: 0,
  sureLikeness: 0,
  embed: async (texts, signal) => {
    if (texts.length === 0) return { vectors: [], tokens: 0 };
    try {
      const cut = texts.map((text) => text.slice(0, maxCharacters).toWellFormed());
      const answer = await unlessAborted(signal, ask(cut, signal));
      if (isSound(answer.vectors, texts.length)) return answer;
    } catch (error) {
      throw modelError(error);
    }
    throw new ColloquyError("model_nonsense", "The embedder did not answer one vector of one length for each text.");
  },
});

const isSound = (vectors: ArrayLike<number>[], texts: number): boolean => {
  const dimensions = vectors[0]?.length ?? 0;
  return (
    vectors.length === texts &&
    dimensions > 0 &&
    dimensions <= maxDimensions &&
    vectors.every((vector) => vector.length === dimensions && Array.from(vector).every(Number.isFinite))
  );
};

type Config<Provider> = Extract<EmbedderConfig, { provider: Provider }>;

const Vectors = z.object({ data: z.array(z.array(z.number())) });

/** An embedding model of Workers AI, through the deployment's binding. It tells no usage: tokens are estimated. */
const workersAi = ({ name }: Config<"workers-ai">, deps: ModelDeps): Embedder["embed"] => {
  const binding = workersAiBinding(`embedder ${name}`, deps);
  return async (texts) => {
    const answer = Vectors.safeParse(await Reflect.apply(binding.run, binding, [name, { text: texts }]));
    if (answer.success) return { vectors: answer.data.data, tokens: estimatedTokens(texts) };
    throw new ColloquyError("model_nonsense", "The embedder's answer is no list of vectors.");
  };
};

/** A model behind any address that speaks OpenAI's embeddings. */
const openAi = async (config: Config<"openai-compatible">, deps: ModelDeps): Promise<Embedder["embed"]> => {
  const { name, baseUrl, apiKeySecret, dimensions } = config;
  const use = { kind: "embedder", name, url: baseUrl } as const;
  const apiKey = apiKeySecret === undefined ? undefined : await secretKey(apiKeySecret, use, deps);
  const model = openAiServer({ baseUrl: checkedBaseUrl(baseUrl, deps), apiKey }, deps).embeddingModel(name);
  const options = dimensions === undefined ? {} : { dimensions };
  return async (values, abortSignal) => {
    const { embeddings, usage } = await model.doEmbed({ values, abortSignal, ...options });
    return { vectors: embeddings, tokens: billedTokens(usage?.tokens) || estimatedTokens(values) };
  };
};
