import type { BlockDetail, EditBlock, UpdateBlock } from "../../protocol/block.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { requireAwaited } from "../../shared/require-awaited.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import type { BlockCaller } from "../memory/blocks/block-author.ts";
import type { BlockServices } from "../memory/blocks/block-services.ts";
import { blockView, detailOf, sharedView } from "../memory/blocks/blocks.ts";
import type { SharedBlockRow } from "../memory/blocks/shared-blocks.ts";
import { editShared, loadShared, readShared } from "../memory/blocks/shared-reading.ts";
import { shareBlock, unshareAll, unshareBlock } from "../memory/blocks/sharing.ts";
import { closeBlock, grantedIn, openBlock, viewInSpace } from "../memory/blocks/space-sharing.ts";
import { originAuthor } from "../transfer/origin.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** How long others are asked for, in the service of one request. */
const askMs = 15_000;

const callerOf = ({ identity }: BlockServices, as: EditBlock["as"], author: string): BlockCaller => {
  const { id, config } = identity.get();
  return as === "agent" ? { kind: "agent", agentId: id, name: config.name } : { kind: "system", author };
};

/** The block of another agent that has this label here: its own comes first. */
const sharedAs = ({ blocks, sharedBlocks }: BlockServices, label: string): SharedBlockRow | undefined =>
  blocks.find(label) ? undefined : sharedBlocks.find(label);

/** Whether it is pinned is the reader's own; all else is its owner's. */
const pinShared = ({ sharedBlocks }: BlockServices, row: SharedBlockRow, { pinned, ...others }: UpdateBlock): void => {
  if (Object.values(others).some((each) => each !== undefined)) {
    throw new ColloquyError(
      "forbidden",
      `"${row.label}" is shared by ${row.ownerName}: change it there, or only pin it`,
    );
  }
  if (pinned !== undefined) sharedBlocks.pin(row, pinned);
};

const detail = async (services: BlockServices, label: string, version?: number): Promise<BlockDetail> => {
  const shared = sharedAs(services, label);
  if (shared) return loadShared(services, shared, timeoutSignal(askMs), version);
  const { row, value, rendered } = await services.blocks.read(label, version);
  return detailOf(blockView(row), { value, rendered, version: version ?? row.version });
};

/** What this agent, as a block's owner, lets a reader do. Throws `not_found` where it does not share it. */
const granted = ({ blocks, blockShares, identity }: BlockServices, readerId: string, label: string) => {
  const row = blocks.find(label);
  const permission = row && blockShares.permissionOf(row.id, readerId);
  if (!row || permission === undefined) throw new ColloquyError("not_found", `no block "${label}" is shared with you`);
  const { id, config } = identity.get();
  return { row, permission, owner: { agentId: id, agentName: config.name } };
};

/** The agent's blocks: its own, those that it shares, and those that others share with it. */
export const blocksArea: Area<
  | "blocks"
  | "createBlock"
  | "block"
  | "editBlock"
  | "updateBlock"
  | "deleteBlock"
  | "blockHistory"
  | "blockShares"
  | "shareBlock"
  | "unshareBlock"
  | "noteSharedBlock"
  | "dropSharedBlock"
  | "readSharedBlocks"
  | "readSharedBlock"
  | "editSharedBlock"
