import { createWorkersAI } from "workers-ai-provider";
import { ColloquyError } from "../shared/errors.ts";
import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, WorkersAiSpec } from "./model-spec.ts";

/** A model of Workers AI, through the deployment's binding. */
export const createWorkersAiModel = (spec: WorkersAiSpec, deps: ModelDeps): LanguageModel => {
  if (!deps.env.AI) {
    throw new ColloquyError(
      "model_misconfigured",
      `The model ${spec.name} needs the Workers AI binding, and this deployment has none: add [ai] binding = "AI" to wrangler.toml and run it with a Cloudflare account, or choose another provider.`,
    );
  }
  return createWorkersAI({ binding: deps.env.AI })(spec.name);
};
