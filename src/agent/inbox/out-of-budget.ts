import { gt, lte, sql } from "drizzle-orm";
import type { Budget } from "../../protocol/events.ts";
import type { Clock } from "../../shared/clock.ts";
import { type Database, prepared, Remembered } from "../../shared/database.ts";
import { outOfBudget } from "./schema.ts";

/**
 * Records used-up budgets. One person uses up a share of the day's tokens (C11) or of an hour's runs (C10).
 * Everybody together uses up the day's tokens (B2). The spaces in which people wait are told.
 *
 * Invariants
 * 1. A row stands until its time, or until the config changes. One person's row holds up nobody else's events.
 * 2. A space is noted in the transaction that has somebody's event wait. It is told until it has answered, and tells its
 *    members once for each such time.
 */
export type OutOfBudget = ReturnType<typeof createOutOfBudget>;

/** Stands for everybody where others are persons: the agent's whole day is spent. */
export const everybody = "";

/** A note that a space is still to get. `person` is `everybody` where the day is spent. */
export type Untold = { person: string; until: number; budget: Budget; spaceId: string };

const isFuture = gt(outOfBudget.until, sql.placeholder("now"));
const all = prepared((db) => db.select().from(outOfBudget).where(isFuture));

export const createOutOfBudget = (db: Database, clock: Clock) => {
  const known = new Remembered(db, () => {
    const rows = all(db).all({ now: clock.now() });
    return new Map(rows.map((row) => [row.person, row]));
  });

  const rowOf = (person: string) => {
    const row = known.get().get(person);
    return row && row.until > clock.now() ? row : undefined;
  };

  const store = (row: typeof outOfBudget.$inferSelect): void => {
    db.insert(outOfBudget).values(row).onConflictDoUpdate({ target: outOfBudget.person, set: row }).run();
    known.get().set(row.person, row);
  };

  return {
    /** The runs here that wait for tokens of a person which steps under way have booked. */
    waiting: new Map<number, string>(),

    /** Until when, in milliseconds since the epoch; undefined for who may go on. */
    until: (person: string | undefined): number | undefined =>
      person === undefined ? undefined : rowOf(person)?.until,

    /** Whether anything waits for this. */
    isFor: (budget: Budget): boolean =>
      [...known.get().values()].some((row) => row.budget === budget && row.until > clock.now()),

    /** The persons who are, each with until when. */
    persons: (): [string, number][] =>
      [...known.get().values()].flatMap(({ person, until }) =>
        person === everybody || until <= clock.now() ? [] : [[person, until]],
      ),

    /** Begins or keeps that state, the longer one of two. In a transaction. */
    begin(person: string, until: number, budget: Budget): void {
      if ((rowOf(person)?.until ?? 0) >= until) return;
      known.writing().delete(outOfBudget).where(lte(outOfBudget.until, clock.now())).run();
      store({ person, until, budget, spaces: {} });
    },

    /** Somebody's message waits in this space for that reason. In a transaction. */
    waitsIn(person: string, spaceId: string): void {
      const row = rowOf(person);
      if (row && row.spaces[spaceId] === undefined) store({ ...row, spaces: { ...row.spaces, [spaceId]: false } });
    },

    untold: (): Untold[] =>
      [...known.get().keys()].flatMap((person) => {
        const row = rowOf(person);
        if (!row) return [];
        const { until, budget, spaces } = row;
        return Object.keys(spaces).flatMap((spaceId) => (spaces[spaceId] ? [] : [{ person, until, budget, spaceId }]));
      }),

    told({ person, until, spaceId }: Untold): void {
      const row = rowOf(person);
      if (row?.until === until) store({ ...row, spaces: { ...row.spaces, [spaceId]: true } });
    },

    /** The config allows more, perhaps. Answers the times until which somebody would have waited. */
    clear(): Set<number> {
      const times = new Set([...known.get().values()].map(({ until }) => until));
      if (times.size > 0) known.writing().delete(outOfBudget).run();
      return times;
    },
  };
};
