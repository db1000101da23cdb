import { and, eq, isNull } from "drizzle-orm";
import type { Key } from "../protocol/workspace.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxKeys } from "./bounds.ts";
import { keys } from "./schema.ts";

export type Keys = ReturnType<typeof createKeys>;

/**
 * The workspace's secret keys, of which only hashes are here. There is always a living one. A revoked key keeps its
 * row: its id and hash can never be a living key's again (S5).
 */
export const createKeys = (db: Database, clock: Clock) => {
  const isAlive = isNull(keys.revokedAt);
  const lives = (id: string): boolean =>
    db
      .select()
      .from(keys)
      .where(and(eq(keys.id, id), isAlive))
      .get() !== undefined;

  return {
    lives,

    /** Adding under an id that is there answers what is there. */
    add(id: string, hash: string): Key {
      const present = db.select().from(keys).where(eq(keys.id, id)).get();
      if (present && present.revokedAt !== null) {
        throw new ColloquyError("gone", "That key was revoked: create another one with a new Idempotency-Key.");
      }
      if (present) return { id, createdAt: isoTime(present.createdAt) };
      if (countOf(db, keys, isAlive) >= maxKeys) {
        const detail = `A workspace has at most ${maxKeys} secret keys (maxKeys): revoke one first.`;
        throw new ColloquyError("limit_reached", detail);
      }
      const createdAt = clock.now();
      db.insert(keys).values({ id, hash, createdAt }).run();
      return { id, createdAt: isoTime(createdAt) };
    },

    verify(hash: string): { keyId: string } {
      const isPresented = and(eq(keys.hash, hash), isAlive);
      const key = db.select().from(keys).where(isPresented).get();
      if (!key) throw new ColloquyError("unauthorized", "The secret key is not valid.");
      return { keyId: key.id };
    },

    revoke(id: string): void {
      if (!lives(id)) throw new ColloquyError("not_found", "There is no such key in this workspace.");
      if (countOf(db, keys, isAlive) === 1) {
        throw new ColloquyError("conflict", "This is the workspace's last key: create another one before revoking it.");
      }
      db.update(keys).set({ revokedAt: clock.now() }).where(eq(keys.id, id)).run();
    },
  };
};
