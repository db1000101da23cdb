import { and, count, eq, isNull } from "drizzle-orm";
import type { Key } from "../protocol/workspace.ts";
import { type Clock, isoTime } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxKeys } from "./bounds.ts";
import { keys } from "./schema.ts";

const living = (id: string) => and(eq(keys.id, id), isNull(keys.revokedAt));

/**
 * The workspace's secret keys, of which only hashes are here. There is always a living one. A revoked key keeps its
 * row: its id and hash can never be a living key's again (S5).
 */
export class Keys {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Adding under an id that is there answers what is there. */
  add(id: string, hash: string): Key {
    const present = this.#db.select().from(keys).where(eq(keys.id, id)).get();
    if (present && present.revokedAt !== null) {
      throw new ColloquyError("gone", "That key was revoked: create another one with a new Idempotency-Key.");
    }
    if (present) return { id, createdAt: isoTime(present.createdAt) };
    if (this.#count() >= maxKeys) {
      throw new ColloquyError(
        "limit_reached",
        `A workspace has at most ${maxKeys} secret keys (maxKeys): revoke one first.`,
      );
    }
    const createdAt = this.#clock.now();
    this.#db.insert(keys).values({ id, hash, createdAt }).run();
    return { id, createdAt: isoTime(createdAt) };
  }

  verify(hash: string): { keyId: string } {
    const key = this.#db
      .select({ id: keys.id })
      .from(keys)
      .where(and(eq(keys.hash, hash), isNull(keys.revokedAt)))
      .get();
    if (!key) throw new ColloquyError("unauthorized", "The secret key is not valid.");
    return { keyId: key.id };
  }

  lives(id: string): boolean {
    return this.#db.select({ id: keys.id }).from(keys).where(living(id)).get() !== undefined;
  }

  revoke(id: string): void {
    if (!this.lives(id)) {
      throw new ColloquyError("not_found", "There is no such key in this workspace.");
    }
    if (this.#count() === 1) {
      throw new ColloquyError("conflict", "This is the workspace's last key: create another one before revoking it.");
    }
    this.#db.update(keys).set({ revokedAt: this.#clock.now() }).where(living(id)).run();
  }

  #count(): number {
    return this.#db.select({ count: count() }).from(keys).where(isNull(keys.revokedAt)).get()?.count ?? 0;
  }
}
