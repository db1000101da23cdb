import type { Env } from "../../../env.ts";
import type { Block, BlockDetail, EditedBlock } from "../../../protocol/block.ts";
import type { BlockGrant, BlockPrincipal } from "../../../protocol/block-rpc.ts";
import type { AgentRpc } from "../../../protocol/rpc.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import { ColloquyError, type Outcome, unwrap } from "../../../shared/errors.ts";
import type { Ids } from "../../../shared/ids.ts";
import { spaceAnswerMs } from "../../bounds.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { Identity } from "../../identity.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import type { BlockRow } from "./block-view.ts";
import type { BlockEdit, Blocks } from "./blocks.ts";
import type { SharedBlockRow, SharedBlocks } from "./shared-blocks.ts";
import { isSpaceId, type Shares } from "./shares.ts";

/**
 * Blocks that agents share: this one's with others and with spaces, and others' with this one.
 *
 * Invariants
 * 1. The owner's row decides. It is written before the other agent is told, and deleted before it is told so. What the
 *    owner says of a block that it shares is believed at once.
 * 2. To share and to take back can be repeated when it was cut in the middle: nothing changes twice.
 * 3. An owner that cannot be reached stops nothing: its blocks read `(unavailable)`.
 */
export type BlockServices = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  blocks: Blocks;
  shares: Shares;
  sharedBlocks: SharedBlocks;
  subscriptions: BlockSubscriptions;
};

/** Asks another agent, again where it cannot be reached. */
const ask = <T>(
  { env }: BlockServices,
  agentId: string,
  asking: (agent: AgentRpc) => Promise<Outcome<T>>,
  signal: AbortSignal,
): Promise<Outcome<T>> => callWithRetry(() => asking(env.AGENT.getByName(agentId)), signal);

/** Lets another agent, or the people of a space, use a block. */
export const shareBlock = async (
  services: BlockServices,
  label: string,
  { granteeId, permission }: Omit<BlockGrant, "createdAt">,
  signal: AbortSignal,
): Promise<BlockGrant> => {
  const { id: ownerId, workspaceId, config } = services.identity.get();
  if (isSpaceId(granteeId)) {
    const { row, value } = await services.blocks.read(label);
    const grant = services.shares.put(row.id, granteeId, permission);
    // Those who watch it there learn of another permission at once.
    services.subscriptions.changed({ what: "updated", row, by: "system", value });
    return grant;
  }
  if (granteeId === ownerId) throw new ColloquyError("invalid_request", "a block is not shared with its owner");
  if (!services.ids.isIssued("ent", granteeId)) throw new ColloquyError("not_found", "there is no such agent");
  const row = services.blocks.get(label);
  const grant = services.shares.put(row.id, granteeId, permission);
  const note = { ownerId, ownerName: config.name, label, type: row.type, permission };
  const told = await ask(services, granteeId, (agent) => agent.noteSharedBlock(workspaceId, note), signal);
  if (!told.ok) services.shares.remove(row.id, granteeId);
  unwrap(told);
  return grant;
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
  const grants = services.shares.grants(id);
  services.shares.removeAll(id);
  for (const { granteeId } of grants) {
    if (!isSpaceId(granteeId)) await tellGone(services, label, granteeId, signal);
  }
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
    await ask(services, agentId, (agent) => agent.dropSharedBlock(workspaceId, ownerId, label), signal);
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
  }
};

/** As the agent itself: with a person's consent, where one gave it. */
export const ownPrincipal = ({ identity }: BlockServices, consented?: boolean): BlockPrincipal => {
  const { id, config } = identity.get();
  return { kind: "agent", agentId: id, name: config.name, consented };
};

/** The block of another agent that a label means here: the agent's own come first, where `from` names no owner. */
export const othersBlock = (
  { blocks, sharedBlocks }: BlockServices,
  label: string,
  from?: string,
): SharedBlockRow | undefined =>
  from === undefined && blocks.find(label) ? undefined : sharedBlocks.find(label, from);

/** A block under its label here. Throws `not_found`, what another owner refuses, or `unavailable`. */
export const loadBlock = async (
  services: BlockServices,
  label: string,
  signal: AbortSignal,
  { version, from }: { version?: number | undefined; from?: string | undefined } = {},
): Promise<BlockDetail> => {
  const row = othersBlock(services, label, from);
  if (!row) return services.blocks.detail(label, version);
  const { id, workspaceId } = services.identity.get();
  const asking = (owner: AgentRpc) => owner.readSharedBlock(workspaceId, id, label, version);
  return { ...unwrap(await ask(services, row.ownerId, asking, signal)), pinned: row.pinned };
};

/** Edits a block under its label here. Throws what refuses it, or `unavailable`. */
export const editBlock = async (
  services: BlockServices,
  label: string,
  edit: BlockEdit,
  signal: AbortSignal,
  from?: string,
): Promise<EditedBlock> => {
  const row = othersBlock(services, label, from);
  if (!row) return services.blocks.edit(label, edit);
  const { id, workspaceId } = services.identity.get();
  const by: BlockPrincipal = edit.by.kind === "workspace" ? { ...edit.by, through: id } : edit.by;
  // Its owner may be asked again where its answer was lost.
  const callId = edit.callId ?? services.ids.mint("key");
  const asking = (owner: AgentRpc) => {
    const until = services.clock.now() + spaceAnswerMs;
    return owner.editSharedBlock(workspaceId, label, { ...edit, by, callId, until });
  };
  return unwrap(await ask(services, row.ownerId, asking, signal));
};

const withheld = ({ label, type, permission, pinned, ownerId, ownerName, createdAt }: SharedBlockRow): Block => ({
  label,
  type,
  permission,
  description: "",
  schema: { type: "text" },
  pinned,
  charLimit: 0,
  version: 0,
  rendered: "(unavailable)",
  sharedFrom: { agentId: ownerId, agentName: ownerName },
  createdAt: isoTime(createdAt),
  updatedAt: isoTime(createdAt),
});

/** Others' blocks as they are now, in the order of `rows`. Each owner is asked once. */
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
      const answer = await ask(services, ownerId, (owner) => owner.readSharedBlocks(workspaceId, id, labels), signal);
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
