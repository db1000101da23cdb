import type {
  Block,
  BlockChange,
  BlockDetail,
  BlockShare,
  CreateBlock,
  EditBlock,
  EditedBlock,
  UpdateBlock,
} from "../../protocol/block.ts";
import type { BlockRpc, SharedBlockNote, SharedEdit } from "../../protocol/block-rpc.ts";
import type { Page, PageRequest } from "../../protocol/rpc.ts";
import { openDatabase } from "../../shared/database.ts";
import { ColloquyError, type Outcome } from "../../shared/errors.ts";
import { requireAwaited } from "../../shared/require-awaited.ts";
import { overAfter } from "../../shared/within.ts";
import type { BlockCaller } from "../memory/blocks/block-author.ts";
import { blockView, detailOf, sharedView } from "../memory/blocks/block-view.ts";
import type { SharedBlockRow } from "../memory/blocks/shared-blocks.ts";
import { editShared, loadShared, readShared } from "../memory/blocks/shared-reading.ts";
import { shareBlock, unshareAll, unshareBlock } from "../memory/blocks/sharing.ts";
import { watchBlock } from "../memory/blocks/watch-block.ts";
import type { Parts } from "../run/parts.ts";
import { authorNamed } from "../transfer/known-names.ts";
import { cursorOf, page } from "./page.ts";
import { SpaceBlockAgent } from "./space-block-agent.ts";

/** How long others are asked for, in the service of one request. */
const askMs = 15_000;

const callerOf = ({ identity }: Parts, as: EditBlock["as"], author: string): BlockCaller => {
  const { id, config } = identity.get();
  return as === "agent" ? { kind: "agent", agentId: id, name: config.name } : { kind: "system", author };
};

/** The block of another agent that has this label here: its own comes first. */
const sharedAs = ({ blocks, sharedBlocks }: Parts, label: string): SharedBlockRow | undefined =>
  blocks.find(label) ? undefined : sharedBlocks.find(label);

/** Whether it is pinned is the reader's own; all else is its owner's. */
const pinShared = ({ sharedBlocks }: Parts, row: SharedBlockRow, { pinned, ...others }: UpdateBlock): void => {
  if (Object.values(others).some((each) => each !== undefined)) {
    throw new ColloquyError(
      "forbidden",
      `"${row.label}" is shared by ${row.ownerName}: change it there, or only pin it`,
    );
  }
  if (pinned !== undefined) sharedBlocks.pin(row, pinned);
};

const detail = async (parts: Parts, label: string, version?: number): Promise<BlockDetail> => {
  const shared = sharedAs(parts, label);
  if (shared) return loadShared(parts, shared, overAfter(askMs), version);
  const { row, value, rendered } = await parts.blocks.read(label, version);
  return detailOf(blockView(row), { value, rendered, version: version ?? row.version });
};

/** What this agent, as a block's owner, lets a reader do. Throws `not_found` where it does not share it. */
const granted = ({ blocks, blockShares, identity }: Parts, readerId: string, label: string) => {
  const row = blocks.find(label);
  const permission = row && blockShares.permissionOf(row.id, readerId);
  if (!row || permission === undefined) throw new ColloquyError("not_found", `no block "${label}" is shared with you`);
  const { id, config } = identity.get();
  return { row, permission, owner: { agentId: id, agentName: config.name } };
};

/** What of an agent answers for its blocks. */
export abstract class BlockAgent extends SpaceBlockAgent implements BlockRpc {
  /** A socket of who watches a block (`watch-block.ts`). */
  override async fetch(request: Request): Promise<Response> {
    const opened = await this.inMind(undefined, ({ parts }) => watchBlock(parts, request));
    return opened.ok ? opened.value : Response.json(opened.problem, { status: opened.problem.status });
  }

  override async webSocketMessage(socket: WebSocket): Promise<void> {
    await this.inMind(undefined, ({ parts }) => parts.watchers.received(socket));
  }

