import { type IdentifiedModel, identifyModel } from "../../models/identify-model.ts";
import type { ComposedConfig } from "../context/agent-state.ts";
import { type InputParts, inputParts } from "../context/input-parts.ts";
import { composedConfig } from "../context/limits.ts";
import { estimateMessages } from "../context/tokens.ts";
import { messagesOf } from "../journal.ts";
import type { Toolset } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { toolDeclarations } from "../tools/registry.ts";
import { kindOf, kindWith, rulesOf } from "./kind.ts";
import type { RunServices } from "./run-services.ts";

/** What an input is composed by, beside the snapshot: as of now, the agent's config and what is known of its model. */
export type Composing = {
  config: ComposedConfig;
  model: IdentifiedModel;
  /** Billed over estimated tokens, as this model was billed before. */
  correction: number;
};

export const composingOf = (services: RunServices): Composing => {
  const { config, correction, correctionModel } = services.identity.get();
  const model = identifyModel(config.model, services.env);
  return {
    config: composedConfig(config, model),
    model,
    correction: correctionModel === model.modelId ? correction : 1,
  };
};

/** The parts of an input of this run that its agent's config, its model and its window say. */
export const partsFor = (services: RunServices, run: RunRow, { config, correction }: Composing): InputParts =>
  inputParts(config, {
    toolRules: rulesOf(services, run),
    tools: toolDeclarations(kindOf(services, run)),
    correction,
  });

/** The same for a run that would begin now, with these tools. */
export const partsWith = (services: RunServices, toolset: Toolset, { config, correction }: Composing): InputParts =>
  inputParts(config, {
    toolRules: toolset.toolRules,
    tools: toolDeclarations(kindWith(services, config.continuity, toolset)),
    correction,
  });

/** What a result may hold where an input is full already: enough to say what it is. */
const leastTokens = 250;

/** The estimated tokens that the model's next input has room for, beside all that the run holds by now. */
export const inputTokensLeft = (services: RunServices, run: RunRow): number => {
  const { config, correction } = composingOf(services);
  const rows = services.journal.ofRun(run);
  const from = rows.findLastIndex((row) => row.kind === "assistant");
  const meta = rows[from]?.meta;
  const before = meta?.kind === "assistant" ? meta.input.tokens / correction : 0;
  const since = estimateMessages(messagesOf(rows.slice(Math.max(0, from))));
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return Math.max(leastTokens, Math.floor(budget - before - since));
};
