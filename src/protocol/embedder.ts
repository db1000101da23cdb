import { z } from "zod";
import { Label } from "./text.ts";

/**
 * What makes vectors of texts, for search by likeness. `feature-hashing` is the embedded default: words and parts of
 * words hashed to places, no model, so it knows likeness of letters and none of meaning. `none`: search by words only.
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
      provider: z.literal("openai-compatible"),
      name: z.string().min(1).max(256),
      baseUrl: z.url({ protocol: /^https?$/, error: "must be an http(s) URL such as https://api.example.com/v1" }),
      /** The name of a secret of the workspace, never of the deployment. */
      apiKeySecret: Label.optional(),
      /** For models that can shorten their vectors. */
      dimensions: z.int().min(8).max(4096).optional(),
    }),
  ])
  .meta({ id: "EmbedderConfig" });
export type EmbedderConfig = z.infer<typeof EmbedderConfig>;
