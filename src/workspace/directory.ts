import { createHash } from "node:crypto";
import { and, asc, eq, gt, inArray, ne, sql } from "drizzle-orm";
import type { CreateEntity, Entity, EntityType, UpdateEntity } from "../protocol/entity.ts";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { among, countOf, type Database, Remembered } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { asSeen, twinOf } from "../shared/look-alike.ts";
import { pageOf } from "../shared/page.ts";
import { maxAgents, maxEntities, maxRemovedSubjects } from "./bounds.ts";
import type { RequireRoom } from "./limits.ts";
import { entities, memberships, removedSubjects } from "./schema.ts";

type NewEntity = Omit<CreateEntity, "type"> & { type: EntityType };

const entityOf = ({ id, type, name, role, externalId, createdAt }: typeof entities.$inferSelect): Entity => ({
  ...{ id, type, name, role },
  ...(externalId === null ? {} : { externalId }),
  createdAt: isoTime(createdAt),
});

const looksTheSame =
  "is in a space with it and has a name that looks the same: choose one that differs in more than case, blanks and look-alike letters.";

const twins = "give each person one of their own, or leave it out";

const hashOf = (externalId: string): string => createHash("sha256").update(externalId).digest("hex");

export type Directory = ReturnType<typeof createDirectory>;

/**
 * The entities of a workspace.
 *
 * Invariants
 * 1. No two agents have names that look the same, whatever their case, their blanks and what does not show.
 * 2. No rename makes an entity look like somebody with whom it is in a space, as far as the index has heard (C6).
 * 3. Creating under an id that is there answers what is there: a replay makes nothing twice. A person or a service that was removed
 *    is made no more: its tokens of before would count again.
 */
