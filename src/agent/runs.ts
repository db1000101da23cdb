import { and, desc, eq, gt, lt, ne, sql } from "drizzle-orm";
import type { RunStatus } from "../protocol/run.ts";
import type { Database } from "../shared/database.ts";
import { runs } from "./schema.ts";

/**
 * The agent's runs.
 *
 * Invariants
 * 1. One at most is `running`, and it is the newest: a consciousness does one thing at a time.
 * 2. Ordinals count 1, 2, 3 … without a gap, and each run names the newest kept one before it, so that what is
 *    remembered is found without reading what is not, however often the agent was silent (B4).
 */
export type RunRow = typeof runs.$inferSelect;
export type NewRun = Omit<typeof runs.$inferInsert, "ordinal" | "status" | "keptBefore" | "silentBefore">;
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
      .values({ ...run, ...past(this.at(ordinal - 1)), ordinal, status: "running" })
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

  /** Runs from `from` (1 or more) on whose cycles are part of consciousness, oldest first. Reads no others. */
  kept(from: number, before: number): RunRow[] {
    const { keptBefore } = past(this.at(before - 1));
    if (keptBefore < from) return [];
    const chain = sql`with recursive chain(ordinal) as (
      select ${keptBefore} union all
      select ${runs.keptBefore} from ${runs} join chain on ${runs.ordinal} = chain.ordinal where ${runs.keptBefore} >= ${from}
    ) select ordinal from chain`;
    return this.#db.select().from(runs).where(sql`${runs.ordinal} in (${chain})`).orderBy(runs.ordinal).all();
  }

  lastKept(before: number): RunRow | undefined {
    return this.at(past(this.at(before - 1)).keptBefore);
  }

  /** The silent ones of the newest `limit` runs after the last kept, newest first; and the events of all silent ones. */
  silent(before: number, limit: number): { rows: RunRow[]; events: number } {
    const { keptBefore, silentBefore } = past(this.at(before - 1));
    const rows = this.#db
      .select()
      .from(runs)
      .where(and(gt(runs.ordinal, keptBefore), lt(runs.ordinal, before)))
      .orderBy(desc(runs.ordinal))
      .limit(limit)
      .all();
    return { rows: rows.filter((row) => row.status === "skipped"), events: silentBefore };
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

/** What lies before the run that follows `previous`. */
const past = (previous: RunRow | undefined): Pick<RunRow, "keptBefore" | "silentBefore"> => {
  if (!previous) return { keptBefore: 0, silentBefore: 0 };
  if (previous.kept) return { keptBefore: previous.ordinal, silentBefore: 0 };
  const silent = previous.status === "skipped" ? previous.events.length : 0;
  return { keptBefore: previous.keptBefore, silentBefore: previous.silentBefore + silent };
};
