import { and, desc, eq, gt, lte } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { maxSessionsOfPerson } from "./bounds.ts";
import { sessions } from "./schema.ts";

export type Sessions = ReturnType<typeof createSessions>;

/**
 * The page's sessions. A browser's cookie counts while its session is here.
 *
 * Invariants
 * 1. A person has at most `maxSessionsOfPerson`: one more ends the oldest.
 * 2. The spaces of its person are told of each end that no clock tells them.
 */
export const createSessions = (db: Database, clock: Clock, told: (entityId: string, sessionId: string) => void) => {
  const isIt = (id: string) => and(eq(sessions.id, id), gt(sessions.expiresAt, clock.now()));
  const end = (id: string): string | undefined => {
    const [ended] = db.delete(sessions).where(isIt(id)).returning().all();
    if (ended) told(ended.entityId, id);
    return ended?.entityId;
  };

  return {
    begin(session: typeof sessions.$inferInsert): void {
      db.delete(sessions).where(lte(sessions.expiresAt, clock.now())).run();
      const own = db.select().from(sessions).where(eq(sessions.entityId, session.entityId));
      const newestFirst = own.orderBy(desc(sessions.expiresAt)).all();
      for (const { id } of newestFirst.slice(maxSessionsOfPerson - 1)) end(id);
      db.insert(sessions).values(session).run();
    },

    lives: (id: string): boolean => db.select().from(sessions).where(isIt(id)).get() !== undefined,

    /** Ends it, if it has not ended, and answers whose it was. */
    end,

    forgetEntity(entityId: string): void {
      db.delete(sessions).where(eq(sessions.entityId, entityId)).run();
    },
  };
};
