import type { BlockMethods, BlockPrincipal } from "../../protocol/agent-rpc.ts";
import type { BlockDetail, EditBlock, UpdateBlock } from "../../protocol/block.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { requireAwaited } from "../../shared/require-awaited.ts";
import { timeoutSignal } from "../../shared/timeouts.ts";
import { isExposure } from "../memory/blocks/exposing.ts";
import { type BlockServices, ownPrincipal, type SharedBlockRow } from "../memory/blocks/shared-blocks.ts";
import { blockView } from "../memory/blocks/shares.ts";
import { originAuthor } from "../transfer/origin.ts";
import type { Area } from "./agent-runtime.ts";
import { cursorOf, page } from "./page.ts";

/** How long others are asked for, in the service of one request. */
const askMs = 15_000;

const principalOf = (services: BlockServices, as: EditBlock["as"], author: string): BlockPrincipal =>
  as === "agent" ? ownPrincipal(services) : { kind: "workspace", author };

const detail = ({ sharedBlocks }: BlockServices, label: string, version?: number): Promise<BlockDetail> =>
  sharedBlocks.load(label, timeoutSignal(askMs), { version });

/** A reader may only pin a shared block; its owner sets all else. */
const pinShared = ({ sharedBlocks }: BlockServices, row: SharedBlockRow, { pinned, ...others }: UpdateBlock): void => {
  const refusal = `"${row.label}" is shared by ${row.ownerName}: change it there, or only pin it`;
  if (Object.values(others).some((each) => each !== undefined)) throw new ColloquyError("forbidden", refusal);
  if (pinned !== undefined) sharedBlocks.pin(row, pinned);
};

/** The agent's blocks: its own, those that it shares, and those that others share with it. */
export const blocksArea: Area<keyof BlockMethods> = {
  proveAgain: ({ services }, subject) => {
    services.subscriptions.proveAgain(subject);
    return null;
  },
  blocks: async ({ services }) => {
    await services.sharedBlocks.follow(timeoutSignal(askMs));
    const shared = await services.sharedBlocks.read(services.sharedBlocks.list(), timeoutSignal(askMs));
    return [...services.blocks.list().map(blockView), ...shared];
  },
  createBlock: async ({ services }, block, author, callId) => {
    await services.blocks.create(block, author, callId);
    return detail(services, block.label);
  },
  block: ({ services }, label, version, granteeId, confidential) =>
    granteeId === undefined
      ? detail(services, label, version)
      : services.blocks.detail(label, version, granteeId, confidential),
  editBlock: ({ services }, label, { as, ...wanted }, author, callId) => {
    const edit = { ...wanted, by: principalOf(services, as, author), callId };
    return services.sharedBlocks.edit(label, edit, timeoutSignal(askMs));
  },
  updateBlock: async ({ services }, label, changes, author, readable) => {
    const shared = services.sharedBlocks.findToChange(label);
    if (shared) pinShared(services, shared, changes);
    else {
      const exposure = await services.sharedBlocks.update(label, changes, author, timeoutSignal(askMs), readable);
      if (isExposure(exposure)) return exposure;
    }
    return detail(services, label);
  },
  deleteBlock: async ({ services }, label, as, author) => {
    await services.sharedBlocks.deleteOwn(label, { by: principalOf(services, as, author) }, timeoutSignal(askMs));
    return null;
  },
  deleteSharedBlock: async ({ services }, label, { until, ...change }) => {
    requireAwaited(services, { until });
    await services.sharedBlocks.deleteOwn(label, change, timeoutSignal(askMs));
    return null;
  },
  blockHistory: ({ db, services }, label, { limit, cursor }, granteeId) =>
    page(
      services.blocks.history(label, cursorOf(cursor), limit + 1, granteeId, granteeId === undefined),
      limit,
      ({ version }) => version,
      (change) => ({ ...change, ...originAuthor(db, change.author) }),
    ),
  blockGrants: ({ services }, label) => services.shares.grants(services.blocks.get(label).id),
  shareBlock: ({ services }, label, grant, readable) =>
    services.sharedBlocks.share(label, grant, timeoutSignal(askMs), readable),
  unshareBlock: async ({ services }, label, granteeId) => {
    await services.sharedBlocks.unshare(label, granteeId, timeoutSignal(askMs));
    return null;
  },
  noteSharedBlock: ({ services }, note) => {
    services.sharedBlocks.note(note);
    return null;
  },
  dropSharedBlock: ({ services }, ownerId, label) => {
    services.sharedBlocks.drop({ ownerId, label });
    return null;
  },
  readSharedBlocks: async ({ services: { blocks, shares } }, readerId, labels, confidential) => {
    const rows = await blocks.rendered();
    return labels.map((label) => {
      const row = rows.find((each) => each.label === label);
      return (row && shares.viewFor(row, readerId, confidential)) ?? null;
    });
  },
  openBlocks: async ({ services: { blocks, sharedBlocks } }, known) =>
    sharedBlocks.openFor(await blocks.rendered(), known),
  spaceBlocks: ({ services }, spaceId) => services.shares.sharedWith(spaceId),
  editSharedBlock: ({ services }, label, { until, ...edit }) => {
    requireAwaited(services, { until });
    return services.blocks.edit(label, edit);
  },
};
