import { type IdentifiedModel, identifyModel } from "../../models/identify-model.ts";
import type { ComposedConfig, InputParts } from "../context/agent-state.ts";
import type { ShownBlock } from "../context/blocks.ts";
import { renderInstructions } from "../context/instructions.ts";
import { composedConfig } from "../context/limits.ts";
import { estimateMessages } from "../context/tokens.ts";
import { messagesOf } from "../journal.ts";
import type { HeadBlocks } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { type Kind, sameToolset, toolDeclarations, toolsetOf } from "../tools/registry.ts";
import { shownOwnBlocks } from "./known-blocks.ts";
import { readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";
import type { WindowRow } from "./windows.ts";

/** What composing needs beside the snapshot: the agent's config as of now, and the facts of its model. */
export type Composing = {
  config: ComposedConfig;
  model: IdentifiedModel;
  /** The ratio of billed to estimated tokens, from this model's earlier bills. */
  correction: number;
};

export const composingOf = ({ identity, env }: RunServices): Composing => {
  const { config, correction, correctionModel } = identity.get();
  const model = identifyModel(config.model, env);
  return {
    config: composedConfig(config, model),
    model,
    correction: correctionModel === model.modelId ? correction : 1,
  };
};

const instructionsWith = ({ identity }: RunServices, blocks: HeadBlocks): string => {
  const { id, config } = identity.get();
  return renderInstructions(id, config, Object.values(blocks));
};

/**
 * A window that is not stored yet. The agent's own core blocks stand in its instructions as they are now, since they
 * change rarely. `shown`: its blocks, if they are known; none for a timeline, which reads them anew in every run.
 */
export const newWindow = (
  services: RunServices,
  window: Pick<WindowRow, "toolset" | "continuity" | "summary" | "firstRun" | "toldFrom">,
  shown = shownOwnBlocks(services, composingOf(services).config, []).shown,
): WindowRow => {
  const blocks = Object.fromEntries(shown.filter(({ type }) => type === "core").map(({ key, text }) => [key, text]));
  return {
    ...window,
    id: 0,
    blocks,
    instructions: instructionsWith(services, blocks),
    createdAt: services.clock.now(),
  };
};

/** The window of a run that began now; its `id` is 0 if it is not stored yet. `shown`: the blocks in its input. */
export const nextWindow = (
  services: RunServices,
  continuity: WindowRow["continuity"],
  ordinal: number,
  shown: ShownBlock[] = [],
): WindowRow => {
  const toolset = toolsetOf(services.identity.get().config, services.mcp.newestList());
  const current = services.windows.newest(continuity);
  const isSame = current?.instructions === instructionsWith(services, current?.blocks ?? {});
  if (current && isSame && sameToolset(current.toolset, toolset)) return current;
  const { summary = null, firstRun = ordinal } = current ?? {};
  return newWindow(services, { toolset, continuity, summary, firstRun, toldFrom: ordinal }, shown);
};

/** The window of a run: its tools and their rules are fixed when it begins. */
export const windowOf = ({ windows }: RunServices, run: RunRow): WindowRow => {
  const window = windows.window(run.windowId);
  if (!window) throw new Error(`run ${run.id} has no window`);
  return window;
};

const kindIn = ({ mcp }: RunServices, { continuity, toolset }: WindowRow): Kind => ({
  ...toolset,
  continuity,
  mcpTools: mcp.tools(toolset.mcpListId),
});

export const kindOf = (services: RunServices, run: RunRow): Kind => kindIn(services, windowOf(services, run));

/** The parts of an input that follow from the agent's config, its model and the run's window. */
export const partsIn = (
  services: RunServices,
  window: WindowRow,
  { config, correction }: Pick<Composing, "config" | "correction">,
): InputParts => ({
  config: { ...config, toolRules: window.toolset.toolRules },
  tools: toolDeclarations(kindIn(services, window)),
  correction,
});

/** The least that a result may hold, even if the input is full: enough to say what it is. */
const leastTokens = 250;

/** The estimated tokens that are free in the model's next input, beside all that the run holds by now. */
export const inputTokensLeft = (services: RunServices, run: RunRow): number => {
  const { config, correction } = composingOf(services);
  const { all, steps } = readRows(services.journal.ofRun(run));
  const last = steps.at(-1);
  const before = last ? last.meta.input.tokens / correction : 0;
  const since = estimateMessages(messagesOf(last ? all.slice(all.indexOf(last)) : all));
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return Math.max(leastTokens, Math.floor(budget - before - since));
};
