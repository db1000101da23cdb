import type { ModelConfig } from "../protocol/model-config.ts";
import type { Env } from "../shared/env.ts";
import { ColloquyError } from "../shared/errors.ts";
import { followAlias } from "./aliases.ts";
import { contextWindowOf } from "./context-windows.ts";
import type { ModelFamily } from "./model-spec.ts";

/** What is known of a model before it is set up: no secret is opened, nothing is asked. */
export type IdentifiedModel = {
  /** The model's own name, an alias followed. */
  name: string;
  /** The same model at the same address, the same id. */
  modelId: string;
  family: ModelFamily;
  /** The tokens that it takes; null where nobody knows. */
  window: number | null;
};

/** The stable id of a model, for the calibration of estimates. */
export const modelIdOf = (
  model: { provider: "openai-compatible"; name: string; baseUrl: string } | { provider: ModelFamily; name: string },
): string =>
  "baseUrl" in model
    ? `${model.provider}/${new URL(model.baseUrl).host}/${model.name}`
    : `${model.provider}/${model.name}`;

/** Which model a config means. An alias that leads nowhere is a model of which nothing is known: its runs say why. */
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
