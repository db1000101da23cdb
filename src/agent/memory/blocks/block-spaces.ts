import { and, asc, count, eq, isNull } from "drizzle-orm";
import type { BlockSpace, SpacePermission } from "../../../protocol/block.ts";
import { type Clock, isoTime } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { maxSpacesOfBlock } from "../../bounds.ts";
import type { BlockRow } from "./blocks.ts";
import { blockSpaces, blocks } from "./schema.ts";

/** The spaces whose people may use this agent's blocks. Who those people are, the spaces know. */
export class BlockSpaces {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  of(blockId: number): BlockSpace[] {
    const rows = this.#db
      .select()
      .from(blockSpaces)
      .where(eq(blockSpaces.blockId, blockId))
      .orderBy(asc(blockSpaces.createdAt), asc(blockSpaces.spaceId));
    return rows
      .all()
      .map(({ spaceId, permission, createdAt }) => ({ spaceId, permission, createdAt: isoTime(createdAt) }));
  }

  /** What a space's people may use, by label. */
  in(spaceId: string): { row: BlockRow; permission: SpacePermission }[] {
    return this.#db
      .select({ row: blocks, permission: blockSpaces.permission })
      .from(blockSpaces)
      .innerJoin(blocks, eq(blocks.id, blockSpaces.blockId))
      .where(and(eq(blockSpaces.spaceId, spaceId), isNull(blocks.deletedAt)))
      .orderBy(asc(blocks.label))
      .all();
  }

  /** Throws `limit_reached` past `maxSpacesOfBlock`. */
  put(blockId: number, spaceId: string, permission: SpacePermission): BlockSpace {
    const rows =
      this.#db.select({ rows: count() }).from(blockSpaces).where(eq(blockSpaces.blockId, blockId)).get()?.rows ?? 0;
    if (this.permissionIn(blockId, spaceId) === undefined && rows >= maxSpacesOfBlock) {
      throw new ColloquyError(
        "limit_reached",
        `maxSpacesOfBlock (${maxSpacesOfBlock}) is reached; take one back first`,
      );
    }
    const row = this.#db
      .insert(blockSpaces)
      .values({ blockId, spaceId, permission, createdAt: this.#clock.now() })
      .onConflictDoUpdate({ target: [blockSpaces.blockId, blockSpaces.spaceId], set: { permission } })
      .returning()
      .get();
    return { spaceId, permission, createdAt: isoTime(row.createdAt) };
  }

  /** Whether it was shared there. */
  remove(blockId: number, spaceId: string): boolean {
    return this.#db.delete(blockSpaces).where(this.#is(blockId, spaceId)).returning().all().length > 0;
  }

  /** The block is deleted. */
  removeAll(blockId: number): void {
    this.#db.delete(blockSpaces).where(eq(blockSpaces.blockId, blockId)).run();
  }

  /** The agent is not in the space any more. */
  left(spaceId: string): void {
    this.#db.delete(blockSpaces).where(eq(blockSpaces.spaceId, spaceId)).run();
  }

  permissionIn(blockId: number, spaceId: string): SpacePermission | undefined {
    return this.#db.select().from(blockSpaces).where(this.#is(blockId, spaceId)).get()?.permission;
  }

  #is(blockId: number, spaceId: string) {
    return and(eq(blockSpaces.blockId, blockId), eq(blockSpaces.spaceId, spaceId));
  }
}
