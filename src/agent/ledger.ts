import { eq, sql } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ledger } from "./schema.ts";

/**
 * B2: tokens a day (UTC), in the agent's own object.
 *
 * Invariants
 * 1. A step starts only after its estimate was reserved and fits: spent + reserved ≤ limit at every start.
 * 2. Settling replaces the reservation by what was billed. A reservation that a crash left is counted as spent
 *    when the next one is made: a call that may have been billed is never forgotten.
 */
export class Ledger {
  readonly #db: Database;
  readonly #clock: Clock;

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
    const row = this.#db.select().from(ledger).where(eq(ledger.day, this.today())).get();
    return row ? row.spent + row.reserved : 0;
  }

  /** False if it does not fit today's limit; then nothing is reserved. */
  reserve(tokens: number, limit: number): boolean {
    if (this.spent() + tokens > limit) return false;
    this.#db
      .insert(ledger)
      .values({ day: this.today(), spent: 0, reserved: tokens })
      .onConflictDoUpdate({
        target: ledger.day,
        set: { spent: sql`${ledger.spent} + ${ledger.reserved}`, reserved: tokens },
      })
      .run();
    return true;
  }

  settle(tokens: number): void {
    this.#db
      .insert(ledger)
      .values({ day: this.today(), spent: tokens, reserved: 0 })
      .onConflictDoUpdate({ target: ledger.day, set: { spent: sql`${ledger.spent} + ${tokens}`, reserved: 0 } })
      .run();
  }
}
