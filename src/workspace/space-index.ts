import { and, desc, eq, getTableColumns, gt, inArray, lt } from "drizzle-orm";
import type { IndexDelivery, Page, PageRequest } from "../protocol/rpc.ts";
import type { Space } from "../protocol/space.ts";
import { type Clock, dayMs, isoTime } from "../shared/clock.ts";
import { countOf, type Database, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { pageOf } from "../shared/page.ts";
import { maxSpaces, maxSpacesOfPerson, maxSpacesOfPersonPerDay } from "./bounds.ts";
import type { RequireRoom } from "./limits.ts";
import { entities, memberships, spaces, spacesToBe } from "./schema.ts";

const spaceOf = (row: typeof spaces.$inferSelect): Space => {
  const { id, name, wakePolicy, shareOrigin, confidential, createdBy, createdAt } = row;
  return {
    id,
    name,
    wakePolicy,
    shareOrigin,
    ...(confidential && { confidential }),
    ...(createdBy === null ? {} : { createdBy }),
    createdAt,
  };
};

export type SpaceIndex = ReturnType<typeof createSpaceIndex>;

/**
 * The index of spaces and of who is in which: a subscriber of every space's log.
 *
 * Invariants
 * 1. What is older than what is known of a space changes nothing; the same again changes nothing either.
 * 2. A deleted space never comes back, however late an older delivery arrives.
 * 3. A space counts from its admission on. One that was not made by then is asked for before its place is given away.
 */
export const createSpaceIndex = (db: Database, clock: Clock, requireRoom: RequireRoom) => {
  /** How many there are: counted once, then kept in step, so that a new one does not read them all. */
  const living = new Remembered(db, () => countOf(db, spaces, eq(spaces.deleted, false)));
  const isToBe = (id: string) => eq(spacesToBe.id, id);
  const forgetToBe = (id: string): void => void db.delete(spacesToBe).where(isToBe(id)).run();
  const used = (): number => living.get() + countOf(db, spacesToBe);

  const isMember = (entityId: string) => eq(memberships.entityId, entityId);

  /** Answers those who are new. */
  const replaceMembers = (position: number, entityIds: string[]): string[] => {
    const wanted = new Set(entityIds);
    const isHere = eq(memberships.spacePosition, position);
    for (const { entityId } of db.select().from(memberships).where(isHere).all()) {
      if (wanted.delete(entityId)) continue;
      db.delete(memberships)
        .where(and(isMember(entityId), isHere))
        .run();
    }
    for (const entityId of wanted) db.insert(memberships).values({ entityId, spacePosition: position }).run();
    return [...wanted];
  };

  const refused = (detail: string): ColloquyError => new ColloquyError("limit_reached", detail);

  const requireRoomOf = (madeBy: string): void => {
    const underWay = countOf(db, spacesToBe, eq(spacesToBe.madeBy, madeBy));
    const isTheirs = eq(spaces.createdBy, madeBy);
    const today = and(isTheirs, gt(spaces.createdAt, isoTime(clock.now() - dayMs)));
    if (countOf(db, spaces, today) + underWay >= maxSpacesOfPersonPerDay) {
      const most = `You may make ${maxSpacesOfPersonPerDay} spaces in a day (maxSpacesOfPersonPerDay)`;
      throw refused(`${most}: go on tomorrow, or have a secret key of the workspace make them.`);
    }
    if (countOf(db, spaces, and(isTheirs, eq(spaces.deleted, false))) + underWay < maxSpacesOfPerson) return;
    throw refused(`You may have made ${maxSpacesOfPerson} spaces (maxSpacesOfPerson): delete one first.`);
  };

  return {
    used,

    /**
     * Throws `limit_reached` where one more space is one too many, of the workspace or of the person or service that makes
     * it. From here on it counts: until it is told of, or was not made by `until`. In a transaction.
     */
    admit(id: string, madeBy: string | undefined, until: number): void {
      if (countOf(db, spaces, eq(spaces.id, id)) > 0) return;
      if (countOf(db, spacesToBe, isToBe(id)) === 0) {
        requireRoom("maxSpaces", used(), maxSpaces, "spaces", "delete one first");
        if (madeBy !== undefined) requireRoomOf(madeBy);
      }
      const values = { id, madeBy: madeBy ?? null, until };
      db.insert(spacesToBe).values(values).onConflictDoUpdate({ target: spacesToBe.id, set: { until } }).run();
    },

    /** Until when the space may still be made; undefined for one that was told of, or is not to be. */
    toBeUntil: (id: string): number | undefined => db.select().from(spacesToBe).where(isToBe(id)).get()?.until,

    /** It was not made, and will not be. */
    forgetToBe,

    /** Answers the ids of those who are new there; undefined where the delivery told nothing new. Call inside a transaction. */
    follow({ space, createdBy, cursor, deleted }: IndexDelivery): string[] | undefined {
      const before = living.get();
      const known = db.select().from(spaces).where(eq(spaces.id, space.id)).get();
      if (known && (known.deleted || cursor < known.cursor)) return undefined;
      const { id, name, wakePolicy, shareOrigin, confidential = false, createdAt } = space;
      const facts = { name: deleted ? "" : name, wakePolicy, shareOrigin, confidential, cursor, deleted };
      const { position } = db
        .insert(spaces)
        .values({ ...facts, id, createdBy: createdBy ?? null, createdAt })
        .onConflictDoUpdate({ target: spaces.id, set: facts })
        .returning({ position: spaces.position })
        .get();
      forgetToBe(id);
      living.set(before + Number(!deleted) - Number(known !== undefined));
      return replaceMembers(position, deleted ? [] : space.members.map((member) => member.id));
    },

    /** Newest first; with `entityId`, only the spaces that it is in. */
    page(request: PageRequest & { entityId?: string | undefined }): Page<Space> {
      const { entityId } = request;
      const columns = getTableColumns(spaces);
      const read = ({ from = Number.MAX_SAFE_INTEGER, limit }: { from: number | undefined; limit: number }) => {
        if (entityId === undefined) {
          const isNext = and(eq(spaces.deleted, false), lt(spaces.position, from));
          return db.select(columns).from(spaces).where(isNext).orderBy(desc(spaces.position)).limit(limit).all();
        }
        return db
          .select(columns)
          .from(memberships)
          .innerJoin(spaces, eq(spaces.position, memberships.spacePosition))
          .where(and(isMember(entityId), lt(memberships.spacePosition, from)))
          .orderBy(desc(memberships.spacePosition))
          .limit(limit)
          .all();
      };
      return pageOf(request, read, spaceOf);
    },

    /** Whether there is a space of this id, or was. */
    isKnown: (id: string): boolean => countOf(db, spaces, eq(spaces.id, id)) > 0,

    livingIds(): string[] {
      const rows = db.select({ id: spaces.id }).from(spaces).where(eq(spaces.deleted, false)).all();
      return rows.map(({ id }) => id);
    },

    /** Deleted ones too: their agents may be forgetting still. */
    allIds: (): string[] =>
      db
        .select({ id: spaces.id })
        .from(spaces)
        .all()
        .map(({ id }) => id),

    /** Confidential spaces, deleted ones too: of each, whether these are all in it. */
    confidential(readers: string[]): { id: string; isRead: boolean }[] {
      const read = readers.map((entityId) => new Set(this.spaceIdsOf(entityId)));
      const rows = db.select({ id: spaces.id }).from(spaces).where(eq(spaces.confidential, true)).all();
      return rows.map(({ id }) => ({ id, isRead: read.every((own) => own.has(id)) }));
    },

    /** The ids of all spaces that an entity is in. */
    spaceIdsOf(entityId: string): string[] {
      const rows = db
        .select({ id: spaces.id })
        .from(memberships)
        .innerJoin(spaces, eq(spaces.position, memberships.spacePosition))
        .where(isMember(entityId))
        .all();
      return rows.map(({ id }) => id);
    },

    /** The agents in the spaces that an entity is in, or in all, once for each space. */
    agentsNear(entityId?: string): { agentId: string; spaceId: string; confidential: boolean }[] {
      const position = { position: memberships.spacePosition };
      const own = entityId === undefined ? undefined : db.select(position).from(memberships).where(isMember(entityId));
      return db
        .select({ agentId: memberships.entityId, spaceId: spaces.id, confidential: spaces.confidential })
        .from(memberships)
        .innerJoin(spaces, eq(spaces.position, memberships.spacePosition))
        .innerJoin(entities, and(eq(entities.id, memberships.entityId), eq(entities.type, "agent")))
        .where(own && inArray(memberships.spacePosition, own))
        .all();
    },

    share(entityId: string, otherId: string): boolean {
      const own = db.select({ position: memberships.spacePosition }).from(memberships).where(isMember(entityId));
      const isShared = and(isMember(otherId), inArray(memberships.spacePosition, own));
      return db.select().from(memberships).where(isShared).limit(1).get() !== undefined;
    },
  };
};
