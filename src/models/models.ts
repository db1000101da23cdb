import type { ModelMessage } from "ai";
import type { ModelConfig } from "../protocol/agent.ts";
import { ColloquyError } from "../shared/errors.ts";
import { checkOutgoing } from "../shared/outgoing.ts";
import { adapters } from "./adapt.ts";
import { deploymentKey, followAlias } from "./aliases.ts";
import { modelIdOf } from "./identify-model.ts";
import type { LanguageModel } from "./language-model.ts";
import type { ModelDeps, ModelFamily, ModelSpec } from "./model-spec.ts";
import { createModel } from "./providers.ts";

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

const checkedBaseUrl = (baseUrl: string, deps: ModelDeps): string => {
  const checked = checkOutgoing(baseUrl, { allowLoopback: deps.env.ENVIRONMENT === "development" });
  if (checked.ok) return baseUrl;
  throw new ColloquyError("model_misconfigured", `The model's baseUrl cannot be used: ${checked.reason}.`);
};

const secretKey = async (name: string, deps: ModelDeps): Promise<string> => {
  const value = (await deps.openSecret(name))?.trim();
  if (value && !/^[\x21-\x7e]+$/.test(value)) {
    throw new ColloquyError(
      "model_misconfigured",
      `The secret "${name}" is no key that can be sent: it holds blanks or characters beyond ASCII. Write it again with PUT /v1/workspace/secrets/${name}.`,
    );
  }
  if (value) return value;
  throw new ColloquyError(
    "model_misconfigured",
    `The model's apiKeySecret names "${name}", and the workspace has no such secret: set it with PUT /v1/workspace/secrets/${name}.`,
  );
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
    model: await createModel(spec, deps),
    modelId: modelIdOf(spec),
    family: spec.provider,
    adapt: adapters[spec.provider],
  };
};
