import { and, desc, eq, gt, lt, ne, sql } from "drizzle-orm";
import type { RunStatus } from "../protocol/run.ts";
import { type Database, prepared } from "../shared/database.ts";
import { activeRuns, runs } from "./schema.ts";

/**
 * The agent's runs.
 *
 * Invariants
 * 1. Of a consciousness one at most is `running`, and it is the newest: it does one thing at a time. A timeline
 *    agent's running runs have a row in `active_runs`, which is gone when they end.
 * 2. Ordinals count 1, 2, 3 … without a gap, and each run names the newest kept one before it, so that what is
 *    remembered is found without reading what is not, however often the agent was silent (B4).
 */
export type RunRow = typeof runs.$inferSelect;
export type NewRun = Omit<typeof runs.$inferInsert, "ordinal" | "status" | "keptBefore" | "silentBefore">;
export type RunChanges = Partial<Omit<RunRow, "ordinal" | "id">>;

export class Runs {
  readonly #db: Database;
  readonly #newest = prepared(() => this.#db.select().from(runs).orderBy(desc(runs.ordinal)).limit(1).prepare());
  readonly #at = prepared(() =>
    this.#db
      .select()
      .from(runs)
      .where(eq(runs.ordinal, sql.placeholder("ordinal")))
      .prepare(),
  );
  readonly #active = prepared(() =>
    this.#db
      .select({ run: runs })
      .from(activeRuns)
      .innerJoin(runs, eq(runs.ordinal, activeRuns.ordinal))
      .orderBy(activeRuns.ordinal)
      .prepare(),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  /** Those under way, oldest first. */
  running(): RunRow[] {
    return this.active().filter((run) => run.status === "running");
  }

  /** Those under way or waiting, oldest first. */
  active(): RunRow[] {
    const concurrent = this.#active()
      .all()
      .map(({ run }) => run);
    // A consciousness' running run is always its newest one: reading it needs no index. Runs of a timeline may still
    // wait for answers beside it.
    const newest = this.newest();
    const cycle = newest?.status === "running" && newest.continuity === "consciousness" ? [newest] : [];
    return [...concurrent, ...cycle];
  }

  newest(): RunRow | undefined {
    return this.#newest().get();
  }

  nextOrdinal(): number {
    return (this.newest()?.ordinal ?? 0) + 1;
  }

  begin(run: NewRun, ordinal: number): RunRow {
    if (run.continuity === "timeline") this.#db.insert(activeRuns).values({ ordinal }).run();
    return this.#db
      .insert(runs)
      .values({ ...run, ...past(this.at(ordinal - 1)), ordinal, status: "running" })
      .returning()
      .get();
  }

  /** The run has ended. */
  end(run: RunRow, changes: RunChanges): void {
    if (run.continuity === "timeline") this.#db.delete(activeRuns).where(eq(activeRuns.ordinal, run.ordinal)).run();
    this.update(run.ordinal, changes);
  }

  update(ordinal: number, changes: RunChanges): void {
    this.#db.update(runs).set(changes).where(eq(runs.ordinal, ordinal)).run();
  }

  get(id: string): RunRow | undefined {
    return this.#db.select().from(runs).where(eq(runs.id, id)).get();
  }

  at(ordinal: number): RunRow | undefined {
    return this.#at().get({ ordinal });
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
