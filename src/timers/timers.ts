import { asc, eq, lte, sql } from "drizzle-orm";
import { backoff, type Pauses } from "../shared/backoff.ts";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared, Remembered } from "../shared/database.ts";
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
 *    a part of the transaction in which they were set.
 * 6. A guard is a timer without a row, which would be written twice for each message: what it guards is stored
 *    elsewhere. Where memory does not tell whether a guard is set, it may be. Then the next alarm runs its handler, and
 *    no alarm is moved beyond the lease.
 */
export const leaseMs = 5000;
/** The longest pause after a failure of a row that its own handler sets again. */
export const longestPauseOfSetMs = 25_000;
/** The platform takes no alarm of after 2189. One that goes off before anything is due is set again. */
const farthestAlarm = Date.UTC(2180, 0);
const pauses: Pauses = { firstMs: 1000, longestMs: 10 * 60_000 };
const maxRowsPerFire = 100;

type Whose = { agentId?: string | undefined; spaceId?: string | undefined };
type Alarm = Pick<DurableObjectStorage, "setAlarm" | "deleteAlarm">;
type Handle = (name: string) => Promise<void> | void;

const all = prepared((db) => db.select({ name: timers.name, dueAt: timers.dueAt }).from(timers));
const store = prepared((db) =>
  db
    .insert(timers)
    .values({ name: sql.placeholder("name"), dueAt: sql.placeholder("dueAt") })
    .onConflictDoUpdate({ target: timers.name, set: { dueAt: sql`excluded.due_at`, failures: 0 } }),
);
const erase = prepared((db) => db.delete(timers).where(eq(timers.name, sql.placeholder("name"))));

export type Timers = ReturnType<typeof createTimers>;

/** `whose` is the object's own id, for the log: one that was never created has none. */
export const createTimers = (
  db: Database,
  platform: Alarm,
  clock: Clock,
  whose: () => Whose = () => ({}),
  guards: readonly string[] = [],
) => {
  /** The time of the platform's alarm, as far as it is known, so that an unchanged alarm costs no write. */
  const armed = new Remembered<number | null | undefined>(db, () => undefined, "rollbacks");
  /** The due times by name, once they are asked for. */
  const known = new Remembered(
    db,
    () => {
      const rows = all(db).all();
      return new Map(rows.map(({ name, dueAt }) => [name, dueAt]));
    },
    "rollbacks",
  );
  /** The guards that may be set, and until when the alarm must have told. */
  const doubted = new Remembered(db, () => ({ names: new Set(guards), dueAt: clock.now() + leaseMs }), "rollbacks");
  /** Timers that were set since they fell due, also by the handler of another. */
  const setAnew = new Set<string>();
  /** The names of the timers whose handlers run. */
  const handling = new Set<string>();

  /** Memory follows what is stored. A guard is nowhere else. */
  const keep = (name: string, dueAt: number | undefined): void => {
    if (dueAt === undefined) known.get().delete(name);
    else known.get().set(name, dueAt);
    doubted.get().names.delete(name);
  };

  const remove = (name: string): void => {
    if (!guards.includes(name)) erase(db).run({ name });
    keep(name, undefined);
  };

  const armAt = (wanted: number): void => {
    const at = Math.min(wanted, farthestAlarm);
    if (armed.get() === at) return;
    armed.set(at);
    void platform.setAlarm(at);
  };

  const next = (): number | undefined => {
    const { names, dueAt } = doubted.get();
    const due = [...known.get().values(), ...(names.size === 0 ? [] : [dueAt])];
    return due.length === 0 ? undefined : Math.min(...due);
  };

  const arm = (): void => {
    const at = next();
    if (at !== undefined) armAt(at);
    else if (armed.get() !== null) {
      armed.set(null);
      void platform.deleteAlarm();
    }
  };

  const dueAt = (name: string): number | undefined => known.get().get(name);

  /** Sets `name` to be due at `dueAt`, replacing what was. */
  const set = (name: string, dueAt: number): void => {
    setAnew.add(name);
    const at = Math.ceil(dueAt);
    if (!guards.includes(name)) store(db).run({ name, dueAt: at });
    keep(name, at);
    arm();
  };

  const handleRow = async (row: typeof timers.$inferSelect, handle: Handle): Promise<void> => {
    try {
      await handle(row.name);
      if (!setAnew.has(row.name)) remove(row.name);
    } catch (error) {
      const failures = row.failures + 1;
      const now = clock.now();
      const pauseMs = backoff(row.failures, pauses);
      // A timer that was set meanwhile is due soon. If it were due at once, a handler that sets its own would loop.
      const soonest = now + Math.min(pauseMs, longestPauseOfSetMs);
      const setTo = setAnew.has(row.name) ? (dueAt(row.name) ?? soonest) : Number.POSITIVE_INFINITY;
      const again = Math.min(now + pauseMs, Math.max(setTo, soonest));
      const failed = db.update(timers).set({ failures, dueAt: again }).where(eq(timers.name, row.name));
      // One that its handler cleared stays cleared.
      if (failed.returning().all().length > 0 || guards.includes(row.name)) keep(row.name, again);
      log.error("timer.failed", error, { ...whose(), timer: row.name, failures });
    } finally {
      handling.delete(row.name);
    }
  };

  return {
    set,
    dueAt,
    next,

    /** Sets `name` unless it is due earlier already. What is being handled is due no more. */
    setNoLater(name: string, at: number): void {
      const current = handling.has(name) && !setAnew.has(name) ? undefined : dueAt(name);
      if (current === undefined || current > at) set(name, at);
    },

    clear(name: string): void {
      remove(name);
      arm();
    },

    /** The platform's alarm went off: hand every due row to `handle`, by name. */
    async fire(handle: Handle): Promise<void> {
      const now = clock.now();
      armed.forget();
      // The platform's clock may be ahead of the object's.
      if (doubted.get().names.size === 0 && (next() ?? now) > now) return arm();
      const isDue = (name: string): boolean =>
        doubted.get().names.has(name) || (dueAt(name) ?? Number.POSITIVE_INFINITY) <= now;
      const dueGuards = guards.filter(isDue).map((name) => ({ name, dueAt: now, failures: 0 }));
      const isPast = lte(timers.dueAt, now);
      const stored = db.select().from(timers).where(isPast).orderBy(asc(timers.dueAt)).limit(maxRowsPerFire).all();
      const due = [...dueGuards, ...stored];
      if (due.length > 0) armAt(now + leaseMs);
      for (const { name } of due) {
        setAnew.delete(name);
        handling.add(name);
      }
      await Promise.all(due.map((row) => handleRow(row, handle)));
      arm();
    },
  };
};
