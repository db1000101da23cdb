import type { Block, BlockSpace, SpacePermission } from "../../../protocol/block.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import type { BlockServices } from "./block-services.ts";
import { type BlockRow, sharedView } from "./blocks.ts";

/**
 * Blocks that the people of a space may use: this agent says of which spaces, and with what permission; who is in a
 * space, the worker has asked that space before it comes here.
 */

/** What a space's people may do with a block. Throws `not_found` where it is not shared there, as if it were not. */
export const grantedIn = (
  { blocks, blockSpaces }: BlockServices,
  spaceId: string,
  label: string,
): { row: BlockRow; permission: SpacePermission } => {
  const row = blocks.find(label);
  const permission = row && blockSpaces.permissionIn(row.id, spaceId);
  if (row && permission !== undefined) return { row, permission };
  throw new ColloquyError("not_found", `no block "${label}" is shared with this space`);
};

/** A block as the people of a space see it. Throws `not_found`. */
export const viewInSpace = (services: BlockServices, spaceId: string, label: string): Block => {
  const { id: agentId, config } = services.identity.get();
  const { row, permission } = grantedIn(services, spaceId, label);
  return sharedView(row, permission, { agentId, agentName: config.name });
};

/** Lets a space's people use a block. Those who watch it there learn of another permission at once. */
export const openBlock = async (
  services: BlockServices,
  label: string,
  { spaceId, permission }: Omit<BlockSpace, "createdAt">,
): Promise<BlockSpace> => {
  const { row, value } = await services.blocks.read(label);
  const space = services.blockSpaces.put(row.id, spaceId, permission);
  services.subscriptions.changed({ what: "updated", row, by: "system", value });
  return space;
};

/** Takes it back; who watches it there does not from now on. Throws `not_found` where it is not shared there. */
export const closeBlock = (services: BlockServices, label: string, spaceId: string): void => {
  if (!services.blockSpaces.remove(services.blocks.get(label).id, spaceId)) {
    throw new ColloquyError("not_found", `"${label}" is not shared with that space`);
  }
  services.subscriptions.closeFrom(spaceId, label);
};
