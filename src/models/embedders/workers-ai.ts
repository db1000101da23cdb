import { z } from "zod";
import type { EmbedderConfig } from "../../protocol/model-config.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { estimatedTokens } from "../billed-tokens.ts";
import type { ModelDeps } from "../model-spec.ts";
import type { Embedder } from "./embedder.ts";

type WorkersAiEmbedder = Extract<EmbedderConfig, { provider: "workers-ai" }>;

const Answer = z.object({ data: z.array(z.array(z.number())) });

/** An embedding model of Workers AI, through the deployment's binding. It tells no usage: tokens are estimated. */
export const workersAiEmbedder = ({ name }: WorkersAiEmbedder, id: string, { env }: ModelDeps): Embedder => {
  const { AI } = env;
  if (!AI) {
    throw new ColloquyError(
      "model_misconfigured",
      `The embedder ${name} needs the Workers AI binding, and this deployment has none: add [ai] binding = "AI" to wrangler.toml and run it with a Cloudflare account, or choose another provider.`,
    );
  }
  const run: (model: string, input: { text: string[] }) => Promise<unknown> = (model, input) =>
    Reflect.apply(AI.run, AI, [model, input]);
  return {
    id,
    isEmbedded: false,
    maxTexts: 100,
    maxCharacters: 2000,
    leastLikeness: 0,
    sureLikeness: 0,
    embed: async (texts) => {
      const answer = Answer.safeParse(await run(name, { text: texts }));
      if (answer.success) return { vectors: answer.data.data, tokens: estimatedTokens(texts) };
      throw new ColloquyError("model_nonsense", "The embedder's answer is no list of vectors.");
    },
  };
};
