import { type IdentifiedModel, identifyModel } from "../../models/identify-model.ts";
import type { ToolRule } from "../../protocol/tool.ts";
import type { ComposedConfig, Continuity } from "../context/agent-state.ts";
import { type InputParts, inputParts } from "../context/agent-state.ts";
import { composedConfig } from "../context/limits.ts";
import { estimateMessages } from "../context/tokens.ts";
import { messagesOf } from "../journal.ts";
import type { Toolset } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { type Kind, toolDeclarations } from "../tools/registry.ts";
import type { RunServices } from "./run-services.ts";

/** What composing needs beside the snapshot: the agent's config as of now, and the facts of its model. */
export type Composing = {
  config: ComposedConfig;
  model: IdentifiedModel;
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
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

/** The kind of agent that has these tools. */
export const kindWith = (services: RunServices, continuity: Continuity, toolset: Toolset | undefined): Kind => ({
  continuity,
  messaging: toolset?.messaging ?? services.identity.get().config.messaging,
  tools: toolset?.tools ?? [],
  ...(toolset?.memoryTools === false ? { memoryTools: false } : {}),
  mcpTools: services.mcp.tools(toolset?.mcpListId ?? null),
});

/** The kind of a run's agent. Its continuity and its tools are fixed when it begins. */
export const kindOf = (services: RunServices, run: RunRow): Kind =>
  kindWith(services, run.continuity, services.windows.window(run.windowId)?.toolset);

/** The rules of a run's tools, which are fixed when it begins too. */
export const rulesOf = (services: RunServices, run: RunRow): ToolRule[] =>
  services.windows.window(run.windowId)?.toolset.toolRules ?? [];

/** The parts of this run's input that follow from its agent's config, its model and its window. */
export const partsFor = (services: RunServices, run: RunRow, { config, correction }: Composing): InputParts =>
  inputParts(config, {
    toolRules: rulesOf(services, run),
    tools: toolDeclarations(kindOf(services, run)),
    correction,
  });

/** The same parts for a run that began now with these tools. */
export const partsWith = (services: RunServices, toolset: Toolset, { config, correction }: Composing): InputParts =>
  inputParts(config, {
    toolRules: toolset.toolRules,
    tools: toolDeclarations(kindWith(services, config.continuity, toolset)),
    correction,
  });

/** The least that a result may hold, even if the input is full: enough to say what it is. */
const leastTokens = 250;

/** The estimated tokens that are free in the model's next input, beside all that the run holds by now. */
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
