import type { Block, BlockDetail, EditedBlock } from "../../../protocol/block.ts";
import type { BlockPrincipal } from "../../../protocol/block-rpc.ts";
import { isoTime } from "../../../shared/clock.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { spaceAnswerMs } from "../../bounds.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { BlockServices } from "./block-services.ts";
import type { BlockEdit } from "./blocks.ts";
import type { SharedBlockRow } from "./shared-blocks.ts";

/**
 * Blocks that other agents share with this one: their owners hold them, and are asked.
 *
 * Invariants
 * 1. An owner that says that it does not share a block (any more) is believed at once.
 * 2. One that cannot be reached stops nothing: its blocks read `(unavailable)`.
 */
const unavailable = "(unavailable)";

const withheld = ({ label, type, permission, pinned, ownerId, ownerName, createdAt }: SharedBlockRow): Block => ({
  label,
  type,
  permission,
  description: "",
  schema: { type: "text" },
  pinned,
  charLimit: 0,
  version: 0,
  rendered: unavailable,
  sharedFrom: { agentId: ownerId, agentName: ownerName },
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(createdAt),
});

/** The blocks as they are now, in the order of `rows`. Each owner is asked once. */
export const readShared = async (
  services: BlockServices,
  rows: SharedBlockRow[],
  signal: AbortSignal,
): Promise<Block[]> => {
  if (rows.length === 0) return [];
  const { id, workspaceId } = services.identity.get();
  const byOwner = Map.groupBy(rows, ({ ownerId }) => ownerId);
  const answers = [...byOwner].map(async ([ownerId, wanted]): Promise<[SharedBlockRow, Block | null][]> => {
    try {
      const labels = wanted.map(({ label }) => label);
      const ask = () => services.env.AGENT.getByName(ownerId).readSharedBlocks(workspaceId, id, labels);
      const answer = await callWithRetry(ask, signal);
      if (!answer.ok && answer.problem.code === "not_found") return wanted.map((row) => [row, null]);
      const read = unwrap(answer);
      return wanted.map((row, index) => [row, read[index] ?? null]);
    } catch (error) {
      // After a timeout the block reads as withheld; after a cancel nothing is read.
      if (!(error instanceof ColloquyError && error.retryable)) signal.throwIfAborted();
      return wanted.map((row) => [row, withheld(row)]);
    }
  });
  const known = new Map((await Promise.all(answers)).flat());
  return rows.flatMap((row) => {
    const block = known.get(row) ?? null;
    if (block === null) {
      services.sharedBlocks.drop(row.ownerId, row.label);
      return [];
    }
    if (block.version > 0) {
      const ownerName = block.sharedFrom?.agentName ?? row.ownerName;
      services.sharedBlocks.refresh(row, { ownerName, type: block.type, permission: block.permission });
    }
    return [{ ...block, pinned: row.pinned }];
  });
};

/** Throws what its owner refuses, or `unavailable`. */
export const loadShared = async (
  services: BlockServices,
  row: SharedBlockRow,
  signal: AbortSignal,
  version?: number,
): Promise<BlockDetail> => {
  const { id, workspaceId } = services.identity.get();
  const owner = services.env.AGENT.getByName(row.ownerId);
  const read = unwrap(await callWithRetry(() => owner.readSharedBlock(workspaceId, id, row.label, version), signal));
  return { ...read, pinned: row.pinned };
};

/** Throws what its owner refuses, or `unavailable`. */
export const editShared = async (
  services: BlockServices,
  row: SharedBlockRow,
  { author, consented, ...edit }: Omit<BlockEdit, "by"> & { author?: string; consented?: boolean },
  signal: AbortSignal,
): Promise<EditedBlock> => {
  const { id, workspaceId, config } = services.identity.get();
  const owner = services.env.AGENT.getByName(row.ownerId);
  const by: BlockPrincipal =
    author === undefined
      ? { kind: "agent", agentId: id, name: config.name, consented }
      : { kind: "workspace", author, through: id };
  const ask = () => {
    const until = services.clock.now() + spaceAnswerMs;
    return owner.editSharedBlock(workspaceId, row.label, { ...edit, by, until });
  };
  return unwrap(await callWithRetry(ask, signal));
};
