import type { ComposedConfig } from "../context/agent-state.ts";
import { blocksInInput, type KnownBlock, keyOf, type ShownBlocks, tokensOf } from "../context/blocks.ts";
import type { InboxData } from "../records.ts";
import { readShared } from "../shared-reading.ts";
import type { Parts } from "./parts.ts";

/** The labels of blocks that events name: a service beside its payload, a tool in its result. */
const blockRefsOf = (events: InboxData[]): ReadonlySet<string> =>
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
const ownBlocks = (parts: Parts, config: ComposedConfig, refs: ReadonlySet<string>): KnownBlock[] =>
  parts.blocks.list().map(({ label, type, permission, description, pinned, rendered, lastUsedAt }) => ({
    key: keyOf(label),
    label,
    type,
    permission,
    description: config.context.blockDescriptions ? description : "",
    pinned,
    referenced: refs.has(label),
    rendered,
    usedAt: lastUsedAt,
  }));

/** Blocks that other agents share with it: each owner is asked, and one that is silent stops nothing. */
const othersBlocks = async (
  parts: Parts,
  config: ComposedConfig,
  refs: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<KnownBlock[]> => {
  const rows = parts.sharedBlocks
    .list()
    .filter(({ type, pinned, label }) => type === "core" || pinned || refs.has(label));
  const read = await readShared(parts, rows, signal);
  return read.map(({ label, type, permission, description, pinned, rendered, sharedFrom, updatedAt }) => ({
    key: keyOf(label, sharedFrom?.agentId),
    label,
    type,
    permission,
    sharedFrom: sharedFrom?.agentName,
    description: config.context.blockDescriptions ? description : "",
    pinned,
    referenced: refs.has(label),
    rendered,
    usedAt: Date.parse(updatedAt),
  }));
};

/** Of its own blocks, those that an input holds. */
export const shownOwnBlocks = (parts: Parts, config: ComposedConfig, events: InboxData[]): ShownBlocks =>
  blocksInInput(ownBlocks(parts, config, blockRefsOf(events)), config.context.memoryTokens);

/** Of those that others share with it, what fits beside its own. */
export const shownSharedBlocks = async (
  parts: Parts,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const others = await othersBlocks(parts, config, blockRefsOf(events), signal);
  const own = shownOwnBlocks(parts, config, events).shown;
  return blocksInInput(others, Math.max(0, config.context.memoryTokens - tokensOf(own)));
};

/** The same with those that others share. */
export const shownBlocks = async (
  parts: Parts,
  config: ComposedConfig,
  events: InboxData[],
  signal: AbortSignal,
): Promise<ShownBlocks> => {
  const refs = blockRefsOf(events);
  const others = await othersBlocks(parts, config, refs, signal);
  return blocksInInput([...ownBlocks(parts, config, refs), ...others], config.context.memoryTokens);
};