export const createDirectory = (
  db: Database,
  clock: Clock,
  requireRoom: RequireRoom,
  /** Another hash, by a key of the deployment: the rows alone prove no guess of an `externalId`. */
  keyed: (hash: string) => string,
) => {
  /** How many there are: counted once, so that creating one does not read them all. */
  const agents = new Remembered(db, () => countOf(db, entities, eq(entities.type, "agent")));
  const others = new Remembered(db, () => countOf(db, entities, ne(entities.type, "agent")));
  const countsOf = (type: EntityType) => (type === "agent" ? agents : others);

  const find = (id: string): Entity | undefined => {
    const row = db.select().from(entities).where(eq(entities.id, id)).get();
    return row && entityOf(row);
  };

  const get = (id: string): Entity => {
    const entity = find(id);
    if (!entity) throw new ColloquyError("not_found", "There is no such entity in this workspace.");
    return entity;
  };

  const makeRoom = (type: EntityType): number => {
    const used = countsOf(type).get();
    if (type === "agent") requireRoom("maxAgents", used, maxAgents, "agents", "delete one first");
    else requireRoom("maxEntities", used, maxEntities, "people and services", "remove one first");
    return used;
  };

  /** An agent's name as it is compared, which no other has; null for everyone else. */
  const freeName = ({ id, type, name }: Pick<Entity, "id" | "type" | "name">): string | null => {
    if (type !== "agent") return null;
    const agentName = asSeen(name);
    const owner = db.select().from(entities).where(eq(entities.agentName, agentName)).get();
    if (!owner || owner.id === id) return agentName;
    const detail = `Another agent of this workspace is called ${JSON.stringify(name)}: choose a name of its own.`;
    throw new ColloquyError("name_taken", detail);
  };

  /** Those in the spaces of an entity, it too if it is in one. */
  const companionsOf = (entityId: string) => {
    const position = { position: memberships.spacePosition };
    const own = db.select(position).from(memberships).where(eq(memberships.entityId, entityId));
    return db.select({ id: memberships.entityId }).from(memberships).where(inArray(memberships.spacePosition, own));
  };

  /** The entity itself, and those it shares a space with. Undefined: all. */
  const isVisibleTo = (entityId: string | undefined) =>
    entityId === undefined
      ? undefined
      : sql`(${entities.id} = ${entityId} or ${entities.id} in ${companionsOf(entityId)})`;

  /** Throws `name_taken` where somebody in a space of the entity would look like it. */
  const requireTold = (id: string, name: string): void => {
    const isOther = and(ne(entities.id, id), inArray(entities.id, companionsOf(id)));
    const others = db.select({ id: entities.id, name: entities.name }).from(entities).where(isOther).all();
    const twin = twinOf(name, others);
    if (twin) throw new ColloquyError("name_taken", `${twin.id} ${looksTheSame}`);
  };

  /** Throws `conflict` where another person is called the same elsewhere: a JWT has to mean one. */
  const requireOwn = ({
    id,
    type,
    externalId,
  }: Pick<Entity, "id" | "type"> & { externalId?: string | undefined }): void => {
    if (type !== "human" || externalId === undefined) return;
    const isOther = and(eq(entities.externalId, externalId), eq(entities.type, "human"), ne(entities.id, id));
    const other = db.select().from(entities).where(isOther).get();
    if (other) throw new ColloquyError("conflict", `${other.id} has this externalId: ${twins}.`);
  };

  /** By what a person is called elsewhere, or by an entity's id here. */
  const wasRemoved = (name: string): boolean => {
    keyOldHashes();
    return countOf(db, removedSubjects, eq(removedSubjects.hash, keyed(hashOf(name)))) > 0;
  };

  let areOldKeyed = false;
  /** Replaces hashes that an older release stored without the key. */
  const keyOldHashes = (): void => {
    if (areOldKeyed) return;
    const isOld = sql`length(${removedSubjects.hash}) = 64`;
    for (const { hash } of db.select().from(removedSubjects).where(isOld).all()) {
      db.update(removedSubjects)
        .set({ hash: keyed(hash) })
        .where(eq(removedSubjects.hash, hash))
        .run();
    }
    areOldKeyed = true;
  };

  const noteRemoved = (name: string): void => {
    keyOldHashes();
    db.insert(removedSubjects)
      .values({ hash: keyed(hashOf(name)), removedAt: clock.now() })
      .onConflictDoNothing()
      .run();
    if (countOf(db, removedSubjects) <= maxRemovedSubjects) return;
    const { hash, removedAt } = removedSubjects;
    const oldest = db.select({ hash }).from(removedSubjects).orderBy(asc(removedAt)).limit(1);
    db.delete(removedSubjects).where(inArray(hash, oldest)).run();
  };

  const idsOf = (type: EntityType): string[] =>
    db
      .select({ id: entities.id })
      .from(entities)
      .where(eq(entities.type, type))
      .all()
      .map(({ id }) => id);

  return {
    find,
    get,
    agents: () => agents.get(),
    others: () => others.get(),

    create(id: string, input: NewEntity): Entity {
      const present = find(id);
      if (present) return present;
      if (wasRemoved(id)) {
        const detail = "It was removed, and what opened it would open it again: send a new Idempotency-Key.";
        throw new ColloquyError("gone", detail);
      }
      const agentName = freeName({ id, ...input });
      requireOwn({ id, ...input });
      const used = makeRoom(input.type);
      const row = { ...input, id, externalId: input.externalId ?? null, agentName, createdAt: clock.now() };
      const entity = entityOf(db.insert(entities).values(row).returning().get());
      countsOf(input.type).set(used + 1);
      return entity;
    },

    /** Those of `ids` that are here, and that `visibleTo` may know of; throws `unknown_reference` naming the others. */
    resolve(ids: string[], visibleTo?: string): Entity[] {
      const isMeant = and(among(entities.id, ids), isVisibleTo(visibleTo));
      const rows = db.select().from(entities).where(isMeant).all();
      const found = new Map(rows.map((row) => [row.id, entityOf(row)]));
      const unknown = ids.filter((id) => !found.has(id));
      if (unknown.length > 0) {
        throw new ColloquyError("unknown_reference", `Not in this workspace: ${unknown.slice(0, 10).join(", ")}.`);
      }
      return ids.flatMap((id) => found.get(id) ?? []);
    },

    /** Oldest first; with `visibleTo`, only that entity and those it shares a space with. */
    page(request: PageRequest & { type?: EntityType | undefined; visibleTo?: string | undefined }): Page<Entity> {
      const { type, visibleTo } = request;
      const isMeant = and(type && eq(entities.type, type), isVisibleTo(visibleTo));
      const read = ({ from = 0, limit }: { from: number | undefined; limit: number }) => {
        const isNext = and(gt(entities.position, from), isMeant);
        return db.select().from(entities).where(isNext).orderBy(asc(entities.position)).limit(limit).all();
      };
      return pageOf(request, read, entityOf);
    },

    /** How often the entity has signed out everywhere. */
    generationOf: (id: string): number | undefined =>
      db.select().from(entities).where(eq(entities.id, id)).get()?.generation,

    raiseGeneration(id: string): void {
      db.update(entities)
        .set({ generation: sql`${entities.generation} + 1`, signedOutAt: clock.now() })
        .where(eq(entities.id, id))
        .run();
    },

    agentIds: (): string[] => idsOf("agent"),
    peopleIds: (): string[] => idsOf("human"),

    update(id: string, changes: UpdateEntity): Entity {
      const before = get(id);
      if (changes.name !== undefined && changes.name !== before.name) requireTold(id, changes.name);
      const { name = before.name, role = before.role, externalId = before.externalId ?? null } = changes;
      requireOwn({ id, type: before.type, externalId: changes.externalId });
      const values = { name, role, externalId, agentName: freeName({ ...before, name }) };
      db.update(entities).set(values).where(eq(entities.id, id)).run();
      return get(id);
    },

    /** The person who is called so elsewhere, and when they signed out everywhere last. */
    personCalled(externalId: string): { id: string; generation: number; signedOutAt: number | null } | undefined {
      const isMeant = and(eq(entities.externalId, externalId), eq(entities.type, "human"));
      const [person, other] = db.select().from(entities).where(isMeant).limit(2).all();
      if (other) throw new ColloquyError("conflict", `Several people have this externalId: ${twins}.`);
      return person;
    },

    wasRemoved,

    /** All rows are gone. */
    forget(): void {
      for (const counts of [agents, others]) counts.forget();
    },

    remove(id: string): void {
      const { externalId, type } = get(id);
      if (externalId !== undefined && type === "human") noteRemoved(externalId);
      // Nobody signs in as an agent: one may be made again.
      if (type !== "agent") noteRemoved(id);
      db.delete(entities).where(eq(entities.id, id)).run();
      this.forget();
    },
  };
};
