import type { Outcome } from "../shared/errors.ts";
import type {
  Block,
  BlockChange,
  BlockDetail,
  BlockShare,
  BlockSpace,
  BlockType,
  CreateBlock,
  EditBlock,
  EditedBlock,
  EditSpaceBlock,
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

/** An edit by the agent that a block is shared with; `callId` makes the same one again change nothing. */
export type SharedEdit = Pick<EditBlock, "operations" | "onVersion"> & {
  reader: { agentId: string; name: string };
  /** The author who edits it in the reader's place, with the workspace's rights: `human:ent_…` or `system`. */
  author?: string | undefined;
  callId?: string | undefined;
  /** A person agreed to it. */
  consented?: boolean | undefined;
  /** When the reader stops waiting, in milliseconds since the epoch: what is not made by then is `unavailable`. */
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
  block(workspaceId: string, label: string, version?: number): Promise<Outcome<BlockDetail>>;
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
  blockHistory(workspaceId: string, label: string, page: PageRequest): Promise<Outcome<Page<BlockChange>>>;
  blockShares(workspaceId: string, label: string): Promise<Outcome<BlockShare[]>>;
  shareBlock(workspaceId: string, label: string, share: Omit<BlockShare, "createdAt">): Promise<Outcome<BlockShare>>;
  unshareBlock(workspaceId: string, label: string, agentId: string): Promise<Outcome<null>>;

  /** From the agents that own blocks. */
  noteSharedBlock(workspaceId: string, note: SharedBlockNote): Promise<Outcome<null>>;
  dropSharedBlock(workspaceId: string, ownerId: string, label: string): Promise<Outcome<null>>;
  /** From the agents that blocks are shared with. Null for what is not shared (any more). */
  readSharedBlocks(workspaceId: string, readerId: string, labels: string[]): Promise<Outcome<(Block | null)[]>>;
  readSharedBlock(
    workspaceId: string,
    readerId: string,
    label: string,
    version?: number,
  ): Promise<Outcome<BlockDetail>>;
  editSharedBlock(workspaceId: string, label: string, edit: SharedEdit): Promise<Outcome<EditedBlock>>;
}

/**
 * The person who edits in a space. The worker has checked that both the person and the agent are members. `author` is
 * `human:ent_…`; the same `callId` again changes nothing and gets the same answer.
 */
export type SpaceEditor = { spaceId: string; author: string; name: string; callId?: string | undefined };

/** The blocks that an agent shares with a space. The space learns nothing else of the agent. */
export interface SpaceBlockRpc {
  blockSpaces(workspaceId: string, label: string): Promise<Outcome<BlockSpace[]>>;
  /** The caller has checked that the agent is in the space. */
  openBlock(workspaceId: string, label: string, space: Omit<BlockSpace, "createdAt">): Promise<Outcome<BlockSpace>>;
  closeBlock(workspaceId: string, label: string, spaceId: string): Promise<Outcome<null>>;

  /** For the people of a space. By label; `permission` is theirs. */
  spaceBlocks(workspaceId: string, spaceId: string): Promise<Outcome<Block[]>>;
  spaceBlock(workspaceId: string, spaceId: string, label: string, version?: number): Promise<Outcome<BlockDetail>>;
  editSpaceBlock(
    workspaceId: string,
    label: string,
    edit: EditSpaceBlock,
    editor: SpaceEditor,
  ): Promise<Outcome<EditedBlock>>;
  /** Newest first. */
  spaceBlockHistory(
    workspaceId: string,
    spaceId: string,
    label: string,
    page: PageRequest,
  ): Promise<Outcome<Page<BlockChange>>>;
}
