import { eq, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import { type Database, prepared } from "../shared/database.ts";
import { ledger } from "./schema.ts";

/**
 * B2: tokens a day (UTC), in the agent's own object.
 *
 * Invariants
 * 1. A step starts only after its estimate was reserved and fits: spent + reserved ≤ limit at every start.
 * 2. A reservation is settled by what its step was billed, where the journal holds that step; a reservation whose
 *    step was left without an answer is spent whole, unless its provider refused it: a call that may have been
 *    billed is never forgotten.
 * 3. Settling waits for the next reservation or the end of the run, which writes the row anyway.
 */
export type Billed = { step: string; tokens: number };

export class Ledger {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #ofDay = prepared(() =>
    this.#db
      .select()
      .from(ledger)
      .where(eq(ledger.day, sql.placeholder("day")))
      .prepare(),
  );

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  dayOf(time: number): string {
    return new Date(time).toISOString().slice(0, 10);
  }

  today(): string {
    return this.dayOf(this.#clock.now());
  }

  /** When today's ledger ends, in milliseconds since the epoch. */
  resetsAt(): number {
    return Date.parse(`${this.today()}T00:00:00Z`) + 24 * 60 * 60_000;
  }

  spent(): number {
    const row = this.#row(this.today());
    return row ? row.spent + row.reserved : 0;
  }

  /**
   * Reserves what a step may cost, and settles the step before it. False if it does not fit today's limit; then
   * nothing is reserved.
   */
  reserve(step: string, tokens: number, limit: number, before: Billed | undefined): boolean {
    const today = this.#row(this.today());
    const spent = spentAfter(today, before);
    if (spent + tokens > limit) return false;
    this.#write({ spent, reserved: tokens, reservedFor: step });
    return true;
  }

  /** The step was refused before anything of it was generated: what was reserved for it is free again. */
  release(step: string): void {
    const today = this.#row(this.today());
    if (today?.reservedFor === step) this.#write({ spent: today.spent, reserved: 0, reservedFor: "" });
  }

  /** The run has ended: what its last step was billed takes the reservation's place. */
  settle(last: Billed | undefined): void {
    const today = this.#row(this.today());
    if (today?.reservedFor) this.#write({ spent: spentAfter(today, last), reserved: 0, reservedFor: "" });
  }

  #row(day: string): LedgerRow | undefined {
    return this.#ofDay().get({ day });
  }

  #write(values: Omit<LedgerRow, "day">): void {
    this.#db
      .insert(ledger)
      .values({ day: this.today(), ...values })
      .onConflictDoUpdate({ target: ledger.day, set: values })
      .run();
  }
}

type LedgerRow = typeof ledger.$inferSelect;

const spentAfter = (row: LedgerRow | undefined, billed: Billed | undefined): number => {
  if (!row) return 0;
  return row.spent + (billed && billed.step === row.reservedFor ? billed.tokens : row.reserved);
};
