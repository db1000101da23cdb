import type { BlockShare } from "../../../protocol/block.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { BlockServices } from "./block-services.ts";

/**
 * Gives another agent a block, and takes it back.
 *
 * Invariants
 * 1. This agent's own row is what counts; it is written before the other is told of it, and gone before it is told so.
 * 2. Both can be done again when they were cut in the middle: they change nothing twice.
 */
export const shareBlock = async (
  services: BlockServices,
  label: string,
  { agentId, permission }: Omit<BlockShare, "createdAt">,
  signal: AbortSignal,
): Promise<BlockShare> => {
  const { id: ownerId, workspaceId, config } = services.identity.get();
  if (agentId === ownerId) throw new ColloquyError("invalid_request", "a block is not shared with its owner");
  if (!services.ids.isIssued("ent", agentId)) throw new ColloquyError("not_found", "there is no such agent");
  const row = services.blocks.get(label);
  const share = services.blockShares.put(row.id, agentId, permission);
  const note = { ownerId, ownerName: config.name, label, type: row.type, permission };
  const told = await callWithRetry(
    () => services.env.AGENT.getByName(agentId).noteSharedBlock(workspaceId, note),
    signal,
  );
  if (!told.ok) services.blockShares.remove(row.id, agentId);
  unwrap(told);
  return share;
};

/** Throws `not_found` where it is not shared with that agent. */
export const unshareBlock = async (
  services: BlockServices,
  label: string,
  agentId: string,
  signal: AbortSignal,
): Promise<void> => {
  const { id: ownerId, workspaceId } = services.identity.get();
  if (!services.blockShares.remove(services.blocks.get(label).id, agentId)) {
    throw new ColloquyError("not_found", `"${label}" is not shared with that agent`);
  }
  await tellGone(services, { ownerId, workspaceId, agentId, label }, signal);
};

type Gone = { ownerId: string; workspaceId: string; agentId: string; label: string };

/** One that does not hear of it finds out when it reads the block next. */
const tellGone = async (
  services: BlockServices,
  { ownerId, workspaceId, agentId, label }: Gone,
  signal: AbortSignal,
): Promise<void> => {
  try {
    await callWithRetry(
      () => services.env.AGENT.getByName(agentId).dropSharedBlock(workspaceId, ownerId, label),
      signal,
    );
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
  }
};

/** A block is deleted, and with it all its shares. */
export const unshareAll = async (
  services: BlockServices,
  label: string,
  blockId: number,
  signal: AbortSignal,
): Promise<void> => {
  const { id: ownerId, workspaceId } = services.identity.get();
  for (const { agentId } of services.blockShares.of(blockId)) {
    services.blockShares.remove(blockId, agentId);
    await tellGone(services, { ownerId, workspaceId, agentId, label }, signal);
  }
};
