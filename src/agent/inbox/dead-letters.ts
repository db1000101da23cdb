import { and, count, desc, eq, type SQL } from "drizzle-orm";
import type { Clock } from "../../shared/clock.ts";
import type { Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { log } from "../../shared/log.ts";
import { maxDeadLetters, maxInboxEvents } from "../bounds.ts";
import type { Identity } from "../identity.ts";
import { inbox } from "../schema.ts";
import type { Spaces } from "../spaces.ts";
import type { Inbox, InboxRow } from "./inbox.ts";

/**
 * The dead events of the inbox. Runs with them have failed for good; a person retries or discards them.
 *
 * Invariants
 * 1. When a run has ended, at most `maxDeadLetters` are kept. Those that died first are evicted: messages to their
 *    space's history, as the agent is told; others to the log, which keeps their ids.
 * 2. They take no room from new events (`Inbox.isFull`).
 */
export class DeadLetters {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #inbox: Inbox;
  readonly #spaces: Spaces;
  readonly #identity: Identity;

  constructor(db: Database, clock: Clock, around: { inbox: Inbox; spaces: Spaces; identity: Identity }) {
    this.#db = db;
    this.#clock = clock;
    this.#inbox = around.inbox;
    this.#spaces = around.spaces;
    this.#identity = around.identity;
  }

  /** Makes one pending again, without attempts. Throws `not_found`, and `conflict` for an event that is not dead. */
  retry(eventId: string): InboxRow {
    this.#inbox.forget();
    // A retried event wakes the agent, even if it did not before.
    const revived = this.#revive(eq(inbox.eventId, eventId), { wakes: true }).returning().get();
    if (!revived) throw this.#refusal(eventId, "retried");
    return revived;
  }

  /** Makes all of them pending again, even beyond `maxInboxEvents`. Answers how many. */
  retryAll(): number {
    this.#inbox.forget();
    return this.#revive().returning({ seq: inbox.seq }).all().length;
  }

  /** Deletes one, in a transaction. Throws `not_found`, and `conflict` for an event that is not dead. */
  discard(eventId: string): void {
    const row = this.#db
      .delete(inbox)
      .where(and(isDead, eq(inbox.eventId, eventId)))
      .returning()
      .get();
    if (!row) throw this.#refusal(eventId, "discarded");
    if (row.data.type !== "space_message" || this.#identity.get().config.continuity !== "timeline") return;
    const { spaceId, seq } = row.data.delivered.message;
    this.#spaces.settle(spaceId, { acknowledged: [seq], shownTo: 0 });
  }

  /** Evicts those beyond `maxDeadLetters`, in the transaction that made events dead. */
  evict(): void {
    const dead = this.#db.select({ rows: count() }).from(inbox).where(isDead).get()?.rows ?? 0;
    if (dead <= maxDeadLetters) return;
    const { id: agentId } = this.#identity.get();
    const first = this.#db
      .select({ seq: inbox.seq })
      .from(inbox)
      .where(isDead)
      .orderBy(desc(inbox.retryAt), desc(inbox.seq))
      .limit(maxInboxEvents)
      .offset(maxDeadLetters)
      .all();
    const rows = this.#inbox.rows(first.map(({ seq }) => seq));
    this.#spaces.leaveAllToHistory(this.#inbox.leave(rows));
    const others = rows.filter(({ type }) => type !== "space_message");
    this.#inbox.acknowledge(others.map(({ seq }) => seq));
    for (const { eventId, type, lastError } of others) {
      log.warn("event.let_go", { agentId, eventId, type, code: lastError?.code });
    }
  }

  #revive(which?: SQL, more: { wakes?: true } = {}) {
    const anew = { status: "pending", attempts: 0, retryAt: this.#clock.now(), ...more } as const;
    return this.#db.update(inbox).set(anew).where(and(isDead, which));
  }

  #refusal(eventId: string, done: "retried" | "discarded"): ColloquyError {
    const waiting = this.#inbox.byEventId(eventId);
    return waiting
      ? new ColloquyError("conflict", `only a dead event can be ${done}; this one is ${waiting.status}`)
      : new ColloquyError("not_found", "there is no such event in the inbox");
  }
}

const isDead = eq(inbox.status, "dead");
