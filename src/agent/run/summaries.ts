import { asc, eq, isNotNull, sql } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import { type Database, prepared, rowsBy } from "../../shared/database.ts";
import { summaries } from "../schema.ts";

/**
 * The summaries that models have made for this agent, and how far each is still to go. There is one for its cycles and
 * one for each space.
 *
 * Invariants
 * 1. A summary and how far it goes are written together: no chunk is folded twice, none is left out.
 * 2. A summary that is wanted has a `tryAt`, until it is made or not wanted any more.
 */
export type SummaryRow = typeof summaries.$inferSelect;

/** The subject of an agent's own cycles. Others are ids of spaces. */
export const ownCycles = "cycles";

export type Summaries = ReturnType<typeof createSummaries>;

const one = prepared((db) => rowsBy(db, summaries, summaries.subject));

export const createSummaries = (db: Database, clock: Clock) => {
  return {
    find: (subject: string): SummaryRow | undefined => one(db).get({ key: subject }),

    /** Asks for a space's messages up to `wanted`, beginning after `base` if there is no summary yet. For cycles both are 0. */
    want(subject: string, wanted: number, base: number): void {
      const now = clock.now();
      db.insert(summaries)
        .values({ subject, base, upTo: base, wanted, tryAt: now, failures: 0, updatedAt: now })
        .onConflictDoUpdate({
          target: summaries.subject,
          // A summary that failed keeps its pause.
          set: { wanted, tryAt: sql`coalesce(${summaries.tryAt}, ${now})`, updatedAt: now },
        })
        .run();
    },

    /** The summary that is wanted and to be tried first; undefined where none is wanted. */
    next(): SummaryRow | undefined {
      const { tryAt, subject } = summaries;
      return db.select().from(summaries).where(isNotNull(tryAt)).orderBy(asc(tryAt), asc(subject)).get();
    },

    update(subject: string, values: Partial<SummaryRow>): void {
      const set = { ...values, updatedAt: clock.now() };
      db.update(summaries).set(set).where(eq(summaries.subject, subject)).run();
    },

    folded(subject: string, folded: { text: string; base: number; upTo: number }): void {
      this.update(subject, { ...folded, tryAt: clock.now(), failures: 0, lastError: null });
    },

    /** Nothing more is wanted of it for now. */
    done(subject: string): void {
      this.update(subject, { tryAt: null, failures: 0, lastError: null });
    },

    /** Lets failed summaries be tried again at once. */
    reconsider(): void {
      db.update(summaries).set({ tryAt: clock.now() }).where(isNotNull(summaries.tryAt)).run();
    },

    forget(subject: string): void {
      db.delete(summaries).where(eq(summaries.subject, subject)).run();
    },
  };
};
