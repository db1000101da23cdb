import { eq, isNotNull, isNull, sql } from "drizzle-orm";
import { among, type Database } from "../../shared/database.ts";
import type { LogRow } from "../log.ts";
import { decisions } from "../schema.ts";
import type { StoredDecision } from "./stored-decision.ts";

/**
 * What the space's router was asked, and what it decided.
 *
 * Invariants
 * 1. A message is held in the transaction that stores it, and decided once: a decision is never changed.
 * 2. `pending` repeats what SQLite says; it is read anew after each change, and must be forgotten where a transaction
 *    is rolled back (`transaction` in `parts.ts`).
 */
export class Decisions {
  readonly #db: Database;
  #pending: readonly number[] | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The messages that are not decided, by `seq`, in order. */
  pending(): readonly number[] {
    this.#pending ??= this.#db
      .select({ seq: decisions.seq })
      .from(decisions)
      .where(isNull(decisions.decision))
      .orderBy(decisions.seq)
      .all()
      .map(({ seq }) => seq);
    return this.#pending;
  }

  hold(seq: number): void {
    this.#pending = undefined;
    this.#db.insert(decisions).values({ seq, tries: 0 }).run();
  }

  /** Counts one more try; answers how many there have been with it. */
  begin(seq: number): number {
    const row = this.#db
      .update(decisions)
      .set({ tries: sql`${decisions.tries} + 1` })
      .where(eq(decisions.seq, seq))
      .returning({ tries: decisions.tries })
      .get();
    return row?.tries ?? 0;
  }

  /** Takes the last try back: it ended, and its fault was not the message's. */
  putOff(seq: number): void {
    this.#db
      .update(decisions)
      .set({ tries: sql`${decisions.tries} - 1` })
      .where(eq(decisions.seq, seq))
      .run();
  }

  decide(seq: number, decision: StoredDecision): void {
    this.#pending = undefined;
    this.#db.update(decisions).set({ decision }).where(eq(decisions.seq, seq)).run();
  }

  find(seq: number): typeof decisions.$inferSelect | undefined {
    return this.#db.select().from(decisions).where(eq(decisions.seq, seq)).get();
  }

  /** Whom the router chose for those of `rows` that it was asked about. */
  chosen(rows: LogRow[]): Map<number, string[]> {
    const asked = rows.filter((row) => row.routing?.asksRouter).map(({ seq }) => seq);
    if (asked.length === 0) return new Map();
    const found = this.#db
      .select({ seq: decisions.seq, decision: decisions.decision })
      .from(decisions)
      .where(sql`${among(decisions.seq, asked)} and ${isNotNull(decisions.decision)}`)
      .all();
    return new Map(found.map(({ seq, decision }) => [seq, decision?.agents ?? []]));
  }

  clear(): void {
    this.#pending = undefined;
    this.#db.delete(decisions).run();
  }

  /** What is pending is read anew when it is asked for next. */
  forget(): void {
    this.#pending = undefined;
  }
}
