import { and, asc, eq } from "drizzle-orm";
import type { Env } from "../../../env/env.ts";
import type { BlockGrant } from "../../../protocol/agent-rpc.ts";
import type { Block, Permission } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import type { Ids } from "../../../shared/ids.ts";
import { maxSharesOfBlock, maxSpacesOfBlock } from "../../bounds.ts";
import { callWithRetry } from "../../call-with-retry.ts";
import type { Identity } from "../../identity.ts";
import type { BlockSubscriptions } from "./block-subscriptions.ts";
import { type BlockRow, blockView, isSpaceId } from "./block-view.ts";
import type { Blocks } from "./blocks.ts";
import { blocks, shares } from "./schema.ts";

const isShare = (blockId: number, granteeId: string) =>
  and(eq(shares.blockId, blockId), eq(shares.granteeId, granteeId));

type Around = {
  db: Database;
  clock: Clock;
  env: Pick<Env, "AGENT">;
  ids: Ids;
  identity: Pick<Identity, "get">;
  blocks(): Pick<Blocks, "get" | "read">;
  subscriptions(): Pick<BlockSubscriptions, "changed" | "closeFrom">;
};

/**
 * Which other agents, and the people of which spaces, may use this agent's blocks. A grantee is an agent or a space.
 *
 * Invariants
 * 1. These rows decide. A row is written before the other agent is told, and deleted before it is told so. Who is in a
 *    space, the space knows.
 * 2. To share and to take back can be repeated when it was cut in the middle: nothing changes twice.
 */
export class Shares {
  readonly #around: Around;

  constructor(around: Around) {
    this.#around = around;
  }

  /** With whom a block is shared, oldest first. */
  grants(blockId: number): BlockGrant[] {
    return this.#around.db
      .select()
      .from(shares)
      .where(eq(shares.blockId, blockId))
      .orderBy(asc(shares.createdAt), asc(shares.granteeId))
      .all()
      .map(({ granteeId, permission, createdAt }) => ({ granteeId, permission, createdAt: isoTime(createdAt) }));
  }

  /** The blocks that a grantee may use, as it sees them, by label. */
  sharedWith(granteeId: string): Block[] {
    return this.#around.db
      .select({ row: blocks, permission: shares.permission })
      .from(shares)
      .innerJoin(blocks, eq(blocks.id, shares.blockId))
      .where(eq(shares.granteeId, granteeId))
      .orderBy(asc(blocks.label))
      .all()
      .map(({ row, permission }) => this.view(row, permission));
  }

  /** Lets another agent, or the people of a space, use a block. Throws `limit_reached` past the kind's limit. */
  async share(
    label: string,
    { granteeId, permission }: Omit<BlockGrant, "createdAt">,
    signal: AbortSignal,
  ): Promise<BlockGrant> {
    const { blocks, subscriptions, ids, identity, env } = this.#around;
    const { id: ownerId, workspaceId, config } = identity.get();
    if (isSpaceId(granteeId)) {
      const { row, value } = await blocks().read(label);
      const grant = this.#put(row.id, granteeId, permission);
      // Those who watch it there learn of another permission at once.
      subscriptions().changed({ what: "updated", row, by: "system", value });
      return grant;
    }
    if (granteeId === ownerId) throw new ColloquyError("invalid_request", "a block is not shared with its owner");
    if (!ids.isIssued("ent", granteeId)) throw new ColloquyError("not_found", "there is no such agent");
    const row = blocks().get(label);
    const grant = this.#put(row.id, granteeId, permission);
    const note = { ownerId, ownerName: config.name, label, type: row.type, permission };
    const tell = () => env.AGENT.getByName(granteeId).noteSharedBlock(workspaceId, note);
    const told = await callWithRetry(tell, signal);
    if (!told.ok) this.#remove(row.id, granteeId);
    unwrap(told);
    return grant;
  }

  /** Takes a block back from an agent or a space, at once. Throws `not_found` where it is not shared with that one. */
  async unshare(label: string, granteeId: string, signal: AbortSignal): Promise<void> {
    const { blocks, subscriptions } = this.#around;
    const isSpace = isSpaceId(granteeId);
    if (!this.#remove(blocks().get(label).id, granteeId)) {
      throw new ColloquyError("not_found", `"${label}" is not shared with that ${isSpace ? "space" : "agent"}`);
    }
    if (isSpace) subscriptions().closeFrom(granteeId, label);
    else await this.#tellGone(label, granteeId, signal);
  }

  /** A deleted block is shared with nobody. */
  async unshareDeleted({ id, label }: BlockRow, signal: AbortSignal): Promise<void> {
    const grants = this.grants(id);
    this.#around.db.delete(shares).where(eq(shares.blockId, id)).run();
    for (const { granteeId } of grants) if (!isSpaceId(granteeId)) await this.#tellGone(label, granteeId, signal);
  }

  /** An agent that cannot be told finds out when it reads the block next. */
  async #tellGone(label: string, agentId: string, signal: AbortSignal): Promise<void> {
    const { identity, env } = this.#around;
    const { id: ownerId, workspaceId } = identity.get();
    try {
      await callWithRetry(() => env.AGENT.getByName(agentId).dropSharedBlock(workspaceId, ownerId, label), signal);
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
    }
  }

  #put(blockId: number, granteeId: string, permission: Permission): BlockGrant {
    const isSpace = isSpaceId(granteeId);
    const known = this.grants(blockId).filter((grant) => isSpaceId(grant.granteeId) === isSpace);
    const isNew = known.every((grant) => grant.granteeId !== granteeId);
    if (isNew && known.length >= (isSpace ? maxSpacesOfBlock : maxSharesOfBlock)) {
      const bound = isSpace
        ? `maxSpacesOfBlock (${maxSpacesOfBlock}) is reached; take one back first`
        : `maxSharesOfBlock (${maxSharesOfBlock}) is reached; unshare it first`;
      throw new ColloquyError("limit_reached", bound);
    }
    const { createdAt } = this.#around.db
      .insert(shares)
      .values({ blockId, granteeId, permission, createdAt: this.#around.clock.now() })
      .onConflictDoUpdate({ target: [shares.blockId, shares.granteeId], set: { permission } })
      .returning()
      .get();
    return { granteeId, permission, createdAt: isoTime(createdAt) };
  }

  /** Whether there was such a share. */
  #remove(blockId: number, granteeId: string): boolean {
    return this.#around.db.delete(shares).where(isShare(blockId, granteeId)).returning().all().length > 0;
  }

  /** The agent is no longer in the space. */
  left(spaceId: string): void {
    this.#around.db.delete(shares).where(eq(shares.granteeId, spaceId)).run();
  }

  /** The permission of an agent, or of a space's people. The owner has the block's own permission. */
  permissionOf(row: BlockRow, granteeId: string): Permission | undefined {
    return granteeId === this.#around.identity.get().id ? row.permission : this.#find(row.id, granteeId);
  }

  /** The block as a grantee sees it; undefined where it is not shared with that one. */
  viewFor(row: BlockRow, granteeId: string): Block | undefined {
    const permission = this.#find(row.id, granteeId);
    return permission && this.view(row, permission);
  }

  /** The block as a grantee with this permission sees it. */
  view(row: BlockRow, permission: Permission): Block {
    const { id: agentId, config } = this.#around.identity.get();
    return { ...blockView(row), permission, pinned: false, sharedFrom: { agentId, agentName: config.name } };
  }

  #find(blockId: number, granteeId: string): Permission | undefined {
    return this.#around.db.select().from(shares).where(isShare(blockId, granteeId)).get()?.permission;
  }
}
