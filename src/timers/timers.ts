import { asc, eq, lte, sql } from "drizzle-orm";
import type { DrizzleSqliteDODatabase } from "drizzle-orm/durable-sqlite";
import { backoff, type Pauses } from "../shared/backoff.ts";
import type { Clock } from "../shared/clock.ts";
import { prepared } from "../shared/database.ts";
import { log } from "../shared/log.ts";
import { timers } from "./schema.ts";

/**
 * The alarm multiplexer: one platform alarm, many named due rows.
 *
 * Invariants
 * 1. Whenever a row exists, the platform's alarm is set no later than the earliest due time (or the lease below).
 * 2. `fire` first moves the alarm ahead by `leaseMs`, so that a crash in a handler is followed by another try.
 * 3. A row is removed only after its handler returned, and only if it was not set anew meanwhile, to whatever time.
 * 4. A handler that throws delays its own row (backoff) and no other, but not what was set meanwhile; `fire` itself
 *    never throws.
 * 5. The rows are read once and kept in memory: this object is the table's only writer. They and the platform's alarm are
 *    a part of the transaction in which they were set: where that is rolled back, both must be forgotten.
 * 6. A guard is a timer without a row, which would be written twice for each message: what it guards is stored
 *    elsewhere. Where memory does not tell whether a guard is set, it may be: the next alarm runs its handler, and no
 *    alarm is moved beyond the lease.
 */
export const leaseMs = 5000;
/** The longest pause after a failure of a row that its own handler sets again. */
export const longestPauseOfSetMs = 25_000;
const pauses: Pauses = { firstMs: 1000, longestMs: 10 * 60_000 };
const maxRowsPerFire = 100;

type Whose = { agentId?: string | undefined; spaceId?: string | undefined };
type Alarm = Pick<DurableObjectStorage, "setAlarm" | "deleteAlarm">;

