import { and, asc, eq } from "drizzle-orm";
import { boundsOf } from "../auth/sealing.ts";
import type { Secret } from "../protocol/secret.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxSecrets } from "./bounds.ts";
import { secrets } from "./schema.ts";

export type Secrets = ReturnType<typeof createSecrets>;

/** Secrets of tools and models. They are sealed before they come here, and opened here only to be sealed anew. */
export const createSecrets = (db: Database, clock: Clock) => {
  const has = (name: string): boolean => countOf(db, secrets, eq(secrets.name, name)) > 0;

  return {
    put(name: string, sealed: string): void {
      if (!has(name) && countOf(db, secrets) >= maxSecrets) {
        const detail = `A workspace has at most ${maxSecrets} secrets (maxSecrets): delete one first.`;
        throw new ColloquyError("limit_reached", detail);
      }
      const changes = { sealed, updatedAt: clock.now() };
      db.insert(secrets)
        .values({ name, ...changes })
        .onConflictDoUpdate({ target: secrets.name, set: changes })
        .run();
    },

    delete(name: string): void {
      if (!has(name)) throw new ColloquyError("not_found", "There is no secret of that name in this workspace.");
      db.delete(secrets).where(eq(secrets.name, name)).run();
    },

    names(): string[] {
      const rows = db.select({ name: secrets.name }).from(secrets).orderBy(asc(secrets.name)).all();
      return rows.map(({ name }) => name);
    },

    rows: (): (typeof secrets.$inferSelect)[] => db.select().from(secrets).orderBy(asc(secrets.name)).all(),

    list: (): Secret[] =>
      db
        .select()
        .from(secrets)
        .orderBy(asc(secrets.name))
        .all()
        .map(({ name, sealed, updatedAt }) => ({ name, ...boundsOf(sealed), updatedAt: isoTime(updatedAt) })),

    /** Sealed anew, if nobody has written another meanwhile. */
    replace(name: string, sealed: string, fresh: string): void {
      const isIt = and(eq(secrets.name, name), eq(secrets.sealed, sealed));
      db.update(secrets).set({ sealed: fresh }).where(isIt).run();
    },

    sealed(): Record<string, string> {
      const rows = db.select().from(secrets).all();
      return Object.fromEntries(rows.map(({ name, sealed }) => [name, sealed]));
    },
  };
};
