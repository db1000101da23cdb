import { type IdentifiedModel, identifyModel } from "../../models/identify-model.ts";
import type { ComposedConfig } from "../context/agent-state.ts";
import { composedConfig } from "../context/limits.ts";
import type { Parts } from "./parts.ts";

/** What an input is composed by, beside the snapshot: as of now, the agent's config and what is known of its model. */
export type Composing = {
  config: ComposedConfig;
  model: IdentifiedModel;
  /** Billed over estimated tokens, as this model was billed before. */
  correction: number;
};

export const composingOf = (parts: Parts): Composing => {
  const { config, correction, correctionModel } = parts.identity.get();
  const model = identifyModel(config.model, parts.env);
  return {
    config: composedConfig(config, model),
    model,
    correction: correctionModel === model.modelId ? correction : 1,
  };
};
