import { asc, eq } from "drizzle-orm";
import type { Goal, PutGoal } from "../../protocol/mind.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxGoals } from "../bounds.ts";
import { goals } from "../schema.ts";

/** An agent's aims, by ids of the caller's choice. Setting one is an upsert: what is left out stays as it was. */
export class Goals {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #all = prepared(() => this.#db.select().from(goals).orderBy(asc(goals.createdAt), asc(goals.id)));
  readonly #list: Remembered<Goal[]>;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#list = new Remembered(db, () => this.#all().all().map(asGoal));
  }

  list(): Goal[] {
    return this.#list.get();
  }

  /** All of them, or, where one is refused, none. */
  setAll(entries: ({ id: string } & PutGoal)[]): void {
    this.#db.transaction(() => {
      for (const { id, ...changes } of entries) this.set(id, changes);
    });
  }

  /** Throws `invalid_request` for a new goal without description, `limit_reached` past `maxGoals`. */
  set(id: string, changes: PutGoal): Goal {
    const known = this.list().find((goal) => goal.id === id);
    const description = changes.description ?? known?.description;
    if (description === undefined) {
      throw new ColloquyError("invalid_request", `goal "${id}" is new: give it a description`);
    }
    if (!known && this.list().length >= maxGoals) {
      throw new ColloquyError("limit_reached", `maxGoals (${maxGoals}) is reached; delete some first`);
    }
    const now = this.#clock.now();
    const next = {
      description,
      status: changes.status ?? known?.status ?? "active",
      priority: changes.priority ?? known?.priority ?? null,
      longTerm: changes.longTerm ?? known?.longTerm ?? false,
      updatedAt: now,
    };
    const row = this.#list
      .writing()
      .insert(goals)
      .values({ id, ...next, createdAt: now })
      .onConflictDoUpdate({ target: goals.id, set: next })
      .returning()
      .get();
    return asGoal(row);
  }

  delete(id: string): boolean {
    return this.#list.writing().delete(goals).where(eq(goals.id, id)).returning().all().length > 0;
  }
}

const asGoal = (row: typeof goals.$inferSelect): Goal => ({
  id: row.id,
  description: row.description,
  status: row.status,
  ...(row.priority === null ? {} : { priority: row.priority }),
  longTerm: row.longTerm,
  updatedAt: isoTime(row.updatedAt),
});