> = {
  blocks: async ({ services }) => {
    const shared = await readShared(services, services.sharedBlocks.list(), timeoutSignal(askMs));
    return [...services.blocks.list().map(blockView), ...shared];
  },
  createBlock: async ({ services }, block, author, callId) => {
    await services.blocks.create(block, author, callId);
    return detail(services, block.label);
  },
  block: ({ services }, label, version) => detail(services, label, version),
  editBlock: ({ services }, label, { as, ...wanted }, author, callId) => {
    const shared = sharedAs(services, label);
    if (!shared) return services.blocks.edit(label, { ...wanted, caller: callerOf(services, as, author), callId });
    const by = as === "agent" ? {} : { author };
    // Its owner may be asked again where its answer was lost.
    const asked = { ...wanted, ...by, callId: callId ?? services.ids.mint("key") };
    return editShared(services, shared, asked, timeoutSignal(askMs));
  },
  updateBlock: async ({ services }, label, changes, author) => {
    const shared = sharedAs(services, label);
    if (shared) pinShared(services, shared, changes);
    else await services.blocks.update(label, changes, author);
    return detail(services, label);
  },
  deleteBlock: async ({ services }, label, as, author) => {
    const { id } = services.blocks.delete(label, callerOf(services, as, author));
    services.blockSpaces.removeAll(id);
    await unshareAll(services, label, id, timeoutSignal(askMs));
    return null;
  },
  blockHistory: ({ db, services }, label, { limit, cursor }) =>
    page(
      services.blocks.history(label, cursorOf(cursor), limit + 1),
      limit,
      ({ version }) => version,
      (change) => ({ ...change, ...originAuthor(db, change.author) }),
    ),
  blockShares: ({ services }, label) => services.blockShares.of(services.blocks.get(label).id),
  shareBlock: ({ services }, label, share) => shareBlock(services, label, share, timeoutSignal(askMs)),
  unshareBlock: async ({ services }, label, agentId) => {
    await unshareBlock(services, label, agentId, timeoutSignal(askMs));
    return null;
  },
  noteSharedBlock: ({ services }, note) => {
    services.sharedBlocks.note(note);
    return null;
  },
  dropSharedBlock: ({ services }, ownerId, label) => {
    services.sharedBlocks.drop(ownerId, label);
    return null;
  },
  readSharedBlocks: ({ services }, readerId, labels) =>
    labels.map((label) => {
      try {
        const { row, permission, owner } = granted(services, readerId, label);
        return sharedView(row, permission, owner);
      } catch (error) {
        if (error instanceof ColloquyError) return null;
        throw error;
      }
    }),
  readSharedBlock: async ({ services }, readerId, label, version) => {
    const { row, permission, owner } = granted(services, readerId, label);
    const read = await services.blocks.read(label, version);
    return detailOf(sharedView(row, permission, owner), { ...read, version: version ?? read.row.version });
  },
  editSharedBlock: ({ services }, label, { reader, author, consented, until, ...edit }) => {
    requireAwaited(services, { until });
    const { permission } = granted(services, reader.agentId, label);
    const caller: BlockCaller =
      author === undefined ? { kind: "agent", ...reader, permission, consented } : { kind: "system", author };
    return services.blocks.edit(label, { ...edit, caller });
  },
};

/** Blocks that the people of the agent's spaces may use. */
export const spaceBlocksArea: Area<
  "blockSpaces" | "openBlock" | "closeBlock" | "spaceBlocks" | "spaceBlock" | "editSpaceBlock" | "spaceBlockHistory"
> = {
  blockSpaces: ({ services }, label) => services.blockSpaces.of(services.blocks.get(label).id),
  openBlock: ({ services }, label, space) => openBlock(services, label, space),
  closeBlock: ({ services }, label, spaceId) => {
    closeBlock(services, label, spaceId);
    return null;
  },
  spaceBlocks: ({ services }, spaceId) => {
    const { id: agentId, config } = services.identity.get();
    const owner = { agentId, agentName: config.name };
    return services.blockSpaces.in(spaceId).map(({ row, permission }) => sharedView(row, permission, owner));
  },
  spaceBlock: async ({ services }, spaceId, label, version) => {
    grantedIn(services, spaceId, label);
    const read = await services.blocks.read(label, version);
    // The block may have been taken back while it was read.
    return detailOf(viewInSpace(services, spaceId, label), { ...read, version: version ?? read.row.version });
  },
  editSpaceBlock: ({ services }, label, edit, { spaceId, author, name, callId }) => {
    const { permission } = grantedIn(services, spaceId, label);
    return services.blocks.edit(label, { ...edit, callId, caller: { kind: "person", author, name, permission } });
  },
  spaceBlockHistory: ({ db, services }, spaceId, label, { limit, cursor }) => {
    grantedIn(services, spaceId, label);
    return page(
      services.blocks.history(label, cursorOf(cursor), limit + 1),
      limit,
      ({ version }) => version,
      (change) => ({ ...change, ...originAuthor(db, change.author) }),
    );
  },
};
