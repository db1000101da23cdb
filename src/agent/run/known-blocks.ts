import type { ComposedConfig } from "../context/agent-state.ts";
import { blocksInInput, type KnownBlock, keyOf, type ShownBlocks, tokensOf } from "../context/blocks.ts";
import type { InboxData } from "../records.ts";
import type { RunServices } from "./run-services.ts";

/** The labels of blocks that these events name: a service beside its payload, a tool in its result. */
const batchBlocksOf = (events: InboxData[]): ReadonlySet<string> =>
  new Set(
    events.flatMap((event) => {
      if (event.type === "service") return event.blockRefs ?? [];
      return event.type === "tool_result" ? refsIn(event.result) : [];
    }),
  );

const refsIn = (result: unknown): string[] => {
  if (typeof result !== "object" || result === null || !("blockRefs" in result)) return [];
  const { blockRefs } = result;
  return Array.isArray(blockRefs) ? blockRefs.filter((ref): ref is string => typeof ref === "string") : [];
};

type BlockFacts = Omit<KnownBlock, "key" | "sharedFrom" | "usedAt">;

const knownBlock = (
  { context }: ComposedConfig,
  { label, type, permission, description, pinned, rendered }: BlockFacts & { description: string },
  { usedAt, owner }: { usedAt: number; owner?: { agentId: string; agentName: string } | undefined },
): KnownBlock => ({
  ...{ key: keyOf(label, owner?.agentId), label, type, permission, pinned, rendered, usedAt },
  description: context.blockDescriptions ? description : "",
  sharedFrom: owner?.agentName,
});

/** The agent's own blocks, as its input may show them. Opens no document. */
const ownBlocks = (services: RunServices, config: ComposedConfig): KnownBlock[] =>
  services.blocks.list().map((block) => knownBlock(config, block, { usedAt: block.lastUsedAt }));

/** The blocks that other agents share with it. Each owner is asked; one that does not answer is left out. */
const othersBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  batchBlocks: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<KnownBlock[]> => {
  const rows = services.sharedBlocks
    .list()
    .filter(({ type, pinned, label }) => type === "core" || pinned || batchBlocks.has(label));
  const read = await services.sharedBlocks.read(rows, signal);
  return read.map((block) =>
    knownBlock(config, block, { usedAt: Date.parse(block.updatedAt), owner: block.sharedFrom }),
  );
};

/** The agent's own blocks that an input holds. */
export const shownOwnBlocks = (services: RunServices, config: ComposedConfig, events: InboxData[]): ShownBlocks =>
  blocksInInput(ownBlocks(services, config), {
    batchBlocks: batchBlocksOf(events),
    maxTokens: config.context.memoryTokens,
  });

/** The blocks that others share with it, as far as they fit beside its own. */
export const shownSharedBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const batchBlocks = batchBlocksOf(events);
  const others = await othersBlocks(services, config, batchBlocks, signal);
  const own = tokensOf(shownOwnBlocks(services, config, events).shown);
  return blocksInInput(others, { batchBlocks, maxTokens: Math.max(0, config.context.memoryTokens - own) });
};

/** Its own blocks and shared ones, as an input holds them together. */
export const shownBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const batchBlocks = batchBlocksOf(events);
  const others = await othersBlocks(services, config, batchBlocks, signal);
  const { memoryTokens: maxTokens } = config.context;
  return blocksInInput([...ownBlocks(services, config), ...others], { batchBlocks, maxTokens });
};
