import { desc, eq, lt } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { maxDedupeKeys } from "../bounds.ts";
import { dedupeKeys } from "./schema.ts";

/** The ids of services' events, kept for as long as a sender may send one again (R7). */
export type DedupeKeys = ReturnType<typeof createDedupeKeys>;

export const createDedupeKeys = (db: Database, clock: Clock) => {
  return {
    /** Remembers an id; false if it was known. */
    firstSight(eventId: string): boolean {
      const adding = db.insert(dedupeKeys).values({ eventId, receivedAt: clock.now() }).onConflictDoNothing();
      return adding.returning().all().length > 0;
    },

    /** When it came first, in milliseconds since the epoch. */
    seenAt(eventId: string): number | undefined {
      return db.select().from(dedupeKeys).where(eq(dedupeKeys.eventId, eventId)).get()?.receivedAt;
    },

    /** Forgets the ids that came before `time`, and the oldest of more than `maxDedupeKeys`. */
    forgetBefore(time: number): void {
      const newestFirst = db.select().from(dedupeKeys).orderBy(desc(dedupeKeys.receivedAt));
      const beyond = newestFirst.limit(1).offset(maxDedupeKeys).get();
      const before = Math.max(time, (beyond?.receivedAt ?? -1) + 1);
      db.delete(dedupeKeys).where(lt(dedupeKeys.receivedAt, before)).run();
    },
  };
};
