import type {
  BlockChange,
  BlockDetail,
  CreateBlock,
  EditBlock,
  EditedBlock,
  Permission,
} from "../../../protocol/block.ts";
import type { BlockOperation } from "../../../protocol/block-operation.ts";
import type { Viewport } from "../../../protocol/block-schema.ts";
import type { Approval } from "../../../protocol/tool.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import type { Spaces } from "../../spaces.ts";
import { permissionRefusal, ranks, verdictOn } from "../documents/permission.ts";
import { type BlockServices, ownPrincipal, type View } from "./shared-blocks.ts";
import type { BlockRow } from "./shares.ts";

type CallBlockServices = BlockServices & { spaces: Pick<Spaces, "mine"> };

/** Another agent of its spaces, or a space of its own whose people may use the block, by name or id. */
export type BlockGrantee = { kind: "agent" | "space"; wanted: string };

const consentMinutes = 24 * 60;

const granteeNamed = ({ identity, spaces }: CallBlockServices, { kind, wanted }: BlockGrantee): string => {
  const self = identity.get().id;
  const members = spaces.mine().flatMap((space) => space.members);
  const others = members.filter(({ id, type }) => type === "agent" && id !== self);
  const named = (kind === "agent" ? others : spaces.mine()).filter(({ id, name }) => id === wanted || name === wanted);
  const [only, ...more] = new Set(named.map(({ id }) => id));
  if (only !== undefined && more.length === 0) return only;
  const quoted = JSON.stringify(wanted);
  if (kind === "agent") throw new ColloquyError("not_found", `there is no other agent ${quoted} in your spaces`);
  if (only === undefined) throw new ColloquyError("not_found", `you are in no space ${quoted}`);
  const ids = [only, ...more].join(", ");
  throw new ColloquyError("conflict", `several of your spaces are named ${quoted}: say which, ${ids}`);
};

type Call = { callId: string; replayed: boolean; consented: boolean; signal: AbortSignal };

export type CallBlocks = ReturnType<typeof callBlocks>;

/** The agent's blocks and those that others share with it, as one call reaches them: its own first. Refusals are thrown. */
export const callBlocks = (services: CallBlockServices, { callId, replayed, consented, signal }: Call) => {
  const { blocks, sharedBlocks, identity } = services;
  const author = `agent:${identity.get().id}`;
  return {
    async load(label: string, view: View): Promise<BlockDetail> {
      const block = await sharedBlocks.load(label, signal, view);
      if (block.sharedFrom === undefined && view.version === undefined) blocks.touch(label);
      return block;
    },

    /** The same call again changes nothing more. */
    edit: (label: string, edit: Pick<EditBlock, "operations" | "onVersion">, from?: string): Promise<EditedBlock> =>
      sharedBlocks.edit(label, { ...edit, by: ownPrincipal(services, consented), callId }, signal, from),

    /** The approval that these operations need; undefined where none. Throws where no consent can allow them. */
    async approvalOf(label: string, operations: BlockOperation[], from?: string): Promise<Approval | undefined> {
      const { permission } = sharedBlocks.find(label, from) ?? blocks.get(label);
      const refused = operations.find(({ op }) => verdictOn(op, permission) === "refused");
      if (refused) throw permissionRefusal(refused.op, permission);
      if (operations.every(({ op }) => verdictOn(op, permission) === "allowed")) return undefined;
      const asked = { required: true, quorum: 1, expiresInMinutes: consentMinutes };
      if (permission === "Human") return asked;
      const { partnerEntityId: partner } = await sharedBlocks.load(label, signal, { from });
      if (partner) return { ...asked, approvers: [partner] };
      throw new ColloquyError("forbidden", `"${label}" needs its partner's consent, and names no partner`);
    },

    create: (block: CreateBlock): Promise<BlockRow> => blocks.create(block, author, callId),

    async pin(label: string, pinned: boolean, from?: string): Promise<void> {
      const shared = sharedBlocks.find(label, from);
      if (shared) sharedBlocks.pin(shared, pinned);
      else await blocks.pin(label, pinned, author);
    },

    async archive(label: string): Promise<void> {
      if (blocks.get(label).type === "core") {
        throw new ColloquyError("forbidden", `"${label}" is a core block: those are never put away`);
      }
      await blocks.update(label, { type: "archival", pinned: false }, author);
    },

    show: (label: string, viewport: Viewport | null, section?: string): Promise<BlockRow> =>
      blocks.update(label, { viewport, section }, author),

    async share(label: string, grantee: BlockGrantee, permission: Permission): Promise<void> {
      const own = blocks.get(label).permission;
      if (ranks[permission] > ranks[own]) {
        throw new ColloquyError("forbidden", `you may not give ${permission} of "${label}": the block has ${own}`);
      }
      await sharedBlocks.share(label, { granteeId: granteeNamed(services, grantee), permission }, signal);
    },

    async unshare(label: string, grantee: BlockGrantee): Promise<void> {
      try {
        await sharedBlocks.unshare(label, granteeNamed(services, grantee), signal);
      } catch (error) {
        // In a replay, a share that is not there any more was taken back before the cut.
        if (!(replayed && error instanceof ColloquyError && error.code === "not_found")) throw error;
      }
    },

    /** Newest first. */
    history: (label: string, limit: number): BlockChange[] => blocks.history(label, undefined, limit),
  };
};
