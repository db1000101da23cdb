import { and, count, eq, gte, lt, or, sql } from "drizzle-orm";
import type { BegunRequest, RequestName } from "../protocol/rpc.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import type { Timers } from "../timers/timers.ts";
import {
  maxAnswerDatabaseBytes,
  maxRequests,
  maxStoredAnswerCharacters,
  requestLeaseMs,
  requestLifetimeMs,
} from "./bounds.ts";
import { requests } from "./schema.ts";

/**
 * Requests with an `Idempotency-Key`, per principal.
 *
 * Invariants
 * 1. Of two requests with one key, the second does nothing while the first is under way, and gets its answer after.
 * 2. A key is bound to the first body that came with it, also when the first request never ended.
 * 3. Each caller has room of its own: nobody is refused for what others have sent.
 */
const named = ({ principal, key }: RequestName) => and(eq(requests.principal, principal), eq(requests.key, key));

/** The caller that a principal's requests count for: a secret key, for everybody that it acts as. */
const callerOf = (principal: string): string => principal.split(":", 2).join(":");

const ofCaller = (caller: string) =>
  or(eq(requests.principal, caller), and(gte(requests.principal, `${caller}:`), lt(requests.principal, `${caller};`)));

export class Requests {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #databaseBytes: () => number;
  /** How many each caller has at most: counted once, then kept in step, so that a request does not read them all. */
  readonly #counts = new Map<string, number>();

  constructor(db: Database, clock: Clock, databaseBytes: () => number) {
    this.#db = db;
    this.#clock = clock;
    this.#databaseBytes = databaseBytes;
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
    } else if (!known) this.#makeRoom(callerOf(name.principal));
    const fresh = { bodyHash, status: null, body: null, begunAt: now };
    this.#db
      .insert(requests)
      .values({ ...name, ...fresh })
      .onConflictDoUpdate({ target: [requests.principal, requests.key], set: fresh })
      .run();
    return {};
  }

  end(name: RequestName, status: number, body: string): void {
    if (body.length > maxStoredAnswerCharacters || this.#databaseBytes() >= maxAnswerDatabaseBytes) return;
    this.#db.update(requests).set({ status, body }).where(named(name)).run();
  }

  /** It was refused: the same key may be used again, with any body. */
  abandon(name: RequestName): void {
    const abandoned = this.#db
      .delete(requests)
      .where(and(named(name), sql`${requests.status} is null`))
      .returning({ key: requests.key })
      .all();
    const caller = callerOf(name.principal);
    const own = this.#counts.get(caller);
    if (own !== undefined) this.#counts.set(caller, own - abandoned.length);
  }

  /** Forgets what is past its time; answers when the next will be, if any is left. */
  prune(): number | undefined {
    this.#db
      .delete(requests)
      .where(lt(requests.begunAt, this.#clock.now() - requestLifetimeMs))
      .run();
    this.#counts.clear();
    const oldest = this.#db
      .select({ at: sql<number | null>`min(${requests.begunAt})` })
      .from(requests)
      .get()?.at;
    return oldest === null || oldest === undefined ? undefined : oldest + requestLifetimeMs;
  }

  #makeRoom(caller: string): void {
    const known = this.#counts.get(caller);
    const own = known ?? this.#db.select({ count: count() }).from(requests).where(ofCaller(caller)).get()?.count ?? 0;
    if (own >= maxRequests) {
      throw new ColloquyError(
        "limit_reached",
        `At most ${maxRequests} of your requests with an Idempotency-Key are kept for a day (maxRequests): send without one.`,
      );
    }
    this.#counts.set(caller, own + 1);
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