export class Timers {
  readonly #db: DrizzleSqliteDODatabase;
  readonly #alarm: Alarm;
  readonly #clock: Clock;
  /** The object's own id, for the log: one that was never created has none. */
  readonly #whose: () => Whose;
  /** The time of the platform's alarm, as far as it is known: a cache, so that an unchanged alarm costs no write. */
  #armedAt: number | null | undefined;
  /** The due times by name, once they were read. */
  #known: Map<string, number> | undefined;
  readonly #guards: ReadonlySet<string>;
  /** The guards that may be set, and until when the alarm must have told. */
  #doubted: { names: Set<string>; dueAt: number } | undefined;
  /** Timers that were set since they fell due, also by the handler of another. */
  readonly #setAnew = new Set<string>();
  readonly #set = prepared(() =>
    this.#db
      .insert(timers)
      .values({ name: sql.placeholder("name"), dueAt: sql.placeholder("dueAt") })
      .onConflictDoUpdate({ target: timers.name, set: { dueAt: sql`excluded.due_at`, failures: 0 } }),
  );
  readonly #clear = prepared(() => this.#db.delete(timers).where(eq(timers.name, sql.placeholder("name"))));

  constructor(
    db: DrizzleSqliteDODatabase,
    alarm: Alarm,
    clock: Clock,
    whose: () => Whose = () => ({}),
    guards: readonly string[] = [],
  ) {
    this.#db = db;
    this.#alarm = alarm;
    this.#clock = clock;
    this.#whose = whose;
    this.#guards = new Set(guards);
  }

  /** Sets `name` to be due at `dueAt`, replacing what was. */
  set(name: string, dueAt: number): void {
    this.#setAnew.add(name);
    const at = Math.ceil(dueAt);
    if (!this.#guards.has(name)) this.#set().run({ name, dueAt: at });
    this.#keep(name, at);
    this.#arm();
  }

  /** Sets `name` unless it is due earlier already. */
  setNoLater(name: string, dueAt: number): void {
    const current = this.dueAt(name);
    if (current === undefined || current > dueAt) this.set(name, dueAt);
  }

  clear(name: string): void {
    this.#delete(name);
    this.#arm();
  }

  dueAt(name: string): number | undefined {
    return this.#rows().get(name);
  }

  /** The rows are read anew when they are asked for next, and the alarm is set anew with the next change. */
  forget(): void {
    this.#armedAt = undefined;
    this.#known = undefined;
    this.#doubted = undefined;
  }

  next(): number | undefined {
    const rows = this.#rows();
    const { names, dueAt } = this.#doubts();
    const due = names.size === 0 ? [...rows.values()] : [...rows.values(), dueAt];
    return due.length === 0 ? undefined : Math.min(...due);
  }

  #rows(): Map<string, number> {
    this.#known ??= new Map(
      this.#db
        .select()
        .from(timers)
        .all()
        .map(({ name, dueAt }) => [name, dueAt]),
    );
    return this.#known;
  }

  #doubts(): { names: Set<string>; dueAt: number } {
    this.#doubted ??= { names: new Set(this.#guards), dueAt: this.#clock.now() + leaseMs };
    return this.#doubted;
  }

  /** Memory follows what is stored. A guard is nowhere else. */
  #keep(name: string, dueAt: number | undefined): void {
    const rows = this.#guards.has(name) ? this.#rows() : this.#known;
    if (dueAt === undefined) rows?.delete(name);
    else rows?.set(name, dueAt);
    this.#doubts().names.delete(name);
  }

  #delete(name: string): void {
    if (!this.#guards.has(name)) this.#clear().run({ name });
    this.#keep(name, undefined);
  }

  /** The platform's alarm went off: hand every due row to `handle`, by name. */
  async fire(handle: (name: string) => Promise<void> | void): Promise<void> {
    const now = this.#clock.now();
    this.#armedAt = undefined;
    const guards = [...this.#guards].filter(
      (name) => this.#doubts().names.has(name) || (this.dueAt(name) ?? Number.POSITIVE_INFINITY) <= now,
    );
    const rows = this.#db
      .select()
      .from(timers)
      .where(lte(timers.dueAt, now))
      .orderBy(asc(timers.dueAt))
      .limit(maxRowsPerFire)
      .all();
    const due = [...guards.map((name) => ({ name, dueAt: now, failures: 0 })), ...rows];
    if (due.length > 0) this.#armAt(now + leaseMs);
    for (const { name } of due) this.#setAnew.delete(name);
    await Promise.all(due.map((row) => this.#handle(row, handle)));
    this.#arm();
  }

  async #handle(row: typeof timers.$inferSelect, handle: (name: string) => Promise<void> | void): Promise<void> {
    try {
      await handle(row.name);
      if (!this.#setAnew.has(row.name)) this.#delete(row.name);
    } catch (error) {
      const failures = row.failures + 1;
      const now = this.#clock.now();
      const pauseMs = backoff(row.failures, pauses);
      // A timer that was set meanwhile is due soon. If it were due at once, a handler that sets its own would loop.
      const soonest = now + Math.min(pauseMs, longestPauseOfSetMs);
      const setTo = this.#setAnew.has(row.name) ? (this.dueAt(row.name) ?? soonest) : Number.POSITIVE_INFINITY;
      const dueAt = Math.min(now + pauseMs, Math.max(setTo, soonest));
      this.#db.update(timers).set({ failures, dueAt }).where(eq(timers.name, row.name)).run();
      this.#keep(row.name, dueAt);
      log.error("timer.failed", error, { ...this.#whose(), timer: row.name, failures });
    }
  }

  #arm(): void {
    const next = this.next();
    if (next !== undefined) this.#armAt(next);
    else if (this.#armedAt !== null) {
      this.#armedAt = null;
      void this.#alarm.deleteAlarm();
    }
  }

  #armAt(at: number): void {
    if (this.#armedAt === at) return;
    this.#armedAt = at;
    void this.#alarm.setAlarm(at);
  }
}
