import * as z from "zod";
import { type IdentifiedModel, identifyModel } from "../../models/identify-model.ts";
import type { BlockSchema } from "../../protocol/block-schema.ts";
import type { AgentState, InputParts } from "../context/agent-state.ts";
import {
  blocksInInput,
  type KnownBlock,
  type KnownShare,
  keyOf,
  type ShownBlock,
  type ShownBlocks,
} from "../context/blocks.ts";
import { renderInstructions } from "../context/instructions.ts";
import { forCalls, inputBudget, resolveLimits } from "../context/limits.ts";
import { messagesOf } from "../journal.ts";
import { fieldLines } from "../memory/documents/declared-fields.ts";
import type { Correction, HeadBlocks, InboxData } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { estimateMessages } from "../tokens.ts";
import { type Kind, toolDeclarations, toolsetOf } from "../tools/registry.ts";
import { invocationOf, readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";
import type { WindowRow } from "./windows.ts";

/** What composing needs beside the snapshot: the agent's config as of now, and the facts of its model. */
type Composing = Omit<InputParts, "tools"> & { model: IdentifiedModel };

/** How far the estimates of input tokens are off. */
export const correctionOf = ({ identity, runs }: Pick<RunServices, "identity" | "runs">): Correction | null => {
  const { correction: ratio, correctionModel: modelId } = identity.get();
  return runs.correction() ?? (modelId === null ? null : { ratio, modelId });
};

export const composingOf = ({ identity, runs, env }: RunServices): Composing => {
  const { config } = identity.get();
  const correction = correctionOf({ identity, runs });
  const model = identifyModel(config.model, env);
  return {
    config,
    limits: resolveLimits(config.context, model, config.model.maxOutputTokens),
    model,
    correction: correction?.modelId === model.modelId ? correction.ratio : 1,
  };
};

const WithRefs = z.object({ blockRefs: z.array(z.unknown()) });

/** The labels of blocks that these events name: a service beside its payload, a tool in its result. */
const batchBlocksOf = (events: InboxData[]): ReadonlySet<string> => {
  const refs = events.flatMap((event) => {
    if (event.type === "service") return event.blockRefs ?? [];
    return event.type === "tool_result" ? (WithRefs.safeParse(event.result).data?.blockRefs ?? []) : [];
  });
  return new Set(refs.filter((ref) => typeof ref === "string"));
};

const knownBlock = (
  { identity }: RunServices,
  block: Omit<KnownBlock, "key" | "sharedFrom" | "fields"> & { schema: BlockSchema },
  owner?: { agentId: string; agentName: string },
): KnownBlock => {
  const { label, type, permission, description, schema, pinned, rendered, usedAt } = block;
  const { blockDescriptions, blockSchemas } = identity.get().config.context;
  return {
    ...{ key: keyOf(label, owner?.agentId), label, type, permission, pinned, rendered, usedAt },
    description: blockDescriptions ? description : "",
    // A config from before it could be set shows them.
    fields: blockSchemas === false ? "" : fieldLines(schema).join("\n"),
    sharedFrom: owner?.agentName,
  };
};

/** The agent's own blocks; in a compartment, after those of its open mind. Opens no document. */
export const ownBlocks = (services: RunServices): KnownBlock[] => [
  ...services.sharedBlocks
    .open()
    .map((block) => knownBlock(services, { ...block, usedAt: Date.parse(block.updatedAt) }, block.sharedFrom)),
  ...services.blocks.list().map((block) => knownBlock(services, { ...block, usedAt: block.lastUsedAt })),
];

/** The blocks that other agents share with it. Each owner is asked. A block whose owner does not answer is unavailable. */
export const othersBlocks = async (
  services: RunServices,
  events: InboxData[],
  signal: AbortSignal,
): Promise<KnownBlock[]> => {
  const batchBlocks = batchBlocksOf(events);
  const rows = services.sharedBlocks
    .list()
    .filter(({ type, pinned, label, open }) => !open && (type === "core" || pinned || batchBlocks.has(label)));
  const read = await services.sharedBlocks.read(rows, signal);
  return read.map((block) => knownBlock(services, { ...block, usedAt: Date.parse(block.updatedAt) }, block.sharedFrom));
};

/**
 * The blocks that others share with it, as far as it has heard; none where it has no tools to read them. Those of the open
 * mind that always stand in an input are not told of.
 */
export const knownShares = ({ identity, sharedBlocks }: RunServices): KnownShare[] => {
  if (identity.get().config.memoryTools === false) return [];
  const told = sharedBlocks.list().filter(({ open, type, pinned }) => !open || (type !== "core" && !pinned));
  return told.map(({ label, ownerId, ownerName: owner, permission }) => ({
    ...{ key: keyOf(label, ownerId), label, owner, permission },
  }));
};

/** Those of these blocks that the input of a run with these events holds, beside others that fill `filled` tokens. */
export const shownBlocks = (
  services: RunServices,
  blocks: KnownBlock[],
  events: InboxData[],
  filled = 0,
): ShownBlocks => {
  const { memoryTokens } = composingOf(services).limits;
  return blocksInInput(blocks, { batchBlocks: batchBlocksOf(events), maxTokens: Math.max(0, memoryTokens - filled) });
};

/** The state section of a prompt: the agent, its spaces, goals, memories and plans, beside these blocks. */
export const stateWith = (
  { identity, spaces, goals, memories, plans }: RunServices,
  blocks: ShownBlocks,
): AgentState => ({
  agentId: identity.get().id,
  compartmentSpaceId: identity.get().compartmentSpaceId,
  spaces: spaces.mine(),
  goals: goals.all(),
  memories: memories.all(),
  plans: plans.all(),
  blocks,
});

const instructionsWith = ({ identity }: RunServices, blocks: HeadBlocks): string => {
  const { id, config, compartmentSpaceId } = identity.get();
  return renderInstructions(id, config, Object.values(blocks), compartmentSpaceId);
};

/**
 * A window that is not stored yet. The agent's own core blocks stand in its instructions as they are now, since they
 * change rarely. `shown`: its blocks, if they are known; none for a timeline, which reads them anew in every run.
 */
export const newWindow = (
  services: RunServices,
  window: Pick<WindowRow, "toolset" | "continuity" | "summary" | "firstRun" | "toldFrom">,
  shown = shownBlocks(services, ownBlocks(services), []).shown,
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
  if (current && isSame && JSON.stringify(current.toolset) === JSON.stringify(toolset)) return current;
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
export const partsIn = (services: RunServices, window: WindowRow): InputParts => {
  const { model: _, config, ...composing } = composingOf(services);
  const { toolRules } = window.toolset;
  return { ...composing, config: { ...config, toolRules }, tools: toolDeclarations(kindIn(services, window)) };
};

/** The least that a result may hold, even if the input is full: enough to say what it is. */
const leastTokens = 250;

/**
 * The estimated tokens that are free in the model's next input, beside all that the invocation holds by now. Earlier
 * cycles give way to a result, up to the share of one, since they are compacted where they do not fit.
 */
export const inputTokensLeft = (services: RunServices, run: RunRow): number => {
  const composing = composingOf(services);
  const { all, steps } = readRows(invocationOf(services.journal.ofRun(run)));
  const last = steps.at(-1);
  const before = last ? last.meta.input.tokens / composing.correction : 0;
  const since = estimateMessages(messagesOf(last ? all.slice(all.indexOf(last)) : all));
  const budget = inputBudget(composing);
  const free = budget - before - since;
  const past = last?.meta.input.sections.find(({ name }) => name === "earlier_cycles")?.tokens ?? 0;
  return Math.max(leastTokens, Math.floor(Math.max(free, Math.min(free + past, forCalls(budget)))));
};
