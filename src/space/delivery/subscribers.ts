import { and, asc, eq, isNotNull, lt, ne } from "drizzle-orm";
import type { Database } from "../../shared/database.ts";
import { subscribers } from "../schema.ts";

export type SubscriberRow = typeof subscribers.$inferSelect;

/** The subscriber that is not a member: the workspace's index of spaces. */
export const indexSubscriber = "index";

/** Who follows the log, each with its cursor. */
export class Subscribers {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(id: string): SubscriberRow | undefined {
    return this.#db.select().from(subscribers).where(eq(subscribers.id, id)).get();
  }

  /** Those whose cursor has not come to `seq`. */
  behind(seq: number): SubscriberRow[] {
    return this.#db.select().from(subscribers).where(lt(subscribers.cursor, seq)).all();
  }

  anyAgentBut(agentId: string): boolean {
    const other = and(eq(subscribers.kind, "agent"), ne(subscribers.id, agentId));
    return this.#db.select({ id: subscribers.id }).from(subscribers).where(other).limit(1).get() !== undefined;
  }

  any(): boolean {
    return this.#db.select({ id: subscribers.id }).from(subscribers).limit(1).get() !== undefined;
  }

  /** Begins to follow after `cursor`; one that still follows (it left and came back) goes on from where it is. */
  insert(subscriber: Pick<SubscriberRow, "id" | "kind" | "cursor" | "inside">): void {
    this.#db.insert(subscribers).values(subscriber).onConflictDoNothing().run();
  }

  /** Moves the cursor; whatever failed before is forgotten. */
  advance(id: string, place: Pick<SubscriberRow, "cursor" | "inside">): void {
    this.#db
      .update(subscribers)
      .set({ ...place, failures: 0, retryAt: null })
      .where(eq(subscribers.id, id))
      .run();
  }

  fail(id: string, failures: number, retryAt: number): void {
    this.#db.update(subscribers).set({ failures, retryAt }).where(eq(subscribers.id, id)).run();
  }

  remove(id: string): void {
    this.#db.delete(subscribers).where(eq(subscribers.id, id)).run();
  }

  /** When the first of those that failed is due. */
  nextRetry(): number | undefined {
    const row = this.#db
      .select({ retryAt: subscribers.retryAt })
      .from(subscribers)
      .where(isNotNull(subscribers.retryAt))
      .orderBy(asc(subscribers.retryAt))
      .limit(1)
      .get();
    return row?.retryAt ?? undefined;
  }
}
