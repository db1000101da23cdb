import type { BlockOperation } from "../../protocol/block-operation.ts";
import type { Approval } from "../../protocol/tool.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { ownPrincipal } from "../memory/blocks/shared-blocks.ts";
import { permissionRefusal, ranks, verdictOn } from "../memory/documents/permission.ts";
import { asUnknownOutcome } from "../tools/outcome.ts";
import type { BlockGrantee, CallBlocks } from "../tools/tool.ts";
import type { CallServices } from "./calls.ts";

/** How one call reaches the agent's blocks, and those that others share with it: its own first. */

const consentMinutes = 24 * 60;

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

const granteeNamed = (services: CallServices, { agent, space }: BlockGrantee): string =>
  space === undefined ? agentNamed(services, agent) : spaceNamed(services, space);

/** The approval that these operations need; undefined where none. Throws where no consent can allow them. */
const approvalOf = async (
  services: CallServices,
  label: string,
  operations: BlockOperation[],
  from: string | undefined,
  signal: AbortSignal,
): Promise<Approval | undefined> => {
  const { permission } = services.sharedBlocks.find(label, from) ?? services.blocks.get(label);
  const refused = operations.find(({ op }) => verdictOn(op, permission) === "refused");
  if (refused) throw permissionRefusal(refused.op, permission);
  if (operations.every(({ op }) => verdictOn(op, permission) === "allowed")) return undefined;
  const asked = { required: true, quorum: 1, expiresInMinutes: consentMinutes };
  if (permission === "Human") return asked;
  const { partnerEntityId: partner } = await services.sharedBlocks.load(label, signal, { from });
  if (!partner) throw new ColloquyError("forbidden", `"${label}" needs its partner's consent, and names no partner`);
  return { ...asked, approvers: [partner] };
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
  async load(label, view) {
    const block = await services.sharedBlocks.load(label, signal, view);
    if (block.sharedFrom === undefined && view.version === undefined) services.blocks.touch(label);
    return block;
  },
  edit(label, edit, from) {
    const by = ownPrincipal(services, consented);
    return asUnknownOutcome(services.sharedBlocks.edit(label, { ...edit, by, callId }, signal, from));
  },
  approvalOf: (label, operations, from) => approvalOf(services, label, operations, from, signal),
  create: (block) => services.blocks.create(block, `agent:${services.identity.get().id}`, callId),
  async pin(label, pinned, from) {
    const shared = services.sharedBlocks.find(label, from);
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
  async share(label, grantee, permission) {
    const own = services.blocks.get(label).permission;
    if (ranks[permission] > ranks[own]) {
      throw new ColloquyError("forbidden", `you may not give ${permission} of "${label}": the block has ${own}`);
    }
    await services.sharedBlocks.share(label, { granteeId: granteeNamed(services, grantee), permission }, signal);
  },
  async unshare(label, grantee) {
    try {
      await services.sharedBlocks.unshare(label, granteeNamed(services, grantee), signal);
    } catch (error) {
      // In a replay, a share that is not there any more was taken back before the cut.
      if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
    }
  },
  history: (label, limit) => services.blocks.history(label, undefined, limit),
});
