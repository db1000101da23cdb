import type { EmbedderConfig } from "../../protocol/model-config.ts";
import { unlessAborted } from "../../shared/timeouts.ts";
import { classifyFailure } from "../failure.ts";
import type { ModelDeps } from "../model-spec.ts";
import { type Embedder, EmbedderError, maxDimensions } from "./embedder.ts";
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

const isSound = (vectors: ArrayLike<number>[], texts: number): boolean => {
  const dimensions = vectors[0]?.length ?? 0;
  return (
    vectors.length === texts &&
    dimensions > 0 &&
    dimensions <= maxDimensions &&
    vectors.every((vector) => vector.length === dimensions && Array.from(vector).every(Number.isFinite))
  );
};

/** Checks every answer, and turns every failure into an `EmbedderError`. */
const guarded = (embedder: Embedder): Embedder => ({
  ...embedder,
  embed: async (texts, signal) => {
    if (texts.length === 0) return { vectors: [], tokens: 0 };
    try {
      const asked = embedder.embed(
        texts.map((text) => text.slice(0, embedder.maxCharacters).toWellFormed()),
        signal,
      );
      const answer = await unlessAborted(signal, asked);
      if (isSound(answer.vectors, texts.length)) return answer;
    } catch (error) {
      const { code, message, retryAfterMs } = classifyFailure(error);
      throw new EmbedderError(code, message, { cause: error, retryAfterMs });
    }
    throw new EmbedderError("model_nonsense", "The embedder did not answer one vector of one length for each text.");
  },
});

/** The embedder that a config names, or null. Throws `model_misconfigured`, saying what to set. */
export const resolveEmbedder = async (
  config: EmbedderConfig = defaultEmbedder,
  deps: ModelDeps,
): Promise<Embedder | null> => {
  const id = embedderIdOf(config);
  if (id === null || config.provider === "none") return null;
  switch (config.provider) {
    case "feature-hashing":
      return featureHashing;
    case "workers-ai":
      return guarded((await import("./workers-ai.ts")).workersAiEmbedder(config, id, deps));
    case "openai-compatible":
      return guarded(await (await import("./openai-compatible.ts")).openAiEmbedder(config, id, deps));
  }
};
