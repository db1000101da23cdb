import type { Block, BlockShare, BlockSpace } from "../../../protocol/block.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { BlockServices } from "./block-services.ts";
import type { BlockRow } from "./block-view.ts";
import { isSpaceId } from "./shares.ts";

/**
 * Shares a block with another agent or with the people of a space, and takes it back.
 *
 * Invariants
 * 1. This agent's own row decides. It is written before the other agent is told, and deleted before it is told so.
 * 2. Each function can be repeated when it was cut in the middle: nothing changes twice.
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
  const createdAt = services.shares.put(row.id, agentId, permission);
  const note = { ownerId, ownerName: config.name, label, type: row.type, permission };
  const told = await callWithRetry(
    () => services.env.AGENT.getByName(agentId).noteSharedBlock(workspaceId, note),
    signal,
  );
  if (!told.ok) services.shares.remove(row.id, agentId);
  unwrap(told);
  return { agentId, permission, createdAt };
};

/** Lets a space's people use a block. Those who watch it there learn of another permission at once. */
export const shareWithSpace = async (
  services: BlockServices,
  label: string,
  { spaceId, permission }: Omit<BlockSpace, "createdAt">,
): Promise<BlockSpace> => {
  const { row, value } = await services.blocks.read(label);
  const createdAt = services.shares.put(row.id, spaceId, permission);
  services.subscriptions.changed({ what: "updated", row, by: "system", value });
  return { spaceId, permission, createdAt };
};

/** Takes a block back from an agent or a space, at once. Throws `not_found` where it is not shared with that one. */
export const unshare = async (
  services: BlockServices,
  label: string,
  granteeId: string,
  signal: AbortSignal,
): Promise<void> => {
  const isSpace = isSpaceId(granteeId);
  if (!services.shares.remove(services.blocks.get(label).id, granteeId)) {
    throw new ColloquyError("not_found", `"${label}" is not shared with that ${isSpace ? "space" : "agent"}`);
  }
  if (isSpace) services.subscriptions.closeFrom(granteeId, label);
  else await tellGone(services, label, granteeId, signal);
};

/** A deleted block is shared with nobody. */
export const unshareDeleted = async (
  services: BlockServices,
  { id, label }: BlockRow,
  signal: AbortSignal,
): Promise<void> => {
  const agents = services.shares.agents(id);
  services.shares.removeAll(id);
  for (const { agentId } of agents) await tellGone(services, label, agentId, signal);
};

/** A block as a grantee sees it. Throws `not_found` where it is not shared with that one. */
export const sharedView = ({ blocks, shares }: BlockServices, label: string, granteeId: string): Block => {
  const { row, permission } = blocks.granted(label, granteeId);
  return shares.view(row, permission);
};

/** An agent that cannot be told finds out when it reads the block next. */
const tellGone = async (
  services: BlockServices,
  label: string,
  agentId: string,
  signal: AbortSignal,
): Promise<void> => {
  const { id: ownerId, workspaceId } = services.identity.get();
  try {
    await callWithRetry(
      () => services.env.AGENT.getByName(agentId).dropSharedBlock(workspaceId, ownerId, label),
      signal,
    );
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
  }
};
