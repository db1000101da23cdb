import type { ComposedConfig } from "../context/agent-state.ts";
import { blocksInInput, type KnownBlock, keyOf, type ShownBlocks, tokensOf } from "../context/blocks.ts";
import { readShared } from "../memory/blocks/shared-reading.ts";
import type { InboxData } from "../records.ts";
import type { RunServices } from "./run-services.ts";

/** The labels of blocks that events name: a service beside its payload, a tool in its result. */
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

/** The agent's own blocks, as its input may show them. Opens no document. */
const ownBlocks = (services: RunServices, config: ComposedConfig): KnownBlock[] =>
  services.blocks.list().map(({ label, type, permission, description, pinned, rendered, lastUsedAt }) => ({
    key: keyOf(label),
    label,
    type,
    permission,
    description: config.context.blockDescriptions ? description : "",
    pinned,
    rendered,
    usedAt: lastUsedAt,
  }));

/** Blocks that other agents share with it: each owner is asked, and one that is silent stops nothing. */
const othersBlocks = async (
  services: RunServices,
  config: ComposedConfig,
  batchBlocks: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<KnownBlock[]> => {
  const rows = services.sharedBlocks
    .list()
    .filter(({ type, pinned, label }) => type === "core" || pinned || batchBlocks.has(label));
  const read = await readShared(services, rows, signal);
  return read.map(({ label, type, permission, description, pinned, rendered, sharedFrom, updatedAt }) => ({
    key: keyOf(label, sharedFrom?.agentId),
    label,
    type,
    permission,
    sharedFrom: sharedFrom?.agentName,
    description: config.context.blockDescriptions ? description : "",
    pinned,
    rendered,
    usedAt: Date.parse(updatedAt),
  }));
};

/** Of its own blocks, those that an input holds. */
export const shownOwnBlocks = (services: RunServices, config: ComposedConfig, events: InboxData[]): ShownBlocks =>
  blocksInInput(ownBlocks(services, config), {
    batchBlocks: batchBlocksOf(events),
    maxTokens: config.context.memoryTokens,
  });

/** Of those that others share with it, what fits beside its own. */
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

/** The same with those that others share. */
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
