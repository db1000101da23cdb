import type { ModelMessage } from "ai";
import type { ModelConfig } from "../protocol/model-config.ts";
import { adapters } from "./adapt.ts";
import { deploymentKey, followAlias } from "./aliases.ts";
import { modelIdOf } from "./identify-model.ts";
import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
import { checkedBaseUrl, secretKey } from "./openai-address.ts";
import { createModel } from "./providers.ts";
import { unbroken } from "./unbroken.ts";

export type { LanguageModel } from "./language-model.ts";
export type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
export { providers } from "./providers.ts";

export type ResolvedModel = {
  model: LanguageModel;
  /** Names the model stably, for calibration of token estimates: the same model at the same address, the same id. */
  modelId: string;
  family: ModelFamily;
  /** Fits messages to what the family takes. Pure; what it made of a prefix stays the prefix. */
  adapt: (messages: ModelMessage[]) => ModelMessage[];
};

/** What a config says, with its alias followed, its key opened and its address checked. */
const specOf = async (config: ModelConfig, deps: ModelDeps): Promise<ModelSpec> => {
  const target = "alias" in config ? followAlias(config.alias, deps.env) : config;
  switch (target.provider) {
    case "rehearsal":
      return { provider: "rehearsal", name: target.name ?? "rehearsal", deltasPerSecond: target.deltasPerSecond };
    case "workers-ai":
      return { provider: "workers-ai", name: target.name };
    case "openai-compatible": {
      const baseUrl = checkedBaseUrl(target.baseUrl, deps);
      const apiKey =
        "apiKeySecret" in target && target.apiKeySecret !== undefined
          ? await secretKey(target.apiKeySecret, deps)
          : "apiKeyVariable" in target && target.apiKeyVariable !== undefined
            ? deploymentKey(target.apiKeyVariable, deps.env)
            : undefined;
      return { provider: "openai-compatible", name: target.name, baseUrl, apiKey };
    }
  }
};

/** The model that a config names. Every failure is a `ColloquyError` `model_misconfigured` that says what to set. */
export const resolveModel = async (config: ModelConfig, deps: ModelDeps): Promise<ResolvedModel> => {
  const spec = await specOf(config, deps);
  return {
    model: unbroken(await createModel(spec, deps)),
    modelId: modelIdOf(spec),
    family: spec.provider,
    adapt: adapters[spec.provider],
  };
};
