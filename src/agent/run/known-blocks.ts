import { z } from "zod";
import type { ComposedConfig } from "../context/agent-state.ts";
import { blocksInInput, type KnownBlock, keyOf, type ShownBlocks, tokensOf } from "../context/blocks.ts";
import type { InboxData } from "../records.ts";
import type { RunServices } from "./run-services.ts";

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
  { context }: ComposedConfig,
  { label, type, permission, description, pinned, rendered, usedAt }: Omit<KnownBlock, "key" | "sharedFrom">,
  owner?: { agentId: string; agentName: string },
): KnownBlock => ({
  ...{ key: keyOf(label, owner?.agentId), label, type, permission, pinned, rendered, usedAt },
  description: context.blockDescriptions ? description : "",
  sharedFrom: owner?.agentName,
});

/** The agent's own blocks, as its input may show them. Opens no document. */
const ownBlocks = (services: RunServices, config: ComposedConfig): KnownBlock[] =>
  services.blocks.list().map((block) => knownBlock(config, { ...block, usedAt: block.lastUsedAt }));

/** The blocks that other agents share with it. Each owner is asked; one that does not answer is left out. */
const othersBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<KnownBlock[]> => {
  const batchBlocks = batchBlocksOf(events);
  const rows = services.sharedBlocks
    .list()
    .filter(({ type, pinned, label }) => type === "core" || pinned || batchBlocks.has(label));
  const read = await services.sharedBlocks.read(rows, signal);
  return read.map((block) => knownBlock(config, { ...block, usedAt: Date.parse(block.updatedAt) }, block.sharedFrom));
};

/** Those of these blocks that an input holds, beside others that fill `filled` tokens. */
const inInput = (blocks: KnownBlock[], config: ComposedConfig, events: InboxData[], filled = 0): ShownBlocks =>
  blocksInInput(blocks, {
    batchBlocks: batchBlocksOf(events),
    maxTokens: Math.max(0, config.context.memoryTokens - filled),
  });

/** The agent's own blocks that an input holds. */
export const shownOwnBlocks = (services: RunServices, config: ComposedConfig, events: InboxData[]): ShownBlocks =>
  inInput(ownBlocks(services, config), config, events);

/** The blocks that others share with it, as far as they fit beside its own. */
export const shownSharedBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const others = await othersBlocks(services, config, events, signal);
  return inInput(others, config, events, tokensOf(shownOwnBlocks(services, config, events).shown));
};

/** Its own blocks and shared ones, as an input holds them together. */
export const shownBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const others = await othersBlocks(services, config, events, signal);
  return inInput([...ownBlocks(services, config), ...others], config, events);
};
