import type { Permission, SpacePermission } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import type { BlockPrincipal } from "../../protocol/block-rpc.ts";
import type { Approval } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { blockView, detailOf } from "../memory/blocks/block-view.ts";
import type { SharedBlockRow } from "../memory/blocks/shared-blocks.ts";
import { editShared, loadShared } from "../memory/blocks/shared-reading.ts";
import { shareBlock, shareWithSpace, unshare } from "../memory/blocks/sharing.ts";
import { permissionRefusal, verdictOn } from "../memory/documents/permission.ts";
import type { CallBlocks } from "../tools/tool.ts";
import { asUnknownOutcome } from "../tools/unknown-outcome.ts";
import type { CallServices } from "./calls.ts";

/** How one call reaches the agent's blocks, and those that others share with it: its own first. */

const consentMinutes = 24 * 60;

/** From the least that a permission lets an agent do to the most. */
const ranks: Record<Permission, number> = { ReadOnly: 0, Partner: 1, Human: 1, Append: 2, ReadWrite: 3, Admin: 4 };

const sharedOf = (services: CallServices, label: string, from?: string): SharedBlockRow | undefined => {
  const isOwn = from === undefined && services.blocks.find(label) !== undefined;
  return isOwn ? undefined : services.sharedBlocks.find(label, from);
};

const agentNamed = (services: CallServices, wanted: string): string => {
  const { id } = services.identity.get();
  const others = new Map(
    services.spaces
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

const spaceNamed = (services: CallServices, wanted: string): string => {
  const found = services.spaces.mine().filter(({ id, name }) => id === wanted || name === wanted);
  const [only] = found;
  if (only && found.length === 1) return only.id;
  if (!only) throw new ColloquyError("not_found", `you are in no space ${JSON.stringify(wanted)}`);
  const ids = found.map(({ id }) => id).join(", ");
  throw new ColloquyError("conflict", `several of your spaces are named ${JSON.stringify(wanted)}: say which, ${ids}`);
};

/** An agent gives no more of a block than it has. */
const requireRank = (services: CallServices, label: string, permission: Permission | SpacePermission): void => {
  const own = services.blocks.get(label).permission;
  if (ranks[permission] <= ranks[own]) return;
  throw new ColloquyError("forbidden", `you may not give ${permission} of "${label}": the block has ${own}`);
};

/** In a replay, a share that is not there any more was taken back before the cut. */
const onceOnly = async (replayed: boolean, takeBack: () => Promise<void>): Promise<void> => {
  try {
    await takeBack();
  } catch (error) {
    if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
  }
};

/** The approval that these operations need; undefined where none. Throws where no consent can allow them. */
const approvalOf = async (
  services: CallServices,
  label: string,
  operations: BlockOperation[],
  from: string | undefined,
  signal: AbortSignal,
): Promise<Approval | undefined> => {
  const shared = sharedOf(services, label, from);
  const permission = shared ? shared.permission : services.blocks.get(label).permission;
  const refused = operations.find(({ op }) => verdictOn(op, permission) === "refused");
  if (refused) throw permissionRefusal(refused.op, permission);
  if (operations.every(({ op }) => verdictOn(op, permission) === "allowed")) return undefined;
  const asked = { required: true, quorum: 1, expiresInMinutes: consentMinutes };
  if (permission === "Human") return asked;
  const partner = shared
    ? (await loadShared(services, shared, signal)).partnerEntityId
    : services.blocks.get(label).partnerEntityId;
  if (!partner) throw new ColloquyError("forbidden", `"${label}" needs its partner's consent, and names no partner`);
  return { ...asked, approvers: [partner] };
};

/** As the call's own agent: with a person's consent, where one gave it. */
const principalOf = ({ identity }: CallServices, consented: boolean): BlockPrincipal => {
  const { id, config } = identity.get();
  return { kind: "agent", agentId: id, name: config.name, consented };
};

export const callBlocks = (
  services: CallServices,
  {
    callId,
    replayed,
    consented,
    signal,
  }: { callId: string; replayed: boolean; consented: boolean; signal: AbortSignal },
): CallBlocks => ({
  async load(label, { from, version }) {
    const shared = sharedOf(services, label, from);
    if (shared) return loadShared(services, shared, signal, version);
    const { row, value, rendered } = await services.blocks.read(label, version);
    if (version === undefined) services.blocks.touch(label);
    return detailOf(blockView(row), { value, rendered, version: version ?? row.version });
  },
  edit(label, edit, from) {
    const shared = sharedOf(services, label, from);
    if (shared) return asUnknownOutcome(editShared(services, shared, { ...edit, callId, consented }, signal));
    return services.blocks.edit(label, { ...edit, by: principalOf(services, consented), callId });
  },
  approvalOf: (label, operations, from) => approvalOf(services, label, operations, from, signal),
  create: (block) => services.blocks.create(block, `agent:${services.identity.get().id}`, callId),
  async pin(label, pinned, from) {
    const shared = sharedOf(services, label, from);
    if (shared) services.sharedBlocks.pin(shared, pinned);
    else await services.blocks.pin(label, pinned, `agent:${services.identity.get().id}`);
  },
  async archive(label) {
    if (services.blocks.get(label).type === "core") {
      throw new ColloquyError("forbidden", `"${label}" is a core block: those are never put away`);
    }
    await services.blocks.update(label, { type: "archival", pinned: false }, `agent:${services.identity.get().id}`);
  },
  show: (label, viewport, section) =>
    services.blocks.update(label, { viewport, section }, `agent:${services.identity.get().id}`),
  async share(label, agent, permission) {
    requireRank(services, label, permission);
    await shareBlock(services, label, { agentId: agentNamed(services, agent), permission }, signal);
  },
  unshare: (label, agent) => onceOnly(replayed, () => unshare(services, label, agentNamed(services, agent), signal)),
  async shareWithSpace(label, space, permission) {
    requireRank(services, label, permission);
    await shareWithSpace(services, label, { spaceId: spaceNamed(services, space), permission });
  },
  unshareFromSpace: (label, space) =>
    onceOnly(replayed, () => unshare(services, label, spaceNamed(services, space), signal)),
  history: (label, limit) => services.blocks.history(label, undefined, limit),
});
