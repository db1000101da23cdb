import { and, asc, eq, isNotNull, lt, ne, sql } from "drizzle-orm";
import { type Database, prepared } from "../../shared/database.ts";
import { subscribers } from "../schema.ts";

export type SubscriberRow = typeof subscribers.$inferSelect;

/** The subscriber that is not a member: the workspace's index of spaces. */
export const indexSubscriber = "index";

/** Who follows the log, each with its cursor. */
export class Subscribers {
  readonly #db: Database;
  readonly #one = prepared(() =>
    this.#db
      .select()
      .from(subscribers)
      .where(eq(subscribers.id, sql.placeholder("id")))
      .prepare(),
  );
  readonly #behind = prepared(() =>
    this.#db
      .select()
      .from(subscribers)
      .where(lt(subscribers.cursor, sql.placeholder("seq")))
      .prepare(),
  );
  readonly #otherAgent = prepared(() =>
    this.#db
      .select({ id: subscribers.id })
      .from(subscribers)
      .where(and(eq(subscribers.kind, "agent"), ne(subscribers.id, sql.placeholder("agentId"))))
      .limit(1)
      .prepare(),
  );
  readonly #advance = prepared(() =>
    this.#db
      .update(subscribers)
      .set({
        cursor: sql`${sql.placeholder("cursor")}`,
        inside: sql`${sql.placeholder("inside")}`,
        failures: 0,
        retryAt: null,
      })
      .where(eq(subscribers.id, sql.placeholder("id")))
      .prepare(),
  );
  readonly #nextRetry = prepared(() =>
    this.#db
      .select({ retryAt: subscribers.retryAt })
      .from(subscribers)
      .where(isNotNull(subscribers.retryAt))
      .orderBy(asc(subscribers.retryAt))
      .limit(1)
      .prepare(),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  find(id: string): SubscriberRow | undefined {
    return this.#one().get({ id });
  }

  /** Those whose cursor has not come to `seq`. */
  behind(seq: number): SubscriberRow[] {
    return this.#behind().all({ seq });
  }

  anyAgentBut(agentId: string): boolean {
    return this.#otherAgent().get({ agentId }) !== undefined;
  }

  any(): boolean {
    return this.#db.select({ id: subscribers.id }).from(subscribers).limit(1).get() !== undefined;
  }

  /** Begins to follow after `cursor`; one that still follows (it left and came back) goes on from where it is. */
  insert(subscriber: Pick<SubscriberRow, "id" | "kind" | "cursor" | "inside">): void {
    this.#db.insert(subscribers).values(subscriber).onConflictDoNothing().run();
  }

  /** Moves the cursor; whatever failed before is forgotten. */
  advance(id: string, { cursor, inside }: Pick<SubscriberRow, "cursor" | "inside">): void {
    this.#advance().run({ id, cursor, inside: Number(inside) });
  }

  fail(id: string, failures: number, retryAt: number): void {
    this.#db.update(subscribers).set({ failures, retryAt }).where(eq(subscribers.id, id)).run();
  }

  remove(id: string): void {
    this.#db.delete(subscribers).where(eq(subscribers.id, id)).run();
  }

  /** When the first of those that failed is due. */
  nextRetry(): number | undefined {
    return this.#nextRetry().get()?.retryAt ?? undefined;
  }
}
