import { lt, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared, rowsBy } from "../shared/database.ts";
import { ledgerMemoryMs } from "./bounds.ts";
import { ledger } from "./schema.ts";

/**
 * B2: tokens a day (UTC), in the agent's own object.
 *
 * Invariants
 * 1. A step starts only after its estimate was reserved and fits: spent + reserved ≤ limit at every start.
 * 2. A reservation is settled by what its step was billed, where the journal holds that step; a reservation whose
 *    step was left without an answer is spent whole, unless its provider refused it: a call that may have been
 *    billed is never forgotten.
 * 3. Settling waits for the run's next reservation, which writes the row anyway. Runs go on side by side: each has its
 *    own reservation, which no other settles.
 * 4. A run that ends or rests settles in memory. The next write of the day stores that. After a restart it follows from
 *    the run and its journal.
 */
export type Billed = { step: string; tokens: number };

/** What the last step of a run was billed, where the run has ended or rests; undefined where it is under way or no run. */
export type FindStopped = (run: string) => { last: Billed | undefined } | undefined;

export type Ledger = ReturnType<typeof createLedger>;

export const createLedger = (db: Database, clock: Clock, findStopped: FindStopped = () => undefined) => {
  /** The row that was read last; undefined if its day has none. */
  let known: { day: string; row: LedgerRow | undefined } | undefined;
  const ofDay = prepared(() => rowsBy(db, ledger, ledger.day));
  const store = prepared(() =>
    db
      .insert(ledger)
      .values({ day: sql.placeholder("day"), spent: sql.placeholder("spent"), reserved: sql.placeholder("reserved") })
      .onConflictDoUpdate({
        target: ledger.day,
        set: { spent: sql`excluded.spent`, reserved: sql`excluded.reserved` },
      }),
  );

  const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
  const today = (): string => dayOf(clock.now());

  /** Deletes old days. */
  const forgetOld = (): void => {
    const oldest = dayOf(clock.now() - ledgerMemoryMs);
    db.delete(ledger).where(lt(ledger.day, oldest)).run();
  };

  const rowOf = (day: string): LedgerRow | undefined => {
    if (known?.day === day) return known.row;
    let row = ofDay().get({ key: day });
    for (const run of new Set(Object.keys(row?.reserved ?? {}).map(runOf))) {
      const stopped = findStopped(run);
      if (row && stopped) row = { ...row, ...settled(row, run, stopped.last) };
    }
    known = { day, row };
    return row;
  };

  const write = (values: Omit<LedgerRow, "day">): void => {
    const row = { day: today(), ...values };
    store().run(row);
    known = { day: row.day, row };
  };

  return {
    dayOf,
    today,

    /** When today's ledger ends, in milliseconds since the epoch. */
    resetsAt: (): number => Date.parse(`${today()}T00:00:00Z`) + 24 * 60 * 60_000,

    spent(): number {
      const row = rowOf(today());
      return row ? row.spent + sum(row.reserved) : 0;
    },

    /**
     * Reserves what a step may cost, and settles the step before it of its run. False if it does not fit today's
     * limit; then nothing is reserved.
     */
    reserve(step: string, tokens: number, limit: number, before: Billed | undefined): boolean {
      const row = rowOf(today());
      if (!row) forgetOld();
      const { spent, reserved } = settled(row, runOf(step), before);
      if (spent + sum(reserved) + tokens > limit) return false;
      write({ spent, reserved: { ...reserved, [step]: tokens } });
      return true;
    },

    /** Frees the reservation of a step that the provider refused. */
    release(step: string): void {
      const row = rowOf(today());
      if (row?.reserved[step] === undefined) return;
      const { [step]: _, ...reserved } = row.reserved;
      write({ spent: row.spent, reserved });
    },

    /** A payer with a name of its own, other than a run, has ended: its bill replaces the reservation. */
    settle(name: string, last: Billed | undefined): void {
      const row = rowOf(today());
      if (row && isReserved(row, name)) write(settled(row, name, last));
    },

    /** The run has ended, or rests. Its last step is settled, and the row is written by what is reserved next. */
    stopped(run: string, last: Billed | undefined): void {
      const row = rowOf(today());
      if (row && isReserved(row, run)) known = { day: row.day, row: { ...row, ...settled(row, run, last) } };
    },

    /** The row is read anew when it is asked for next. */
    forget: (): void => (known = undefined),
  };
};

type LedgerRow = typeof ledger.$inferSelect;

/** The run that a step is of, by the step's name. */
const runOf = (step: string): string => step.slice(0, step.indexOf(":"));

const isReserved = ({ reserved }: LedgerRow, run: string): boolean =>
  Object.keys(reserved).some((step) => runOf(step) === run);

const sum = (reserved: LedgerRow["reserved"]): number =>
  Object.values(reserved).reduce((total, tokens) => total + tokens, 0);

/** What is spent once the reservations of this run, and of no other, are settled. */
const settled = (
  row: LedgerRow | undefined,
  run: string,
  billed: Billed | undefined,
): Pick<LedgerRow, "spent" | "reserved"> => {
  const all = Object.entries(row?.reserved ?? {});
  const mine = all.filter(([step]) => runOf(step) === run);
  const spent = mine.reduce(
    (total, [step, tokens]) => total + (billed?.step === step ? billed.tokens : tokens),
    row?.spent ?? 0,
  );
  return { spent, reserved: Object.fromEntries(all.filter(([step]) => runOf(step) !== run)) };
};
