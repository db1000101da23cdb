import { and, asc, count, eq, isNull, like } from "drizzle-orm";
import {
  type Block,
  type BlockShare,
  type BlockSpace,
  type Permission,
  SpacePermission,
} from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSharesOfBlock, maxSpacesOfBlock } from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import { type BlockRow, blockView } from "./block-view.ts";
import { blocks, shares } from "./schema.ts";

/** The two kinds of grantees, by the prefix of their ids, and how many of each a block may have. */
const limits = {
  ent: { max: maxSharesOfBlock, refusal: `maxSharesOfBlock (${maxSharesOfBlock}) is reached; unshare it first` },
  spc: { max: maxSpacesOfBlock, refusal: `maxSpacesOfBlock (${maxSpacesOfBlock}) is reached; take one back first` },
};

export const isSpaceId = (granteeId: string): boolean => granteeId.startsWith("spc_");

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

  /** Oldest first. */
  agents(blockId: number): BlockShare[] {
    return this.#of(blockId, "ent").map(({ granteeId, permission, createdAt }) => ({
      agentId: granteeId,
      permission,
      createdAt: isoTime(createdAt),
    }));
  }

  /** Oldest first. */
  spaces(blockId: number): BlockSpace[] {
    return this.#of(blockId, "spc").map(({ granteeId, permission, createdAt }) => ({
      spaceId: granteeId,
      permission: SpacePermission.parse(permission),
      createdAt: isoTime(createdAt),
    }));
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

  /** Answers when it was first shared. Throws `limit_reached` past the kind's limit. */
  put(blockId: number, granteeId: string, permission: Permission): string {
    const kind = isSpaceId(granteeId) ? "spc" : "ent";
    const { rows } = this.#db.select({ rows: count() }).from(shares).where(this.#ofKind(blockId, kind)).get() ?? {
      rows: 0,
    };
    if (rows >= limits[kind].max && this.#find(blockId, granteeId) === undefined) {
      throw new ColloquyError("limit_reached", limits[kind].refusal);
    }
    const { createdAt } = this.#db
      .insert(shares)
      .values({ blockId, granteeId, permission, createdAt: this.#clock.now() })
      .onConflictDoUpdate({ target: [shares.blockId, shares.granteeId], set: { permission } })
      .returning()
      .get();
    return isoTime(createdAt);
  }

  /** Whether there was such a share. */
  remove(blockId: number, granteeId: string): boolean {
    return this.#db.delete(shares).where(this.#is(blockId, granteeId)).returning().all().length > 0;
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

  /** The same for one grantee; undefined where the block is not shared with it. */
  viewFor(row: BlockRow, granteeId: string): Block | undefined {
    const permission = this.#find(row.id, granteeId);
    return permission && this.view(row, permission);
  }

  /** The block as a grantee with this permission sees it. */
  view(row: BlockRow, permission: Permission): Block {
    const { id: agentId, config } = this.#identity.get();
    return { ...blockView(row), permission, pinned: false, sharedFrom: { agentId, agentName: config.name } };
  }

  #of(blockId: number, kind: keyof typeof limits) {
    return this.#db
      .select()
      .from(shares)
      .where(this.#ofKind(blockId, kind))
      .orderBy(asc(shares.createdAt), asc(shares.granteeId))
      .all();
  }

  #find(blockId: number, granteeId: string): Permission | undefined {
    return this.#db.select().from(shares).where(this.#is(blockId, granteeId)).get()?.permission;
  }

  #is(blockId: number, granteeId: string) {
    return and(eq(shares.blockId, blockId), eq(shares.granteeId, granteeId));
  }

  #ofKind(blockId: number, kind: keyof typeof limits) {
    return and(eq(shares.blockId, blockId), like(shares.granteeId, `${kind}_%`));
  }
}
