import type { Outcome } from "../shared/errors.ts";
import type {
  Block,
  BlockChange,
  BlockDetail,
  BlockType,
  CreateBlock,
  EditBlock,
  EditedBlock,
  Permission,
  UpdateBlock,
} from "./block.ts";
import type { Page, PageRequest } from "./page.ts";

/** An agent's note to another about a block that it shares with it. */
export type SharedBlockNote = {
  ownerId: string;
  ownerName: string;
  label: string;
  type: BlockType;
  permission: Permission;
};

/** An agent that may use a block, or a space whose people may, and how. */
export type BlockGrant = { granteeId: string; permission: Permission; createdAt: string };

/** Who edits a block. The caller has checked that it is that principal. */
export type BlockPrincipal =
  /** Somebody with the workspace's rights; `through` is the agent that the block is shared with and is reached by. */
  | { kind: "workspace"; author: string; through?: string | undefined }
  /** A member of a space that the block is shared with. `author` is `human:ent_…`. */
  | { kind: "person"; spaceId: string; author: string; name: string }
  /** The block's owner, or an agent that it is shared with. `consented`: a person agreed to this edit. */
  | { kind: "agent"; agentId: string; name: string; consented?: boolean | undefined };

/** An edit by whom a block is shared with; `callId` makes the same one again change nothing. */
export type SharedEdit = Pick<EditBlock, "operations" | "onVersion"> & {
  by: BlockPrincipal;
  callId?: string | undefined;
  /** When the caller stops waiting, in milliseconds since the epoch: what is not made by then is `unavailable`. */
  until?: number | undefined;
};

/**
 * An agent's own blocks. `author` is the caller: `human:ent_…` or `system`. The same `callId` again changes nothing and
 * gets the same answer.
 */
export interface BlockRpc {
  /** Its own and those that are shared with it, by label. */
  blocks(workspaceId: string): Promise<Outcome<Block[]>>;
  createBlock(workspaceId: string, block: CreateBlock, author: string, callId?: string): Promise<Outcome<BlockDetail>>;
  /** `granteeId`: as the agent or the space sees it that the block is shared with. Otherwise as this agent sees it. */
  block(workspaceId: string, label: string, version?: number, granteeId?: string): Promise<Outcome<BlockDetail>>;
  editBlock(
    workspaceId: string,
    label: string,
    edit: EditBlock,
    author: string,
    callId?: string,
  ): Promise<Outcome<EditedBlock>>;
  updateBlock(workspaceId: string, label: string, changes: UpdateBlock, author: string): Promise<Outcome<BlockDetail>>;
  deleteBlock(workspaceId: string, label: string, as: EditBlock["as"], author: string): Promise<Outcome<null>>;
  /** Newest first. */
  blockHistory(
    workspaceId: string,
    label: string,
    page: PageRequest,
    granteeId?: string,
  ): Promise<Outcome<Page<BlockChange>>>;
  /** Oldest first. */
  blockGrants(workspaceId: string, label: string): Promise<Outcome<BlockGrant[]>>;
  /** Of a space, the caller has checked that the agent is in it. */
  shareBlock(workspaceId: string, label: string, grant: Omit<BlockGrant, "createdAt">): Promise<Outcome<BlockGrant>>;
  unshareBlock(workspaceId: string, label: string, granteeId: string): Promise<Outcome<null>>;

  /** From the agents that own blocks. */
  noteSharedBlock(workspaceId: string, note: SharedBlockNote): Promise<Outcome<null>>;
  dropSharedBlock(workspaceId: string, ownerId: string, label: string): Promise<Outcome<null>>;
  /** From the agents that blocks are shared with. Null for what is not shared (any more). */
  readSharedBlocks(workspaceId: string, readerId: string, labels: string[]): Promise<Outcome<(Block | null)[]>>;

  /** For the people of a space, whom the caller has checked. By label; `permission` is theirs. */
  spaceBlocks(workspaceId: string, spaceId: string): Promise<Outcome<Block[]>>;

  /** For both: `by` says who. */
  editSharedBlock(workspaceId: string, label: string, edit: SharedEdit): Promise<Outcome<EditedBlock>>;
}
