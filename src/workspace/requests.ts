import { and, count, eq, lt, sql } from "drizzle-orm";
import type { BegunRequest, RequestName } from "../protocol/rpc.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Timers } from "../timers/timers.ts";
import { maxRequests, maxStoredAnswerCharacters, requestLeaseMs, requestLifetimeMs } from "./bounds.ts";
import { requests } from "./schema.ts";

/**
 * Requests with an `Idempotency-Key`, per principal.
 *
 * Invariants
 * 1. Of two requests with one key, the second does nothing while the first is under way, and gets its answer after.
 * 2. A key is bound to the first body that came with it, also when the first request never ended.
 */
const named = ({ principal, key }: RequestName) => and(eq(requests.principal, principal), eq(requests.key, key));

export class Requests {
  readonly #db: Database;
  readonly #clock: Clock;
  /** How many there are at most: counted once, then kept in step, so that a request does not read them all. */
  #count: number | undefined;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** The answer to give again, or nothing: then the caller is to do it, and to end or abandon it. */
  begin(name: RequestName, bodyHash: string): BegunRequest {
    const now = this.#clock.now();
    const known = this.#db.select().from(requests).where(named(name)).get();
    if (known && known.begunAt + requestLifetimeMs > now) {
      if (known.bodyHash !== bodyHash) {
        throw new ColloquyError("idempotency_mismatch", "This Idempotency-Key came with another body: send a new key.");
      }
      if (known.status !== null) return { replay: { status: known.status, body: known.body ?? "" } };
      if (known.begunAt + requestLeaseMs > now) {
        throw new ColloquyError(
          "idempotency_in_progress",
          "The first request with this key is under way: try again soon.",
        );
      }
    } else if (!known) this.#makeRoom();
    const fresh = { bodyHash, status: null, body: null, begunAt: now };
    this.#db
      .insert(requests)
      .values({ ...name, ...fresh })
      .onConflictDoUpdate({ target: [requests.principal, requests.key], set: fresh })
      .run();
    return {};
  }

  end(name: RequestName, status: number, body: string): void {
    if (body.length > maxStoredAnswerCharacters) return;
    this.#db.update(requests).set({ status, body }).where(named(name)).run();
  }

  /** It was refused: the same key may be used again, with any body. */
  abandon(name: RequestName): void {
    const abandoned = this.#db
      .delete(requests)
      .where(and(named(name), sql`${requests.status} is null`))
      .returning({ key: requests.key })
      .all();
    if (this.#count !== undefined) this.#count -= abandoned.length;
  }

  /** Forgets what is past its time; answers when the next will be, if any is left. */
  prune(): number | undefined {
    this.#db
      .delete(requests)
      .where(lt(requests.begunAt, this.#clock.now() - requestLifetimeMs))
      .run();
    this.#count = undefined;
    const oldest = this.#db
      .select({ at: sql<number | null>`min(${requests.begunAt})` })
      .from(requests)
      .get()?.at;
    return oldest === null || oldest === undefined ? undefined : oldest + requestLifetimeMs;
  }

  #makeRoom(): void {
    this.#count ??= this.#db.select({ count: count() }).from(requests).get()?.count ?? 0;
    if (this.#count < maxRequests) {
      this.#count += 1;
      return;
    }
    throw new ColloquyError(
      "limit_reached",
      `At most ${maxRequests} requests with an Idempotency-Key are kept for a day (maxRequests): send without one.`,
    );
  }
}

/** The timer's name. */
export const requestsTimer = "requests";

/** Forgets what is past its time, and sets the timer to when the next will be. */
export const pruneRequests = (requests: Requests, timers: Timers): void => {
  const next = requests.prune();
  if (next === undefined) timers.clear(requestsTimer);
  else timers.set(requestsTimer, next);
};
