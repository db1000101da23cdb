import type { Outcome } from "../shared/errors.ts";
import type { Block, BlockChange, BlockDetail, BlockSpace, EditedBlock, EditSpaceBlock } from "./block.ts";

/**
 * Who edits in a space, as the worker found out: a member of it, as is the agent. `author` is `human:ent_…`; the same
 * `callId` again changes nothing and is answered as before.
 */
export type SpaceEditor = { spaceId: string; author: string; name: string; callId?: string | undefined };

/** What an agent promises of the blocks that it shares with a space. Nothing else of it is told there. */
export interface SpaceBlockRpc {
  blockSpaces(workspaceId: string, label: string): Promise<Outcome<BlockSpace[]>>;
  /** That the agent is in the space is for the caller to have found out. */
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
    page: { limit: number; cursor?: string | undefined },
  ): Promise<Outcome<{ items: BlockChange[]; nextCursor: string | null }>>;
}
