import type { Permission, SpacePermission } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import type { Approval } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { orUnknown } from "../call-with-retry.ts";
import type { BlockCaller } from "../memory/blocks/block-author.ts";
import { blockView, detailOf } from "../memory/blocks/block-view.ts";
import type { SharedBlockRow } from "../memory/blocks/shared-blocks.ts";
import { editShared, loadShared } from "../memory/blocks/shared-reading.ts";
import { shareBlock, unshareBlock } from "../memory/blocks/sharing.ts";
import { closeBlock, openBlock } from "../memory/blocks/space-sharing.ts";
import { permissionRefusal, verdictOn } from "../memory/documents/permission.ts";
import type { Parts } from "../run/parts.ts";
import type { CallBlocks } from "../tools/tool.ts";

/** How one call reaches the agent's blocks, and those that others share with it: its own first. */

const consentMinutes = 24 * 60;

/** From the least that a permission lets an agent do to the most. */
const ranks: Record<Permission, number> = { ReadOnly: 0, Partner: 1, Human: 1, Append: 2, ReadWrite: 3, Admin: 4 };

const sharedOf = (parts: Parts, label: string, from?: string): SharedBlockRow | undefined => {
  const isOwn = from === undefined && parts.blocks.find(label) !== undefined;
  return isOwn ? undefined : parts.sharedBlocks.find(label, from);
};

const agentNamed = (parts: Parts, wanted: string): string => {
  const { id } = parts.identity.get();
  const others = new Map(
    parts.spaces
      .mine()
      .flatMap(({ members }) => members)
      .filter((member) => member.type === "agent" && member.id !== id)
      .map((member) => [member.id, member.name]),
  );
  const found = [...others].filter(([agentId, name]) => agentId === wanted || name === wanted);
  const [only] = found;
  if (only && found.length === 1) return only[0];
  throw new ColloquyError("not_found", `there is no other agent ${JSON.stringify(wanted)} in your spaces`);
};

const spaceNamed = (parts: Parts, wanted: string): string => {
  const found = parts.spaces.mine().filter(({ id, name }) => id === wanted || name === wanted);
  const [only] = found;
  if (only && found.length === 1) return only.id;
  if (!only) throw new ColloquyError("not_found", `you are in no space ${JSON.stringify(wanted)}`);
  const ids = found.map(({ id }) => id).join(", ");
  throw new ColloquyError("conflict", `several of your spaces are named ${JSON.stringify(wanted)}: say which, ${ids}`);
};

/** An agent gives no more of a block than it has. */
const requireRank = (parts: Parts, label: string, permission: Permission | SpacePermission): void => {
  const own = parts.blocks.get(label).permission;
  if (ranks[permission] <= ranks[own]) return;
  throw new ColloquyError("forbidden", `you may not give ${permission} of "${label}": the block has ${own}`);
};

/** What was to be taken back, and is not there any more, was taken back by what was cut. */
const onceOnly = async (replayed: boolean, takeBack: () => void | Promise<void>): Promise<void> => {
  try {
    await takeBack();
  } catch (error) {
    if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
  }
};

/** Who must agree before these operations are made; undefined where nobody need. Throws what no consent allows. */
const approvalOf = async (
  parts: Parts,
  label: string,
  operations: BlockOperation[],
  from: string | undefined,
  signal: AbortSignal,
): Promise<Approval | undefined> => {
  const shared = sharedOf(parts, label, from);
  const permission = shared ? shared.permission : parts.blocks.get(label).permission;
  const refused = operations.find(({ op }) => verdictOn(op, permission) === "refused");
  if (refused) throw permissionRefusal(refused.op, permission);
  if (operations.every(({ op }) => verdictOn(op, permission) === "allowed")) return undefined;
  const asked = { required: true, quorum: 1, expiresInMinutes: consentMinutes };
  if (permission === "Human") return asked;
  const partner = shared
    ? (await loadShared(parts, shared, signal)).partnerEntityId
    : parts.blocks.get(label).partnerEntityId;
  if (!partner) throw new ColloquyError("forbidden", `"${label}" needs its partner's consent, and names no partner`);
  return { ...asked, approvers: [partner] };
};

/** As the call's own agent: with a person's consent, where one gave it. */
const callerOf = ({ identity }: Parts, consented: boolean): BlockCaller => {
  const { id, config } = identity.get();
  return { kind: "agent", agentId: id, name: config.name, consented };
};

export const callBlocks = (
  parts: Parts,
  {
    callId,
    replayed,
    consented,
    signal,
  }: { callId: string; replayed: boolean; consented: boolean; signal: AbortSignal },
): CallBlocks => ({
  async load(label, { from, version }) {
    const shared = sharedOf(parts, label, from);
    if (shared) return loadShared(parts, shared, signal, version);
    const { row, value, rendered } = await parts.blocks.read(label, version);
    if (version === undefined) parts.blocks.touch(label);
    return detailOf(blockView(row), { value, rendered, version: version ?? row.version });
  },
  edit(label, edit, from) {
    const shared = sharedOf(parts, label, from);
    if (shared) return orUnknown(editShared(parts, shared, { ...edit, callId, consented }, signal));
    return parts.blocks.edit(label, { ...edit, caller: callerOf(parts, consented), callId });
  },
  approvalOf: (label, operations, from) => approvalOf(parts, label, operations, from, signal),
  create: (block) => parts.blocks.create(block, `agent:${parts.identity.get().id}`, callId),
  async pin(label, pinned, from) {
    const shared = sharedOf(parts, label, from);
    if (shared) parts.sharedBlocks.pin(shared, pinned);
    else await parts.blocks.pin(label, pinned, `agent:${parts.identity.get().id}`);
  },
  async archive(label) {
    if (parts.blocks.get(label).type === "core") {
      throw new ColloquyError("forbidden", `"${label}" is a core block: those are never put away`);
    }
    await parts.blocks.update(label, { type: "archival", pinned: false }, `agent:${parts.identity.get().id}`);
  },
  show: (label, viewport, section) =>
    parts.blocks.update(label, { viewport, section }, `agent:${parts.identity.get().id}`),
  async share(label, agent, permission) {
    requireRank(parts, label, permission);
    await shareBlock(parts, label, { agentId: agentNamed(parts, agent), permission }, signal);
  },
  unshare: (label, agent) => onceOnly(replayed, () => unshareBlock(parts, label, agentNamed(parts, agent), signal)),
  async open(label, space, permission) {
    requireRank(parts, label, permission);
    await openBlock(parts, label, { spaceId: spaceNamed(parts, space), permission });
  },
  close: (label, space) => onceOnly(replayed, () => closeBlock(parts, label, spaceNamed(parts, space))),
  history: (label, limit) => parts.blocks.history(label, undefined, limit),
});
