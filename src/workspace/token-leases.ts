import { and, eq, lt, sum } from "drizzle-orm";
import type { TokensAsked, TokensLeased } from "../protocol/limits.ts";
import { type Clock, dayMs } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxTokensLeased } from "./bounds.ts";
import { tokenLeases } from "./schema.ts";

/** The rest of the day's tokens is leased in parts, so that one agent does not take it all. */
const parts = 8;

export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/**
 * L10: the tokens of the workspace's day that its agents, and the routers of its spaces, have leased.
 *
 * Invariants
 * 1. What is leased anew fits: all leases of a day together are within its limit then.
 * 2. An agent has no more than its row says. It says itself what it has, which replaces what was leased before. So a
 *    lost answer is given back with the next question.
 * 3. What an agent has leased stays leased after its end, whoever is made under its id.
 * 4. Questions are taken in the order of their numbers. One that is overtaken changes nothing.
 */
export const createTokenLeases = (db: Database, clock: Clock, limit: () => number | undefined) => {
  const ofDay = (day: string) => eq(tokenLeases.day, day);
  const { leased: leasedTokens, booked: bookedTokens } = tokenLeases;
  const sums = { leased: sum(leasedTokens).mapWith(Number), booked: sum(bookedTokens).mapWith(Number) };
  /** All leases of a day together. */
  const on = (day: string) => db.select(sums).from(tokenLeases).where(ofDay(day)).get();
  const leasedOn = (day: string): number => on(day)?.leased ?? 0;

  return {
    today: (): number => leasedOn(dayOf(clock.now())),

    /** The agent is gone. A repeated request may make another under its id, which has none of this. */
    keep(agentId: string): void {
      const kept = { agentId: `${agentId} ${crypto.randomUUID()}` };
      db.update(tokenLeases).set(kept).where(eq(tokenLeases.agentId, agentId)).run();
    },

    lease({ agentId, day, seq, held, booked, need, exact }: TokensAsked): TokensLeased {
      if (Math.abs(Date.parse(day) - Date.parse(dayOf(clock.now()))) > dayMs) {
        throw new ColloquyError("conflict", "The day is over: ask for tokens of today");
      }
      const isIts = and(ofDay(day), eq(tokenLeases.agentId, agentId));
      const row = db.select().from(tokenLeases).where(isIts).get();
      if (row && seq <= row.seq) return { seq: row.seq, leased: null, is: "booked" };
      const most = limit() ?? Number.POSITIVE_INFINITY;
      const free = most - (leasedOn(day) - (row?.leased ?? 0));
      const spare = Math.max(0, Math.min(maxTokensLeased, Math.floor((free - need) / parts)));
      const leased = need > held && need <= free ? need + (exact ? 0 : spare) : held;
      if (!row) {
        const oldest = dayOf(clock.now() - 2 * dayMs);
        db.delete(tokenLeases).where(lt(tokenLeases.day, oldest)).run();
      }
      const values = { day, agentId, leased, booked, seq };
      db.insert(tokenLeases)
        .values(values)
        .onConflictDoUpdate({ target: [tokenLeases.day, tokenLeases.agentId], set: values })
        .run();
      if (need <= leased) return { seq, leased, is: "leased" };
      // Only what others have leased beyond what they booked may come back.
      return { seq, leased, is: (on(day)?.booked ?? 0) - booked + need > most ? "spent" : "booked" };
    },
  };
};
export type TokenLeases = ReturnType<typeof createTokenLeases>;
