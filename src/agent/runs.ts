import { and, desc, eq, gte, lt, ne, sql } from "drizzle-orm";
import type { RunStatus } from "../protocol/run.ts";
import type { Database } from "../shared/database.ts";
import { runs } from "./schema.ts";

/** The agent's runs. One at most is `running`: a consciousness does one thing at a time. */
export type RunRow = typeof runs.$inferSelect;
export type NewRun = Omit<typeof runs.$inferInsert, "ordinal" | "status">;
export type RunChanges = Partial<Omit<RunRow, "ordinal" | "id">>;

export class Runs {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  running(): RunRow | undefined {
    // The running run is always the newest one: reading it needs no index.
    const newest = this.newest();
    return newest?.status === "running" ? newest : undefined;
  }

  newest(): RunRow | undefined {
    return this.#db.select().from(runs).orderBy(desc(runs.ordinal)).limit(1).get();
  }

  nextOrdinal(): number {
    return (this.newest()?.ordinal ?? 0) + 1;
  }

  begin(run: NewRun, ordinal: number): RunRow {
    return this.#db
      .insert(runs)
      .values({ ...run, ordinal, status: "running" })
      .returning()
      .get();
  }

  update(ordinal: number, changes: RunChanges): void {
    this.#db.update(runs).set(changes).where(eq(runs.ordinal, ordinal)).run();
  }

  get(id: string): RunRow | undefined {
    return this.#db.select().from(runs).where(eq(runs.id, id)).get();
  }

  at(ordinal: number): RunRow | undefined {
    return this.#db.select().from(runs).where(eq(runs.ordinal, ordinal)).get();
  }

  /** Runs whose cycles are part of consciousness, oldest first. */
  kept(from: number, before: number): RunRow[] {
    return this.#db
      .select()
      .from(runs)
      .where(and(eq(runs.kept, true), gte(runs.ordinal, from), lt(runs.ordinal, before)))
      .orderBy(runs.ordinal)
      .all();
  }

  lastKept(before: number): RunRow | undefined {
    return this.#db
      .select()
      .from(runs)
      .where(and(eq(runs.kept, true), lt(runs.ordinal, before)))
      .orderBy(desc(runs.ordinal))
      .limit(1)
      .get();
  }

  /** Silent runs after `ordinal`, newest first, and how many events all of them took. */
  skippedAfter(ordinal: number, limit: number): { rows: RunRow[]; events: number } {
    const where = and(eq(runs.status, "skipped"), sql`${runs.ordinal} > ${ordinal}`);
    const rows = this.#db.select().from(runs).where(where).orderBy(desc(runs.ordinal)).limit(limit).all();
    const all = this.#db
      .select({ events: sql<number>`coalesce(sum(json_array_length(${runs.events})), 0)` })
      .from(runs)
      .where(where)
      .get();
    return { rows, events: all?.events ?? 0 };
  }

  /** Newest first. */
  page(before: number | undefined, limit: number, status: RunStatus | undefined): RunRow[] {
    return this.#db
      .select()
      .from(runs)
      .where(
        and(
          before === undefined ? undefined : lt(runs.ordinal, before),
          status === undefined ? ne(runs.ordinal, 0) : eq(runs.status, status),
        ),
      )
      .orderBy(desc(runs.ordinal))
      .limit(limit)
      .all();
  }
}
