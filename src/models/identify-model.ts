import type { Env } from "../env.ts";
import type { ModelConfig } from "../protocol/model-config.ts";
import { ColloquyError } from "../shared/errors.ts";
import { followAlias } from "./aliases.ts";
import { contextWindowOf } from "./context-windows.ts";
import type { ModelFamily } from "./model-spec.ts";

/** The facts of a model that need no secret and no request. */
export type IdentifiedModel = {
  /** The model's own name, an alias followed. */
  name: string;
  /** The same model at the same address, the same id. */
  modelId: string;
  family: ModelFamily;
  /** Its context window in tokens; null where it is not known. */
  window: number | null;
};

/** The stable id of a model, for the calibration of estimates. */
export const modelIdOf = (
  model: { provider: "openai-compatible"; name: string; baseUrl: string } | { provider: ModelFamily; name: string },
): string =>
  "baseUrl" in model
    ? `${model.provider}/${new URL(model.baseUrl).host}/${model.name}`
    : `${model.provider}/${model.name}`;

/** Identifies the model of a config. An unknown alias gives a model without known facts: its runs report the error. */
export const identifyModel = (config: ModelConfig, env: Env): IdentifiedModel => {
  try {
    const target = "alias" in config ? followAlias(config.alias, env) : config;
    if (target.provider === "rehearsal") {
      const name = target.name ?? "rehearsal";
      return { name, modelId: modelIdOf({ provider: "rehearsal", name }), family: "rehearsal", window: null };
    }
    const { name, provider } = target;
    return { name, modelId: modelIdOf(target), family: provider, window: contextWindowOf(name) };
  } catch (error) {
    if (!(error instanceof ColloquyError) || !("alias" in config)) throw error;
    return { name: config.alias, modelId: config.alias, family: "rehearsal", window: null };
  }
};
