import { eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { MessageRouting } from "../../protocol/message.ts";
import type { Principal } from "../../protocol/principal.ts";
import { isoTime } from "../../shared/clock.ts";
import { among, type Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import type { Log, LogRow } from "../log/log.ts";
import { type Known, seen } from "../rights.ts";
import { decisions, type StoredDecision } from "../schema.ts";

/**
 * The messages that the space's router was asked about, and its decisions.
 *
 * Invariants
 * 1. A message is held in the transaction that stores it, and decided once: a decision is never changed.
 * 2. `pending` repeats what SQLite says; it is read anew after each change, and must be forgotten where a transaction
 *    is rolled back (`transaction` in `services.ts`).
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
    this.#db.insert(decisions).values({ seq }).run();
  }

  decide(seq: number, decision: StoredDecision): void {
    this.#pending = undefined;
    this.#db.update(decisions).set({ decision }).where(eq(decisions.seq, seq)).run();
  }

  find(seq: number): typeof decisions.$inferSelect | undefined {
    return this.#db.select().from(decisions).where(eq(decisions.seq, seq)).get();
  }

  /** The agents that the router chose, for those of `rows` that it was asked about. */
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

  /** The pending messages are read anew when they are asked for next. */
  forget(): void {
    this.#pending = undefined;
  }
}

/** The router's decision about a message, or `pending`. `not_found` where the router was not asked. */
export const routingOf = (
  services: Known & { log: Log; decisions: Decisions },
  principal: Principal,
  messageId: string,
): MessageRouting => {
  seen(services, principal);
  const row = services.log.findMessage(messageId);
  const asked = row && services.decisions.find(row.seq);
  if (!asked) throw new ColloquyError("not_found", `The space's router was not asked about ${messageId}`);
  if (!asked.decision) return { messageId, outcome: "pending", agents: [] };
  const { at, ...decision } = asked.decision;
  return { messageId, ...decision, at: isoTime(at) };
};