  blocks(workspaceId: string): Promise<Outcome<Block[]>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      const shared = await readShared(parts, parts.sharedBlocks.list(), overAfter(askMs));
      return [...parts.blocks.list().map(blockView), ...shared];
    });
  }

  createBlock(workspaceId: string, block: CreateBlock, author: string, callId?: string): Promise<Outcome<BlockDetail>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      await parts.blocks.create(block, author, callId);
      return detail(parts, block.label);
    });
  }

  block(workspaceId: string, label: string, version?: number): Promise<Outcome<BlockDetail>> {
    return this.inMind(workspaceId, ({ parts }) => detail(parts, label, version));
  }

  editBlock(
    workspaceId: string,
    label: string,
    edit: EditBlock,
    author: string,
    callId?: string,
  ): Promise<Outcome<EditedBlock>> {
    return this.inMind(workspaceId, ({ parts }) => {
      const { as, ...wanted } = edit;
      const shared = sharedAs(parts, label);
      if (!shared) return parts.blocks.edit(label, { ...wanted, caller: callerOf(parts, as, author), callId });
      const by = as === "agent" ? {} : { author };
      // Its owner may be asked again where its answer was lost.
      const asked = { ...wanted, ...by, callId: callId ?? parts.ids.mint("key") };
      return editShared(parts, shared, asked, overAfter(askMs));
    });
  }

  updateBlock(workspaceId: string, label: string, changes: UpdateBlock, author: string): Promise<Outcome<BlockDetail>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      const shared = sharedAs(parts, label);
      if (shared) pinShared(parts, shared, changes);
      else await parts.blocks.update(label, changes, author);
      return detail(parts, label);
    });
  }

  deleteBlock(workspaceId: string, label: string, as: EditBlock["as"], author: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      const { id } = parts.blocks.delete(label, callerOf(parts, as, author));
      parts.blockSpaces.removeAll(id);
      await unshareAll(parts, label, id, overAfter(askMs));
      return null;
    });
  }

  blockHistory(
    workspaceId: string,
    label: string,
    { limit, cursor }: PageRequest,
  ): Promise<Outcome<Page<BlockChange>>> {
    return this.inMind(workspaceId, ({ parts }) =>
      page(
        parts.blocks.history(label, cursorOf(cursor), limit + 1),
        limit,
        ({ version }) => version,
        (change) => ({ ...change, ...authorNamed(openDatabase(this.ctx.storage), change.author) }),
      ),
    );
  }

  blockShares(workspaceId: string, label: string): Promise<Outcome<BlockShare[]>> {
    return this.inMind(workspaceId, ({ parts }) => parts.blockShares.of(parts.blocks.get(label).id));
  }

  shareBlock(workspaceId: string, label: string, share: Omit<BlockShare, "createdAt">): Promise<Outcome<BlockShare>> {
    return this.inMind(workspaceId, ({ parts }) => shareBlock(parts, label, share, overAfter(askMs)));
  }

  unshareBlock(workspaceId: string, label: string, agentId: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      await unshareBlock(parts, label, agentId, overAfter(askMs));
      return null;
    });
  }

  noteSharedBlock(workspaceId: string, note: SharedBlockNote): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      parts.sharedBlocks.note(note);
      return null;
    });
  }

  dropSharedBlock(workspaceId: string, ownerId: string, label: string): Promise<Outcome<null>> {
    return this.inMind(workspaceId, ({ parts }) => {
      parts.sharedBlocks.drop(ownerId, label);
      return null;
    });
  }

  readSharedBlocks(workspaceId: string, readerId: string, labels: string[]): Promise<Outcome<(Block | null)[]>> {
    return this.inMind(workspaceId, ({ parts }) =>
      labels.map((label) => {
        try {
          const { row, permission, owner } = granted(parts, readerId, label);
          return sharedView(row, permission, owner);
        } catch (error) {
          if (error instanceof ColloquyError) return null;
          throw error;
        }
      }),
    );
  }

  readSharedBlock(
    workspaceId: string,
    readerId: string,
    label: string,
    version?: number,
  ): Promise<Outcome<BlockDetail>> {
    return this.inMind(workspaceId, async ({ parts }) => {
      const { row, permission, owner } = granted(parts, readerId, label);
      const read = await parts.blocks.read(label, version);
      return detailOf(sharedView(row, permission, owner), { ...read, version: version ?? read.row.version });
    });
  }

  editSharedBlock(
    workspaceId: string,
    label: string,
    { reader, author, consented, until, ...edit }: SharedEdit,
  ): Promise<Outcome<EditedBlock>> {
    return this.inMind(workspaceId, ({ parts }) => {
      requireAwaited(parts, { until });
      const { permission } = granted(parts, reader.agentId, label);
      const caller: BlockCaller =
        author === undefined ? { kind: "agent", ...reader, permission, consented } : { kind: "system", author };
      return parts.blocks.edit(label, { ...edit, caller });
    });
  }
}
