import { and, asc, count, eq } from "drizzle-orm";
import type { BlockShare, Permission } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSharesOfBlock } from "../../bounds.ts";
import { blockShares } from "./schema.ts";

/** Which other agents may use this agent's blocks. This is the last word on it: what they were told may be old. */
export class BlockShares {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  of(blockId: number): BlockShare[] {
    const rows = this.#db
      .select()
      .from(blockShares)
      .where(eq(blockShares.blockId, blockId))
      .orderBy(asc(blockShares.createdAt));
    return rows
      .all()
      .map(({ agentId, permission, createdAt }) => ({ agentId, permission, createdAt: isoTime(createdAt) }));
  }

  /** Throws `limit_reached` past `maxSharesOfBlock`. */
  put(blockId: number, agentId: string, permission: Permission): BlockShare {
    const known = this.permissionOf(blockId, agentId);
    const rows =
      this.#db.select({ rows: count() }).from(blockShares).where(eq(blockShares.blockId, blockId)).get()?.rows ?? 0;
    if (known === undefined && rows >= maxSharesOfBlock) {
      throw new ColloquyError("limit_reached", `maxSharesOfBlock (${maxSharesOfBlock}) is reached; unshare it first`);
    }
    const row = this.#db
      .insert(blockShares)
      .values({ blockId, agentId, permission, createdAt: this.#clock.now() })
      .onConflictDoUpdate({ target: [blockShares.blockId, blockShares.agentId], set: { permission } })
      .returning()
      .get();
    return { agentId, permission, createdAt: isoTime(row.createdAt) };
  }

  /** Whether there was such a share. */
  remove(blockId: number, agentId: string): boolean {
    const where = and(eq(blockShares.blockId, blockId), eq(blockShares.agentId, agentId));
    return this.#db.delete(blockShares).where(where).returning().all().length > 0;
  }

  permissionOf(blockId: number, agentId: string): Permission | undefined {
    const where = and(eq(blockShares.blockId, blockId), eq(blockShares.agentId, agentId));
    return this.#db.select().from(blockShares).where(where).get()?.permission;
  }
}
