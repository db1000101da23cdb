import type { ModelMessage } from "ai";
import type { ModelConfig } from "../protocol/model-config.ts";
import { loadedOnce } from "../shared/loaded-once.ts";
import { adapters } from "./adapt.ts";
import { deploymentKey, identifyTarget, type ModelTarget, targetOf } from "./identify-model.ts";
import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
import { errorsAsParts } from "./part-stream.ts";
import { checkedBaseUrl, secretKey, workersAiBinding } from "./provider-access.ts";

type ProviderFactory<Spec extends ModelSpec> = (spec: Spec, deps: ModelDeps) => Promise<LanguageModel>;

type Providers = {
  [Spec in ModelSpec as Spec["provider"]]: ProviderFactory<Spec>;
};

let wiredRehearsal: Providers["rehearsal"] = () => Promise.reject(new Error("no rehearsal model is wired"));

/** Wires the embedded model, which this folder does not know. */
export const provideRehearsal = (create: Providers["rehearsal"]): void => {
  wiredRehearsal = create;
};

const workersAi = loadedOnce(() => import("workers-ai-provider"));
const openAiCompatible = loadedOnce(() => import("./openai-compatible.ts"));

/**
 * Makes the models of each provider. A provider's code is loaded when it is first used, so that a cold start loads none
 * that its agents do not name. Mutable: tests replace an entry and put it back.
 */
export const providers: Providers = {
  rehearsal: (spec, deps) => wiredRehearsal(spec, deps),
  "workers-ai": async ({ name }, deps) => {
    const binding = workersAiBinding(`model ${name}`, deps);
    return (await workersAi()).createWorkersAI({ binding })(name);
  },
  "openai-compatible": async (spec, deps) => (await openAiCompatible()).createOpenAiCompatibleModel(spec, deps),
};

export type ResolvedModel = {
  model: LanguageModel;
  /** Names the model stably, for calibration of token estimates: the same model at the same address, the same id. */
  modelId: string;
  family: ModelFamily;
  /** Fits messages to what the family takes. Pure. A longer conversation keeps the adapted form of a shorter one. */
  adapt: (messages: ModelMessage[]) => ModelMessage[];
};

/** Made once for each config: making one builds the schemas of all that a server may answer. */
const made = new WeakMap<ModelTarget, { model: LanguageModel; from: unknown[] }>();

const createModel = async (target: ModelTarget, deps: ModelDeps): Promise<LanguageModel> => {
  switch (target.provider) {
    case "rehearsal":
      return providers.rehearsal({ ...target, name: target.name ?? "rehearsal" }, deps);
    case "workers-ai":
      return providers["workers-ai"](target, deps);
    case "openai-compatible": {
      const { provider, name } = target;
      const baseUrl = checkedBaseUrl(target.baseUrl, deps);
      const apiKey = await apiKeyOf(target, deps);
      const from = [apiKey, deps.fetch, providers["openai-compatible"]];
      const known = made.get(target);
      if (known && from.every((each, index) => each === known.from[index])) return known.model;
      const model = await providers["openai-compatible"]({ provider, name, baseUrl, apiKey }, deps);
      made.set(target, { model, from });
      return model;
    }
  }
};

/** The key of the workspace's secret, or the deployment's key where the operator's alias names one. */
const apiKeyOf = async (target: ModelTarget, deps: ModelDeps): Promise<string | undefined> => {
  if ("apiKeySecret" in target && target.apiKeySecret !== undefined) {
    const use = { kind: "model", name: target.name, url: target.baseUrl } as const;
    return secretKey(target.apiKeySecret, use, deps);
  }
  if ("apiKeyVariable" in target && target.apiKeyVariable !== undefined) {
    return deploymentKey(target.apiKeyVariable, deps.env);
  }
  return undefined;
};

/** The model that a config names. Every failure is a `ColloquyError` `model_misconfigured` that says what to set. */
export const resolveModel = async (config: ModelConfig, deps: ModelDeps): Promise<ResolvedModel> => {
  const target = targetOf(config, deps.env);
  const model = errorsAsParts(await createModel(target, deps));
  const { modelId, family } = identifyTarget(target);
  return { model, modelId, family, adapt: adapters[family] };
};
