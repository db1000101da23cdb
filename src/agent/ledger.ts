import { lt, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import { type Database, placeholders, prepared, Remembered, rowsBy } from "../shared/database.ts";
import { ledgerMemoryMs } from "./bounds.ts";
import { ledger } from "./schema.ts";

/**
 * B2: tokens a day (UTC), in the agent's own object.
 *
 * Invariants
 * 1. A step starts only after its estimate was reserved and fits: spent + reserved ≤ limit at every start.
 * 2. What a step was billed replaces its reservation, once. A step that was left without an answer is billed its
 *    reservation, unless its provider refused it: a call that may have been billed is never forgotten.
 * 3. What the journal says too, and what leaves the total as it is, is settled in memory. The next write of the day
 *    stores that. After a restart it follows from the journal, or the reservation counts.
 */
export type Ledger = ReturnType<typeof createLedger>;

/** `billedOf`: what a step was billed by the journal, by its name here; undefined if the journal does not hold it. */
export const createLedger = (
  db: Database,
  clock: Clock,
  billedOf: (step: string) => number | undefined = () => undefined,
) => {
  /** The row that was read last; undefined if its day has none. */
  const known = new Remembered<{ day: string; row: LedgerRow | undefined } | undefined>(db, () => undefined);
  const ofDay = prepared(() => rowsBy(db, ledger, ledger.day));
  const store = prepared(() =>
    db
      .insert(ledger)
      .values(placeholders(["day", "spent", "reserved"]))
      .onConflictDoUpdate({
        target: ledger.day,
        set: { spent: sql`excluded.spent`, reserved: sql`excluded.reserved` },
      }),
  );

  const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);
  const today = (): string => dayOf(clock.now());

  const rowOf = (day: string): LedgerRow | undefined => {
    const held = known.get();
    if (held?.day === day) return held.row;
    let row = ofDay().get({ key: day });
    for (const step of Object.keys(row?.reserved ?? {})) {
      const billed = billedOf(step);
      if (row && billed !== undefined) row = settled(row, step, billed);
    }
    known.set({ day, row });
    return row;
  };

  const write = (row: LedgerRow): void => {
    store().run(row);
    known.set({ day: row.day, row });
  };

  return {
    dayOf,
    today,

    /** When today's ledger ends, in milliseconds since the epoch. */
    resetsAt: (): number => Date.parse(`${today()}T00:00:00Z`) + 24 * 60 * 60_000,

    spent: (): number => total(rowOf(today())),

    /** Reserves what a step may cost. False if it does not fit today's limit; then nothing is reserved. */
    reserve(step: string, tokens: number, limit: number): boolean {
      const day = today();
      const row = rowOf(day);
      const oldest = dayOf(clock.now() - ledgerMemoryMs);
      if (!row) db.delete(ledger).where(lt(ledger.day, oldest)).run();
      if (total(row) + tokens > limit) return false;
      // A call of this step that was cut may have been billed.
      const { spent, reserved } = row ? settled(row, step, row.reserved[step] ?? 0) : { spent: 0, reserved: {} };
      write({ day, spent, reserved: { ...reserved, [step]: tokens } });
      return true;
    },

    /** The step was billed so many tokens, none if it was refused. `inMemory`: a restart comes to the same total, or to a larger one if the step was not journaled. */
    settle(step: string, billed: number, inMemory = false): void {
      const row = rowOf(today());
      if (row?.reserved[step] === undefined) return;
      const after = settled(row, step, billed);
      if (inMemory) known.set({ day: row.day, row: after });
      else write(after);
    },
  };
};

type LedgerRow = typeof ledger.$inferSelect;

const total = (row: LedgerRow | undefined): number =>
  Object.values(row?.reserved ?? {}).reduce((sum, tokens) => sum + tokens, row?.spent ?? 0);

const settled = (row: LedgerRow, step: string, billed: number): LedgerRow => {
  const { [step]: _, ...reserved } = row.reserved;
  return { ...row, spent: row.spent + billed, reserved };
};
