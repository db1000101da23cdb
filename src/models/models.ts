import type { ModelMessage } from "ai";
import type { ModelConfig } from "../protocol/model-config.ts";
import { adapters } from "./adapt.ts";
import { type AliasTarget, deploymentKey, followAlias } from "./aliases.ts";
import { errorsAsParts } from "./errors-as-parts.ts";
import { modelIdOf } from "./identify-model.ts";
import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
import { checkedBaseUrl, secretKey } from "./openai-access.ts";
import { providers } from "./providers.ts";

export type { LanguageModel } from "./language-model.ts";
export type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
export { providers } from "./providers.ts";

export type ResolvedModel = {
  model: LanguageModel;
  /** Names the model stably, for calibration of token estimates: the same model at the same address, the same id. */
  modelId: string;
  family: ModelFamily;
  /** Fits messages to what the family takes. Pure. A longer conversation keeps the adapted form of a shorter one. */
  adapt: (messages: ModelMessage[]) => ModelMessage[];
};

type Target = Exclude<ModelConfig, { alias: string }> | AliasTarget;

/** The key of the workspace's secret, or the deployment's key where the operator's alias names one. */
const apiKeyOf = async (
  target: Extract<Target, { provider: "openai-compatible" }>,
  deps: ModelDeps,
): Promise<string | undefined> => {
  if ("apiKeySecret" in target && target.apiKeySecret !== undefined) return secretKey(target.apiKeySecret, deps);
  if ("apiKeyVariable" in target && target.apiKeyVariable !== undefined) {
    return deploymentKey(target.apiKeyVariable, deps.env);
  }
  return undefined;
};

type Created = { spec: ModelSpec; model: LanguageModel };

const createModel = async (target: Target, deps: ModelDeps): Promise<Created> => {
  switch (target.provider) {
    case "rehearsal": {
      const { provider, name = "rehearsal", deltasPerSecond } = target;
      const spec = { provider, name, deltasPerSecond };
      return { spec, model: await providers.rehearsal(spec, deps) };
    }
    case "workers-ai": {
      const spec = { provider: target.provider, name: target.name };
      return { spec, model: await providers["workers-ai"](spec, deps) };
    }
    case "openai-compatible": {
      const baseUrl = checkedBaseUrl(target.baseUrl, deps);
      const spec = { provider: target.provider, name: target.name, baseUrl, apiKey: await apiKeyOf(target, deps) };
      return { spec, model: await providers["openai-compatible"](spec, deps) };
    }
  }
};

/** The model that a config names. Every failure is a `ColloquyError` `model_misconfigured` that says what to set. */
export const resolveModel = async (config: ModelConfig, deps: ModelDeps): Promise<ResolvedModel> => {
  const target = "alias" in config ? followAlias(config.alias, deps.env) : config;
  const { spec, model } = await createModel(target, deps);
  return {
    model: errorsAsParts(model),
    modelId: modelIdOf(spec),
    family: spec.provider,
    adapt: adapters[spec.provider],
  };
};
