import * as z from "zod";
import { Label } from "./text.ts";

const sampling = {
  temperature: z.number().min(0).max(2).optional(),
  maxOutputTokens: z.int().min(16).max(200_000).optional(),
};

/** The embedded default: a deterministic model that follows plain rules. It is not an LLM and says so. */
export const RehearsalModel = z.strictObject({
  provider: z.literal("rehearsal"),
  name: z.string().max(64).optional(),
  /** Its speed in deltas a second; 0 is as fast as possible. */
  deltasPerSecond: z.number().min(0).max(1000).default(25),
  ...sampling,
});

export const WorkersAiModel = z.strictObject({
  provider: z.literal("workers-ai"),
  name: z.string().regex(/^@[a-z]+\//, "must be a Workers AI model, such as @cf/meta/llama-3.3-70b-instruct-fp8-fast"),
  ...sampling,
});

const openAiCompatible = {
  provider: z.literal("openai-compatible"),
  name: z.string().min(1).max(256),
  baseUrl: z.url({ protocol: /^https?$/, error: "must be an http(s) URL such as https://api.example.com/v1" }),
  /** The name of a secret of the workspace, never of the deployment. */
  apiKeySecret: Label.optional(),
};

export const OpenAiCompatibleModel = z.strictObject({ ...openAiCompatible, ...sampling });

/** A model that the operator named, with a fixed address and a key of the deployment. */
export const AliasedModel = z.strictObject({ alias: Label, ...sampling });

export const ModelConfig = z
  .union([z.discriminatedUnion("provider", [RehearsalModel, WorkersAiModel, OpenAiCompatibleModel]), AliasedModel])
  .meta({ id: "ModelConfig" });
export type ModelConfig = z.infer<typeof ModelConfig>;

/**
 * Makes vectors of texts, for search by likeness. `feature-hashing` is the embedded default: it hashes words and parts
 * of words to places, without a model. It knows likeness of letters, not of meaning. `none`: search by words only.
 */
export const EmbedderConfig = z
  .discriminatedUnion("provider", [
    z.strictObject({ provider: z.literal("feature-hashing") }),
    z.strictObject({ provider: z.literal("none") }),
    z.strictObject({
      provider: z.literal("workers-ai"),
      name: z
        .string()
        .max(256)
        .regex(/^@[a-z]+\//, "must be an embedding model of Workers AI, such as @cf/baai/bge-m3"),
    }),
    z.strictObject({
      ...openAiCompatible,
      /** For models that can shorten their vectors. */
      dimensions: z.int().min(8).max(4096).optional(),
    }),
  ])
  .meta({ id: "EmbedderConfig" });
export type EmbedderConfig = z.infer<typeof EmbedderConfig>;
