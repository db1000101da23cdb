import { eq, gte, lt, sql } from "drizzle-orm";
import type { Database } from "../../shared/database.ts";
import { meter } from "../../shared/meter.ts";
import { routerLedgerMemoryMs } from "../bounds.ts";
import { routerLedger } from "../schema.ts";

export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

export type RouterLedger = ReturnType<typeof createRouterLedger>;

/**
 * B2: the router's tokens a day (UTC), in the space's own object.
 *
 * Invariants
 * 1. A call starts only after what it may cost was reserved and fits: the day's tokens ≤ limit at every start.
 * 2. A reservation counts as spent from the start; settling puts what was billed in its place. So a call that was cut
 *    off, and may have been billed, is never forgotten.
 */
export const createRouterLedger = (db: Database) => {
  const add = (day: string, tokens: number): void => {
    const sum = sql`${routerLedger.tokens} + ${tokens}`;
    db.insert(routerLedger)
      .values({ day, tokens })
      .onConflictDoUpdate({ target: routerLedger.day, set: { tokens: sum } })
      .run();
  };
  return {
    /** Answers how to settle it. Undefined where it does not fit; then nothing is reserved. */
    reserve(now: number, tokens: number, limit: number): ((billed: number) => void) | undefined {
      const day = dayOf(now);
      const row = db.select().from(routerLedger).where(eq(routerLedger.day, day)).get();
      const isOld = lt(routerLedger.day, dayOf(now - routerLedgerMemoryMs));
      if (!row) db.delete(routerLedger).where(isOld).run();
      if ((row?.tokens ?? 0) + tokens > limit) return undefined;
      add(day, tokens);
      return (billed) => {
        meter.count("tokens", {}, billed);
        if (billed !== tokens) add(day, billed - tokens);
      };
    },

    /** The tokens of the day, with what is reserved. */
    spent: (now: number): number =>
      db
        .select()
        .from(routerLedger)
        .where(eq(routerLedger.day, dayOf(now)))
        .get()?.tokens ?? 0,

    /** The tokens of each day since this one. */
    since: (day: string) => db.select().from(routerLedger).where(gte(routerLedger.day, day)).all(),

    clear(): void {
      db.delete(routerLedger).run();
    },
  };
};
