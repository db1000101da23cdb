import { eq, lt, sql } from "drizzle-orm";
import type { Database } from "../../shared/database.ts";
import { routerLedgerMemoryMs } from "../bounds.ts";
import { routerLedger } from "../schema.ts";

/** The tokens that were reserved for one call, and on which day. */
export type Reservation = { day: string; tokens: number };

const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/**
 * B2: the router's tokens a day (UTC), in the space's own object.
 *
 * Invariants
 * 1. A call starts only after what it may cost was reserved and fits: the day's tokens ≤ limit at every start.
 * 2. A reservation counts as spent from the start; settling puts what was billed in its place. So a call that was cut
 *    off, and may have been billed, is never forgotten.
 */
export class RouterLedger {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Undefined where it does not fit; then nothing is reserved. */
  reserve(now: number, tokens: number, limit: number): Reservation | undefined {
    const day = dayOf(now);
    const row = this.#db.select().from(routerLedger).where(eq(routerLedger.day, day)).get();
    if (!row) this.#forgetBefore(dayOf(now - routerLedgerMemoryMs));
    if ((row?.tokens ?? 0) + tokens > limit) return undefined;
    this.#add(day, tokens);
    return { day, tokens };
  }

  settle({ day, tokens }: Reservation, billed: number): void {
    if (billed !== tokens) this.#add(day, billed - tokens);
  }

  clear(): void {
    this.#db.delete(routerLedger).run();
  }

  #forgetBefore(day: string): void {
    this.#db.delete(routerLedger).where(lt(routerLedger.day, day)).run();
  }

  #add(day: string, tokens: number): void {
    this.#db
      .insert(routerLedger)
      .values({ day, tokens })
      .onConflictDoUpdate({ target: routerLedger.day, set: { tokens: sql`${routerLedger.tokens} + ${tokens}` } })
      .run();
  }
}
