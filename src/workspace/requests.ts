import { and, eq, gte, isNotNull, isNull, like, lt, min, or, sql } from "drizzle-orm";
import type { BegunRequest, RequestName } from "../protocol/request-rpc.ts";
import type { Clock } from "../shared/clock.ts";
import { countOf, type Database } from "../shared/database.ts";
import { ColloquyError } from "../shared/errors.ts";
import {
  maxAnswerDatabaseBytes,
  maxRequests,
  maxStoredAnswerCharacters,
  requestLeaseMs,
  requestLifetimeMs,
} from "./bounds.ts";
import { requests } from "./schema.ts";

const named = ({ principal, key }: RequestName) => and(eq(requests.principal, principal), eq(requests.key, key));

/** The caller that a principal's requests count for: a secret key, for everybody that it acts as. */
const callerOf = (principal: string): string => principal.split(":", 2).join(":");

const isOfCaller = (caller: string) =>
  or(eq(requests.principal, caller), and(gte(requests.principal, `${caller}:`), lt(requests.principal, `${caller};`)));

/** The status of a request whose answer told something that was deleted since. */
const deletedStatus = 410;

export type Requests = ReturnType<typeof createRequests>;

/**
 * Requests with an `Idempotency-Key`, per principal.
 *
 * Invariants
 * 1. Of two requests with one key, the second does nothing while the first is under way, and gets its answer after.
 * 2. A key is bound to the first body that came with it, also when the first request never ended.
 * 3. Each caller has room of its own: nobody is refused for what others have sent.
 */
export const createRequests = (db: Database, clock: Clock, databaseBytes: () => number) => {
  /** How many each caller has at most: counted once, then kept in step, so that a request does not read them all. */
  const counts = new Map<string, number>();

  const makeRoom = (caller: string): void => {
    const own = counts.get(caller) ?? countOf(db, requests, isOfCaller(caller));
    if (own >= maxRequests) {
      throw new ColloquyError(
        "limit_reached",
        `At most ${maxRequests} of your requests with an Idempotency-Key are kept for a day (maxRequests): send without one.`,
      );
    }
    counts.set(caller, own + 1);
  };

  return {
    /** The answer to give again, or nothing: then the caller is to do it, and to end or abandon it. */
    begin(name: RequestName, bodyHash: string): BegunRequest {
      const now = clock.now();
      const known = db.select().from(requests).where(named(name)).get();
      if (known && known.begunAt + requestLifetimeMs > now) {
        const { status, body } = known;
        if (known.bodyHash !== bodyHash) {
          const detail = "This Idempotency-Key came with another body: send a new key.";
          throw new ColloquyError("idempotency_mismatch", detail);
        }
        if (status === deletedStatus) {
          throw new ColloquyError("gone", "What came of this Idempotency-Key was deleted: send a new key.");
        }
        if (status !== null) return { replay: { status, body: body ?? "" } };
        if (known.begunAt + requestLeaseMs > now) {
          const detail = "The first request with this key is under way: try again soon.";
          throw new ColloquyError("idempotency_in_progress", detail);
        }
      } else if (!known) makeRoom(callerOf(name.principal));
      const fresh = { bodyHash, status: null, body: null, begunAt: now };
      db.insert(requests)
        .values({ ...name, ...fresh })
        .onConflictDoUpdate({ target: [requests.principal, requests.key], set: fresh })
        .run();
      return {};
    },

    end(name: RequestName, status: number, body: string): void {
      if (body.length > maxStoredAnswerCharacters || databaseBytes() >= maxAnswerDatabaseBytes) return;
      db.update(requests).set({ status, body }).where(named(name)).run();
    },

    /** The answers that hold a secret. */
    sealed: (): (RequestName & { body: string })[] =>
      db
        .select()
        .from(requests)
        .where(like(requests.body, "v1.%"))
        .all()
        .map(({ principal, key, body }) => ({ principal, key, body: body ?? "" })),

    /** Sealed anew, if it is there still. */
    replace(name: RequestName, body: string, fresh: string): void {
      const isIt = and(named(name), eq(requests.body, body));
      db.update(requests).set({ body: fresh }).where(isIt).run();
    },

    /** Drops the bodies of kept answers that tell of what was deleted at this path. In a transaction. */
    forgetAt(path: string): void {
      const at = path.lastIndexOf("/");
      const { key, bodyHash, body, status } = requests;
      const isBelow = sql`instr(${key} || ${bodyHash}, ${`${path}/`}) > 0`;
      const isNamed = sql`instr(${body}, ${JSON.stringify(path.slice(at + 1))}) > 0`;
      const isMade = and(sql`instr(${key}, ${`${path.slice(0, at)} `}) > 0`, isNamed);
      const isIts = and(isNotNull(status), or(isBelow, isMade));
      db.update(requests).set({ status: deletedStatus, body: null }).where(isIts).run();
    },

    /** Forgets what an entity asked for, and the answers that name it. Answers how many there were. In a transaction. */
    forgetEntity(id: string): number {
      const { principal, body } = requests;
      const isIts = sql`instr(${principal}, ${id}) > 0 or instr(coalesce(${body}, ''), ${id}) > 0`;
      counts.clear();
      return db.delete(requests).where(isIts).returning({ key: requests.key }).all().length;
    },

    /** It was refused: the same key may be used again, with any body. */
    abandon(name: RequestName): void {
      const isOpen = and(named(name), isNull(requests.status));
      const abandoned = db.delete(requests).where(isOpen).returning().all();
      const caller = callerOf(name.principal);
      const own = counts.get(caller);
      if (own !== undefined) counts.set(caller, own - abandoned.length);
    },

    /** Forgets what is past its time; answers when the next will be, if any is left. */
    prune(): number | undefined {
      const isPast = lt(requests.begunAt, clock.now() - requestLifetimeMs);
      db.delete(requests).where(isPast).run();
      counts.clear();
      const oldest = db
        .select({ at: min(requests.begunAt) })
        .from(requests)
        .get();
      return typeof oldest?.at === "number" ? oldest.at + requestLifetimeMs : undefined;
    },
  };
};
