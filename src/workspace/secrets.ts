import { asc, count, eq } from "drizzle-orm";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import { maxSecrets } from "./bounds.ts";
import { secrets } from "./schema.ts";

/** Secrets of tools and models. They are sealed before they come here, and never opened here. */
export class Secrets {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  put(name: string, sealed: string): void {
    const updatedAt = this.#clock.now();
    if (!this.#has(name) && this.#count() >= maxSecrets) {
      throw new ColloquyError(
        "limit_reached",
        `A workspace has at most ${maxSecrets} secrets (maxSecrets): delete one first.`,
      );
    }
    this.#db
      .insert(secrets)
      .values({ name, sealed, updatedAt })
      .onConflictDoUpdate({ target: secrets.name, set: { sealed, updatedAt } })
      .run();
  }

  delete(name: string): void {
    if (!this.#has(name)) throw new ColloquyError("not_found", "There is no secret of that name in this workspace.");
    this.#db.delete(secrets).where(eq(secrets.name, name)).run();
  }

  names(): string[] {
    const rows = this.#db.select({ name: secrets.name }).from(secrets).orderBy(asc(secrets.name)).all();
    return rows.map((row) => row.name);
  }

  sealed(): Record<string, string> {
    const rows = this.#db.select().from(secrets).all();
    return Object.fromEntries(rows.map((row) => [row.name, row.sealed]));
  }

  #has(name: string): boolean {
    return this.#db.select({ name: secrets.name }).from(secrets).where(eq(secrets.name, name)).get() !== undefined;
  }

  #count(): number {
    return this.#db.select({ count: count() }).from(secrets).get()?.count ?? 0;
  }
}
