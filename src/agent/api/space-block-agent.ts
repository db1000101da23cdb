import type { Block, BlockChange, BlockDetail, BlockSpace, EditedBlock, EditSpaceBlock } from "../../protocol/block.ts";
import type { Page, PageRequest } from "../../protocol/rpc.ts";
import type { SpaceBlockRpc, SpaceEditor } from "../../protocol/space-block-rpc.ts";
import { openDatabase } from "../../shared/database.ts";
import type { Outcome } from "../../shared/errors.ts";
import { detailOf, sharedView } from "../memory/blocks/block-view.ts";
import { closeBlock, grantedIn, openBlock, viewInSpace } from "../memory/blocks/space-sharing.ts";
import { authorNamed } from "../transfer/known-names.ts";
import { cursorOf, page } from "./page.ts";
import { SearchingAgent } from "./searching-agent.ts";

/** What of an agent answers for the blocks that the people of its spaces may use. */
export abstract class SpaceBlockAgent extends SearchingAgent implements SpaceBlockRpc {
  blockSpaces(workspaceId: string, label: string): Promise<Outcome<BlockSpace[]>> {
    return this.inMind(workspaceId, ({ parts }) => parts.blockSpaces.of(parts.blocks.get(label).id));
  }

  openBlock(workspaceId: string, label: string, space: Omit<BlockSpace, "createdAt">): Promise<Outcome<BlockSpace>> {
    return this.inMind(workspaceId, ({ parts }) => openBlock(parts, label, space));
  }

  closeBlock(workspaceId: string, label: string, spaceId: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      closeBlock(parts, label, spaceId);
      return null;
    });
  }

  spaceBlocks(workspaceId: string, spaceId: string): Promise<Outcome<Block[]>> {
    return this.inMind(workspaceId, ({ parts }) => {
      const { id: agentId, config } = parts.identity.get();
      const owner = { agentId, agentName: config.name };
      return parts.blockSpaces.in(spaceId).map(({ row, permission }) => sharedView(row, permission, owner));
    });
  }

  spaceBlock(workspaceId: string, spaceId: string, label: string, version?: number): Promise<Outcome<BlockDetail>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      grantedIn(parts, spaceId, label);
      const read = await parts.blocks.read(label, version);
      // Reading may take a while, in which the block may have been taken back.
      return detailOf(viewInSpace(parts, spaceId, label), { ...read, version: version ?? read.row.version });
    });
  }

  editSpaceBlock(
    workspaceId: string,
    label: string,
    edit: EditSpaceBlock,
    { spaceId, author, name, callId }: SpaceEditor,
  ): Promise<Outcome<EditedBlock>> {
    return this.inMind(workspaceId, ({ parts }) => {
      const { permission } = grantedIn(parts, spaceId, label);
      return parts.blocks.edit(label, { ...edit, callId, caller: { kind: "person", author, name, permission } });
    });
  }

  spaceBlockHistory(
    workspaceId: string,
    spaceId: string,
    label: string,
    { limit, cursor }: PageRequest,
  ): Promise<Outcome<Page<BlockChange>>> {
    return this.inMind(workspaceId, ({ parts }) => {
      grantedIn(parts, spaceId, label);
      return page(
        parts.blocks.history(label, cursorOf(cursor), limit + 1),
        limit,
        ({ version }) => version,
        (change) => ({ ...change, ...authorNamed(openDatabase(this.ctx.storage), change.author) }),
      );
    });
  }
}
