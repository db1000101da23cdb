import { and, count, desc, eq, getTableColumns, inArray, lt, sql } from "drizzle-orm";
import type { IndexDelivery, Page, PageRequest } from "../protocol/rpc.ts";
import type { Space } from "../protocol/space.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxSpaces } from "./bounds.ts";
import { pageOf, positionOf } from "./cursor.ts";
import { memberships, spaces } from "./schema.ts";

/**
 * The index of spaces and of who is in which: a subscriber of every space's log.
 *
 * Invariants
 * 1. What is older than what is known of a space changes nothing; the same again changes nothing either.
 * 2. A deleted space never comes back, however late an older delivery arrives.
 */
type Row = typeof spaces.$inferSelect;

const spaceOf = (row: Row): Space => ({
  id: row.id,
  name: row.name,
  wakePolicy: row.wakePolicy,
  shareOrigin: row.shareOrigin,
  ...(row.createdBy === null ? {} : { createdBy: row.createdBy }),
  createdAt: row.createdAt,
});

export class SpaceIndex {
  readonly #db: Database;
  /** How many there are: counted once, then kept in step, so that a new one does not read them all. */
  #living: number | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Throws `limit_reached` where one more space is one too many. Those that are being made at once may exceed it. */
  requireRoom(id: string): void {
    if (this.#db.select({ id: spaces.id }).from(spaces).where(eq(spaces.id, id)).get()) return;
    this.#living ??= this.#db.select({ rows: count() }).from(spaces).where(eq(spaces.deleted, false)).get()?.rows ?? 0;
    if (this.#living < maxSpaces) return;
    throw new ColloquyError(
      "limit_reached",
      `A workspace has at most ${maxSpaces} spaces (maxSpaces): delete one first.`,
    );
  }

  /** Whether the delivery told anything new. Call inside a transaction. */
  follow({ space, createdBy, cursor, deleted }: IndexDelivery): boolean {
    const known = this.#db.select().from(spaces).where(eq(spaces.id, space.id)).get();
    if (known && (known.deleted || cursor < known.cursor)) return false;
    const facts = { name: space.name, wakePolicy: space.wakePolicy, shareOrigin: space.shareOrigin, cursor, deleted };
    const { position } = this.#db
      .insert(spaces)
      .values({ ...facts, id: space.id, createdBy: createdBy ?? null, createdAt: space.createdAt })
      .onConflictDoUpdate({ target: spaces.id, set: facts })
      .returning({ position: spaces.position })
      .get();
    if (this.#living !== undefined) this.#living += Number(!deleted) - Number(known !== undefined);
    this.#replaceMembers(position, deleted ? [] : space.members.map((member) => member.id));
    return true;
  }

  /** Newest first; with `entityId`, only the spaces that it is in. */
  page(request: PageRequest & { entityId?: string | undefined }): Page<Space> {
    const before = positionOf(request.cursor);
    const limit = request.limit + 1;
    if (request.entityId === undefined) {
      const rows = this.#db
        .select()
        .from(spaces)
        .where(and(eq(spaces.deleted, false), before === undefined ? undefined : lt(spaces.position, before)))
        .orderBy(desc(spaces.position))
        .limit(limit)
        .all();
      return pageOf(rows, request.limit, spaceOf);
    }
    const rows = this.#db
      .select(getTableColumns(spaces))
      .from(memberships)
      .innerJoin(spaces, eq(spaces.position, memberships.spacePosition))
      .where(
        and(
          eq(memberships.entityId, request.entityId),
          before === undefined ? undefined : lt(memberships.spacePosition, before),
        ),
      )
      .orderBy(desc(memberships.spacePosition))
      .limit(limit)
      .all();
    return pageOf(rows, request.limit, spaceOf);
  }

  /** The ids of all spaces that an entity is in. */
  spaceIdsOf(entityId: string): string[] {
    return this.#db
      .select({ id: spaces.id })
      .from(memberships)
      .innerJoin(spaces, eq(spaces.position, memberships.spacePosition))
      .where(eq(memberships.entityId, entityId))
      .all()
      .map((row) => row.id);
  }

  share(entityId: string, otherId: string): boolean {
    const own = this.#db
      .select({ position: memberships.spacePosition })
      .from(memberships)
      .where(eq(memberships.entityId, entityId));
    return (
      this.#db
        .select({ one: sql<number>`1` })
        .from(memberships)
        .where(and(eq(memberships.entityId, otherId), inArray(memberships.spacePosition, own)))
        .limit(1)
        .get() !== undefined
    );
  }

  #replaceMembers(position: number, entityIds: string[]): void {
    const wanted = new Set(entityIds);
    const present = this.#db.select().from(memberships).where(eq(memberships.spacePosition, position)).all();
    for (const { entityId } of present) {
      if (wanted.delete(entityId)) continue;
      this.#db
        .delete(memberships)
        .where(and(eq(memberships.entityId, entityId), eq(memberships.spacePosition, position)))
        .run();
    }
    for (const entityId of wanted) this.#db.insert(memberships).values({ entityId, spacePosition: position }).run();
  }
}
