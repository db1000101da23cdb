import { and, asc, eq, isNull } from "drizzle-orm";
import type { Block, Permission } from "../../../protocol/block.ts";
import type { BlockGrant } from "../../../protocol/block-rpc.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSharesOfBlock, maxSpacesOfBlock } from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import { type BlockRow, blockView } from "./block-view.ts";
import { blocks, shares } from "./schema.ts";

export const isSpaceId = (granteeId: string): boolean => granteeId.startsWith("spc_");

const isShare = (blockId: number, granteeId: string) =>
  and(eq(shares.blockId, blockId), eq(shares.granteeId, granteeId));

/**
 * Which other agents, and the people of which spaces, may use this agent's blocks. A grantee is an agent or a space.
 *
 * Invariants
 * 1. These rows decide. What other agents were told may be old; who is in a space, the space knows.
 */
export class Shares {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #identity: Pick<Identity, "get">;

  constructor(db: Database, clock: Clock, identity: Pick<Identity, "get">) {
    this.#db = db;
    this.#clock = clock;
    this.#identity = identity;
  }

  /** With whom a block is shared, oldest first. */
  grants(blockId: number): BlockGrant[] {
    return this.#db
      .select()
      .from(shares)
      .where(eq(shares.blockId, blockId))
      .orderBy(asc(shares.createdAt), asc(shares.granteeId))
      .all()
      .map(({ granteeId, permission, createdAt }) => ({ granteeId, permission, createdAt: isoTime(createdAt) }));
  }

  /** The blocks that a grantee may use, as it sees them, by label. */
  sharedWith(granteeId: string): Block[] {
    return this.#db
      .select({ row: blocks, permission: shares.permission })
      .from(shares)
      .innerJoin(blocks, eq(blocks.id, shares.blockId))
      .where(and(eq(shares.granteeId, granteeId), isNull(blocks.deletedAt)))
      .orderBy(asc(blocks.label))
      .all()
      .map(({ row, permission }) => this.view(row, permission));
  }

  /** Throws `limit_reached` where the block has as many shares of that kind as it may. */
  put(blockId: number, granteeId: string, permission: Permission): BlockGrant {
    const isSpace = isSpaceId(granteeId);
    const known = this.grants(blockId).filter((grant) => isSpaceId(grant.granteeId) === isSpace);
    const isNew = known.every((grant) => grant.granteeId !== granteeId);
    if (isNew && known.length >= (isSpace ? maxSpacesOfBlock : maxSharesOfBlock)) {
      const bound = isSpace
        ? `maxSpacesOfBlock (${maxSpacesOfBlock}) is reached; take one back first`
        : `maxSharesOfBlock (${maxSharesOfBlock}) is reached; unshare it first`;
      throw new ColloquyError("limit_reached", bound);
    }
    const { createdAt } = this.#db
      .insert(shares)
      .values({ blockId, granteeId, permission, createdAt: this.#clock.now() })
      .onConflictDoUpdate({ target: [shares.blockId, shares.granteeId], set: { permission } })
      .returning()
      .get();
    return { granteeId, permission, createdAt: isoTime(createdAt) };
  }

  /** Whether there was such a share. */
  remove(blockId: number, granteeId: string): boolean {
    return this.#db.delete(shares).where(isShare(blockId, granteeId)).returning().all().length > 0;
  }

  /** The block is deleted. */
  removeAll(blockId: number): void {
    this.#db.delete(shares).where(eq(shares.blockId, blockId)).run();
  }

  /** The agent is no longer in the space. */
  left(spaceId: string): void {
    this.#db.delete(shares).where(eq(shares.granteeId, spaceId)).run();
  }

  /** The permission of an agent, or of a space's people. The owner has the block's own permission. */
  permissionOf(row: BlockRow, granteeId: string): Permission | undefined {
    return granteeId === this.#identity.get().id ? row.permission : this.#find(row.id, granteeId);
  }

  /** The block as a grantee sees it; undefined where it is not shared with that one. */
  viewFor(row: BlockRow, granteeId: string): Block | undefined {
    const permission = this.#find(row.id, granteeId);
    return permission && this.view(row, permission);
  }

  /** The block as a grantee with this permission sees it. */
  view(row: BlockRow, permission: Permission): Block {
    const { id: agentId, config } = this.#identity.get();
    return { ...blockView(row), permission, pinned: false, sharedFrom: { agentId, agentName: config.name } };
  }

  #find(blockId: number, granteeId: string): Permission | undefined {
    return this.#db.select().from(shares).where(isShare(blockId, granteeId)).get()?.permission;
  }
}
