import { and, asc, eq, lte, sql } from "drizzle-orm";
import { backoff, type Pauses } from "../shared/backoff.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { outboxBatch } from "./bounds.ts";
import { outbox } from "./schema.ts";

/**
 * What spaces and agents are still to be told: renames, removals, secrets, the end of an agent.
 *
 * Invariants
 * 1. A row is written in the transaction that made it necessary, and removed only after its target answered.
 * 2. Asking again for what is already waiting makes no second row; asking while it is carried keeps the row.
 */
export type Errand = typeof outbox.$inferSelect;
export type ErrandName = Pick<Errand, "kind" | "target" | "subject">;

const pauses: Pauses = { firstMs: 1000, longestMs: 10 * 60_000 };

const named = (errand: ErrandName) =>
  and(eq(outbox.kind, errand.kind), eq(outbox.target, errand.target), eq(outbox.subject, errand.subject));

export class Outbox {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  add(errands: ErrandName[]): void {
    const dueAt = this.#clock.now();
    for (const errand of errands) {
      this.#db
        .insert(outbox)
        .values({ kind: errand.kind, target: errand.target, subject: errand.subject, dueAt })
        .onConflictDoUpdate({
          target: [outbox.kind, outbox.target, outbox.subject],
          set: { version: sql`${outbox.version} + 1`, attempts: 0, dueAt },
        })
        .run();
    }
  }

  due(): Errand[] {
    return this.#db
      .select()
      .from(outbox)
      .where(lte(outbox.dueAt, this.#clock.now()))
      .orderBy(asc(outbox.dueAt))
      .limit(outboxBatch)
      .all();
  }

  /** When the next row is due, in milliseconds since the epoch. */
  nextDueAt(): number | undefined {
    const next = this.#db.select({ dueAt: outbox.dueAt }).from(outbox).orderBy(asc(outbox.dueAt)).limit(1).get();
    return next?.dueAt;
  }

  /** Its target knows, unless it was asked for again meanwhile. */
  done(errand: Errand): void {
    this.#db
      .delete(outbox)
      .where(and(named(errand), eq(outbox.version, errand.version)))
      .run();
  }

  failed(errand: Errand): void {
    const attempts = errand.attempts + 1;
    const dueAt = this.#clock.now() + backoff(errand.attempts, pauses);
    this.#db
      .update(outbox)
      .set({ attempts, dueAt })
      .where(and(named(errand), eq(outbox.version, errand.version)))
      .run();
  }
}
