import { and, asc, count, eq, gt, inArray, sql } from "drizzle-orm";
import type { CreateEntity, Entity, EntityType, UpdateEntity } from "../protocol/entity.ts";
import type { Page, PageRequest } from "../protocol/rpc.ts";
import { asSeen } from "../protocol/text.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { among, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxAgents, maxEntities } from "./bounds.ts";
import { pageOf, positionOf } from "./cursor.ts";
import { entities, memberships } from "./schema.ts";

/**
 * The entities of a workspace.
 *
 * Invariants
 * 1. No two agents have names that look the same, whatever their case, their blanks and what does not show.
 * 2. Creating under an id that is there answers what is there: a replay makes nothing twice.
 */
type Row = typeof entities.$inferSelect;
type NewEntity = { id: string; type: EntityType; name: string; role: Entity["role"]; externalId?: string | undefined };

type Kind = "agents" | "others";
const kinds: Record<Kind, { types: EntityType[]; bound: number; says: string }> = {
  agents: { types: ["agent"], bound: maxAgents, says: `A workspace has at most ${maxAgents} agents (maxAgents).` },
  others: {
    types: ["human", "service"],
    bound: maxEntities,
    says: `A workspace has at most ${maxEntities} people and services (maxEntities).`,
  },
};

const entityOf = (row: Row): Entity => ({
  id: row.id,
  type: row.type,
  name: row.name,
  role: row.role,
  ...(row.externalId === null ? {} : { externalId: row.externalId }),
  createdAt: isoTime(row.createdAt),
});

const nameTaken = (name: string): ColloquyError =>
  new ColloquyError(
    "name_taken",
    `Another agent of this workspace is called ${JSON.stringify(name)}: choose a name of its own.`,
  );

export class Directory {
  readonly #db: Database;
  readonly #clock: Clock;
  /** How many agents and others there are at most: counted once, so that creating one does not read them all. */
  readonly #counts = new Map<Kind, number>();

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  create(id: string, input: CreateEntity): Entity {
    return this.#insert({ ...input, id });
  }

  createAgent(id: string, name: string): Entity {
    return this.#insert({ id, type: "agent", name, role: "member" });
  }

  find(id: string): Entity | undefined {
    const row = this.#row(id);
    return row && entityOf(row);
  }

  get(id: string): Entity {
    const entity = this.find(id);
    if (!entity) throw new ColloquyError("not_found", "There is no such entity in this workspace.");
    return entity;
  }

  /** Those of `ids` that are here, and that `visibleTo` may know of; throws `unknown_reference` naming the others. */
  resolve(ids: string[], visibleTo?: string): Entity[] {
    const rows = this.#db
      .select()
      .from(entities)
      .where(and(among(entities.id, ids), visibleTo === undefined ? undefined : this.#visibleTo(visibleTo)))
      .all();
    const found = new Map(rows.map((row) => [row.id, entityOf(row)]));
    const unknown = ids.filter((id) => !found.has(id));
    if (unknown.length > 0) {
      throw new ColloquyError("unknown_reference", `Not in this workspace: ${unknown.slice(0, 10).join(", ")}.`);
    }
    return ids.flatMap((id) => found.get(id) ?? []);
  }

  /** Oldest first; with `visibleTo`, only that entity and those it shares a space with. */
  page(request: PageRequest & { type?: EntityType | undefined; visibleTo?: string | undefined }): Page<Entity> {
    const after = positionOf(request.cursor);
    const rows = this.#db
      .select()
      .from(entities)
      .where(
        and(
          after === undefined ? undefined : gt(entities.position, after),
          request.type === undefined ? undefined : eq(entities.type, request.type),
          request.visibleTo === undefined ? undefined : this.#visibleTo(request.visibleTo),
        ),
      )
      .orderBy(asc(entities.position))
      .limit(request.limit + 1)
      .all();
    return pageOf(rows, request.limit, entityOf);
  }

  agentIds(): string[] {
    const rows = this.#db.select({ id: entities.id }).from(entities).where(eq(entities.type, "agent")).all();
    return rows.map((row) => row.id);
  }

  update(id: string, changes: UpdateEntity): Entity {
    const before = this.get(id);
    const name = changes.name ?? before.name;
    const agentName = before.type === "agent" ? asSeen(name) : null;
    if (agentName !== null) this.#requireFree(agentName, name, id);
    this.#db
      .update(entities)
      .set({
        name,
        agentName,
        ...(changes.role === undefined ? {} : { role: changes.role }),
        ...(changes.externalId === undefined ? {} : { externalId: changes.externalId }),
      })
      .where(eq(entities.id, id))
      .run();
    return this.get(id);
  }

  remove(id: string): void {
    this.#db.delete(entities).where(eq(entities.id, id)).run();
    this.#counts.clear();
  }

  #insert(entity: NewEntity): Entity {
    const present = this.find(entity.id);
    if (present) return present;
    const agentName = entity.type === "agent" ? asSeen(entity.name) : null;
    if (agentName !== null) this.#requireFree(agentName, entity.name, entity.id);
    this.#makeRoom(entity.type);
    const row = this.#db
      .insert(entities)
      .values({ ...entity, externalId: entity.externalId ?? null, agentName, createdAt: this.#clock.now() })
      .returning()
      .get();
    return entityOf(row);
  }

  #makeRoom(type: EntityType): void {
    const kind = type === "agent" ? "agents" : "others";
    const { types, bound, says } = kinds[kind];
    const present = this.#counts.get(kind) ?? this.#count(types);
    if (present >= bound) throw new ColloquyError("limit_reached", says);
    this.#counts.set(kind, present + 1);
  }

  #count(types: EntityType[]): number {
    return this.#db.select({ count: count() }).from(entities).where(inArray(entities.type, types)).get()?.count ?? 0;
  }

  #requireFree(agentName: string, name: string, id: string): void {
    const owner = this.#db.select().from(entities).where(eq(entities.agentName, agentName)).get();
    if (owner && owner.id !== id) throw nameTaken(name);
  }

  #row(id: string): Row | undefined {
    return this.#db.select().from(entities).where(eq(entities.id, id)).get();
  }

  #visibleTo(entityId: string) {
    const shared = this.#db
      .select({ id: memberships.entityId })
      .from(memberships)
      .where(
        inArray(
          memberships.spacePosition,
          this.#db
            .select({ position: memberships.spacePosition })
            .from(memberships)
            .where(eq(memberships.entityId, entityId)),
        ),
      );
    return sql`(${entities.id} = ${entityId} or ${entities.id} in ${shared})`;
  }
}
