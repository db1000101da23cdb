import { and, asc, count, desc, eq, gt, isNull, lt, lte, min, ne, not, or, type SQL, sql } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { Root } from "../../protocol/rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, countOf, type Database, prepared } from "../../shared/database.ts";
import { jsonArrays } from "../../shared/json-arrays.ts";
import {
  maxAttempts,
  maxBatchAttempts,
  maxBatchEvents,
  maxDeadLetters,
  maxInboxEvents,
  maxOverheardBytes,
  maxOverheardEvents,
} from "../bounds.ts";
import type { Failure, InboxData } from "../records.ts";
import { events, heardAs, type InboxRow, inbox, overheard } from "../schema.ts";
import { fitting } from "./batch.ts";

/**
 * The agent's durable queue of events. What wakes it lies in `inbox`, what does not in `overheard`, until a run takes it.
 *
 * Invariants
 * 1. An event id is taken in once, however often it is delivered (R7): a message by the cursor of its space, any other
 *    by an index.
 * 2. A taken event belongs to one run. The transaction that ends the run acknowledges it, or makes it pending again
 *    (R1). After `maxAttempts` failed runs it is dead.
 * 3. Batches are taken in the order of arrival, which `seq` is in both tables.
 * 4. An event that a run took before has a `retryAt`. It wakes again if it did before, and its wake is not counted
 *    again (B1).
 */
type Changes = SQLiteUpdateSetSource<typeof inbox>;

/** `wakes`: it asks for a run. */
export type NewEvent = { eventId: string; data: InboxData; wakes: boolean };

/** Whether a run took the event before. */
export const isRetry = (row: Pick<InboxRow, "retryAt">): boolean => row.retryAt !== null;

/** The events that a run takes, oldest first, and the messages that it passes over. */
export type Batch = { rows: InboxRow[]; passed: InboxRow[] };

const isMessage = ({ type }: InboxRow): boolean => type === "space_message";

export const rootOf = ({ data }: Pick<InboxRow, "data">): Root =>
  data.type === "space_message" ? data.delivered.root : data.root;

/**
 * Whether the event is an answer to the agent, which always wakes it. An expired or late result is not one: a server
 * that is always late would make the agent ask for ever (B1).
 */
export const isAnswer = (data: InboxData): boolean => data.type === "tool_result" && !data.expired && !data.late;

/** The same of rows. */
const isAnswerRow = sql`(${inbox.type} = 'tool_result' and
  coalesce(json_extract(${inbox.data}, '$.expired'), json_extract(${inbox.data}, '$.late')) is null)`;

/** The event may be taken now. */
const isReady = (from: typeof inbox | typeof events) =>
  and(eq(from.status, "pending"), or(isNull(from.retryAt), lte(from.retryAt, sql.placeholder("now"))));

/** The event came from this space, or is the result of a call that was made there. */
const isOfSpace = sql`coalesce(json_extract(${events.data}, '$.delivered.message.spaceId'), json_extract(${events.data}, '$.activeSpaceId')) = ${sql.placeholder("spaceId")}`;

const isDead = eq(inbox.status, "dead");

/** The columns of `event`, of the rows of one JSON array. */
const added = sql`select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, ${sql.placeholder("receivedAt")}`;
const fromRows = sql`from json_each(${sql.placeholder("rows")}) where true`;

export type Inbox = ReturnType<typeof createInbox>;

export const createInbox = (db: Database, clock: Clock) => {
  const newest = prepared(() =>
    db
      .select({
        seq: sql<number>`max(coalesce((select max(seq) from inbox), 0), coalesce((select max(seq) from overheard), 0))`,
      })
      .from(sql`(select 1)`),
  );
  const adding = prepared(() =>
    db.insert(inbox).select(sql`${added}, true, 0, 'pending', null, null ${fromRows}`).onConflictDoNothing(),
  );
  const hear = prepared(() => db.insert(overheard).select(sql`${added} ${fromRows}`));
  /** Rows of both tables. */
  const eventsWhere = (where: SQL | undefined, order: SQL, limit: number) =>
    prepared(() => db.select().from(events).where(where).orderBy(order).limit(limit));
  const pendingOnes = eventsWhere(isReady(events), asc(events.seq), maxBatchEvents);
  const earlier = eventsWhere(
    and(isReady(events), lt(events.seq, sql.placeholder("seq"))),
    desc(events.seq),
    maxInboxEvents,
  );
  const heardIn = eventsWhere(and(isReady(events), not(events.wakes), isOfSpace), asc(events.seq), maxOverheardEvents);
  /** Messages have no index for it: who asks for one has just taken it in. */
  const oneByEventId = eventsWhere(eq(events.eventId, sql.placeholder("eventId")), desc(events.seq), 1);
  const wakingOne = prepared(() => {
    const where = and(isReady(inbox), inbox.wakes);
    return db.select().from(inbox).where(where).orderBy(asc(inbox.seq)).limit(1);
  });
  /** The newest overheard event that lies beyond the bounds. */
  const beyond = prepared(() =>
    db
      .select({
        seq: sql<number | null>`(select max(seq) from (
          select seq, row_number() over newest as place, sum(octet_length(data)) over newest as bytes
          from overheard window newest as (order by seq desc)
        ) where place > ${sql.placeholder("most")} or bytes > ${sql.placeholder("mostBytes")})`,
      })
      .from(sql`(select 1)`),
  );
  const unprocessedIn = prepared(() => {
    const seq = sql<number>`json_extract(${events.data}, '$.delivered.message.seq')`;
    const where = and(eq(events.type, "space_message"), isOfSpace);
    return db.select({ seq }).from(events).where(where);
  });
  const counting = prepared(() => db.select({ rows: count() }).from(inbox));

  /** Changes these events. */
  const change = (seqs: number[], changes: Changes): void => {
    if (seqs.length > 0) db.update(inbox).set(changes).where(among(inbox.seq, seqs)).run();
  };

  return {
    /** Whether so many more events are too many. Dead and overheard ones do not count. */
    isFull(adding: number): boolean {
      const rows = counting().get()?.rows ?? 0;
      // Counting the dead ones reads all rows, which is rarely needed.
      return rows + adding > maxInboxEvents && rows - this.counts().dead + adding > maxInboxEvents;
    },

    /** Takes events in, in their order, except those whose ids are there already. */
    addAll(added: NewEvent[]): void {
      if (added.length === 0) return;
      const receivedAt = clock.now();
      const first = (newest().get()?.seq ?? 0) + 1;
      const rows = added.map(({ eventId, data, wakes }, index) => {
        return { wakes, row: [first + index, eventId, data.type, JSON.stringify(data), rootOf({ data }).id] };
      });
      const insert = (wakes: boolean): void => {
        const query = wakes ? adding() : hear();
        const all = rows.flatMap((each) => (each.wakes === wakes ? [each.row] : []));
        for (const some of jsonArrays(all)) query.run({ rows: some, receivedAt });
      };
      insert(true);
      insert(false);
    },

    /** What else came of these roots wakes nobody any more. */
    mute(rootIds: string[]): void {
      const which = and(
        eq(inbox.status, "pending"),
        isNull(inbox.retryAt),
        among(inbox.rootId, rootIds),
        not(isAnswerRow),
      );
      const { seq, eventId, type, data, rootId, receivedAt } = inbox;
      db.insert(overheard)
        .select(db.select({ seq, eventId, type, data, rootId, receivedAt }).from(inbox).where(which))
        .run();
      db.delete(inbox).where(which).run();
    },

    /** The oldest of more than `maxOverheardEvents`, or than `maxOverheardBytes` hold. */
    overheardBeyond(): InboxRow[] {
      const upTo = beyond().get({ most: maxOverheardEvents, mostBytes: maxOverheardBytes })?.seq ?? null;
      if (upTo === null) return [];
      return db.select(heardAs("pending")).from(overheard).where(lte(overheard.seq, upTo)).orderBy(overheard.seq).all();
    },

    /** The dead ones beyond `maxDeadLetters` that died first. */
    deadBeyond(): InboxRow[] {
      return db
        .select()
        .from(inbox)
        .where(isDead)
        .orderBy(desc(inbox.retryAt), desc(inbox.seq))
        .limit(maxInboxEvents)
        .offset(maxDeadLetters)
        .all();
    },

    /**
     * The events that the next run would take: all pending ones, oldest first, as far as they fit `maxTokens`. An event
     * whose batch has failed `maxBatchAttempts` times is taken alone, so that it spoils no other. An event that wakes is
     * in the batch: if too many overheard messages lie before it, the oldest are passed over.
     */
    nextBatch(maxTokens: number): Batch {
      const now = clock.now();
      const pending = pendingOnes().all({ now });
      const suspect = pending.find((row) => row.attempts >= maxBatchAttempts);
      if (suspect) return { rows: [suspect], passed: [] };
      const rows = fitting(pending, maxTokens);
      if (rows.length === pending.length && pending.length < maxBatchEvents) return { rows, passed: [] };
      const waking = this.nextWaking();
      if (!waking || rows.some(({ seq }) => seq === waking.seq)) return { rows, passed: [] };
      const newestFirst = [waking, ...earlier().all({ seq: waking.seq, now })];
      const fit = fitting(newestFirst.slice(0, maxBatchEvents), maxTokens);
      return { rows: fit.toReversed(), passed: newestFirst.slice(fit.length).filter(isMessage) };
    },

    /** The first event that asks for a run. */
    nextWaking: (): InboxRow | undefined => wakingOne().get({ now: clock.now() }),

    /** The waiting events of a space that ask for no run. */
    overheardIn: (spaceId: string): InboxRow[] => heardIn().all({ spaceId, now: clock.now() }),

    /** The `seq` in the space's log of each message that no run has acknowledged yet. */
    unprocessed(spaceId: string): Set<number> {
      const rows = unprocessedIn().all({ spaceId });
      return new Set(rows.map(({ seq }) => seq));
    },

    /** When the next event is due that pauses after a failure, in milliseconds since the epoch. */
    nextRetryAt(): number | undefined {
      const row = db
        .select({ at: min(inbox.retryAt) })
        .from(inbox)
        .where(and(eq(inbox.status, "pending"), gt(inbox.retryAt, clock.now())))
        .get();
      return row?.at ?? undefined;
    },

    /** How many events wait to be taken or tried again, and how many are dead. */
    counts(): { events: number; dead: number } {
      const rows = db.select({ status: events.status, rows: count() }).from(events).groupBy(events.status).all();
      const of = (status: InboxRow["status"]): number => rows.find((row) => row.status === status)?.rows ?? 0;
      return { events: of("pending"), dead: of("dead") };
    },

    rows(seqs: number[]): InboxRow[] {
      if (seqs.length === 0) return [];
      return db.select().from(inbox).where(among(inbox.seq, seqs)).orderBy(asc(inbox.seq)).all();
    },

    /** Pending events that arrived after `seq`, the first `limit` of them, and how many there are in all. */
    arrivedAfter(seq: number, limit: number): { rows: InboxRow[]; total: number } {
      const where = and(eq(events.status, "pending"), gt(events.seq, seq));
      const rows = db.select().from(events).where(where).orderBy(asc(events.seq)).limit(limit).all();
      if (rows.length < limit) return { rows, total: rows.length };
      return { rows, total: countOf(db, events, where) };
    },

    /** Whether an event of this plan waits or is being handled. */
    holdsPlan(planId: string): boolean {
      const isPlans = sql`json_extract(${inbox.data}, '$.planId') = ${planId}`;
      const row = db
        .select({ seq: inbox.seq })
        .from(inbox)
        .where(and(eq(inbox.type, "plan"), ne(inbox.status, "dead"), isPlans))
        .get();
      return row !== undefined;
    },

    /** Gives the events to a run. Overheard ones lie in the inbox from now on, and wake nobody there either. */
    take(rows: InboxRow[]): void {
      const seqs = rows.map(({ seq }) => seq);
      change(seqs, { status: "taken" });
      if (rows.every(({ wakes }) => wakes)) return;
      const heard = among(overheard.seq, seqs);
      db.insert(inbox)
        .select(db.select(heardAs("taken")).from(overheard).where(heard))
        .run();
      db.delete(overheard).where(heard).run();
    },

    acknowledge(seqs: number[]): void {
      if (seqs.length > 0) db.delete(inbox).where(among(inbox.seq, seqs)).run();
    },

    /** Deletes events that no run took. */
    drop(rows: InboxRow[]): void {
      const seqs = rows.map(({ seq }) => seq);
      this.acknowledge(seqs);
      db.delete(overheard).where(among(overheard.seq, seqs)).run();
    },

    /** Makes the events pending again without an attempt: the run did not fail because of them (a spent budget). */
    requeue: (seqs: number[]): void => change(seqs, { status: "pending", retryAt: clock.now() }),

    /** Makes the events pending again as if no run had taken them. */
    release: (seqs: number[]): void => change(seqs, { status: "pending" }),

    /** Makes the events of a failed run pending again, or dead after `maxAttempts`. */
    failed(seqs: number[], error: Failure, pauseMs: (attempts: number) => number): void {
      const now = clock.now();
      // The events of a batch are tried again together, after the longest of their pauses.
      const tryAt = now + pauseMs(Math.max(0, ...this.rows(seqs).map(({ attempts }) => attempts)) + 1);
      const orDead = (alive: string | number, dead: string | number) =>
        sql`case when ${inbox.attempts} + 1 < ${maxAttempts} then ${alive} else ${dead} end`;
      change(seqs, {
        attempts: sql`${inbox.attempts} + 1`,
        lastError: error,
        status: orDead("pending", "dead"),
        retryAt: orDead(tryAt, now),
      });
    },

    /** Counts an attempt of a run that keeps the events. Answers the fewest attempts of any of them. */
    recordAttempt(seqs: number[], error: Failure): number {
      change(seqs, { attempts: sql`${inbox.attempts} + 1`, lastError: error });
      return Math.min(maxAttempts, ...this.rows(seqs).map(({ attempts }) => attempts));
    },

    /** Makes the events dead, whatever their attempts. */
    deadLetter(seqs: number[], error: Failure): void {
      change(seqs, { status: "dead", lastError: error, retryAt: clock.now() });
    },

    /** Makes dead events pending again, without attempts: one, which then wakes the agent even if it did not before, or all. */
    revive(eventId?: string): InboxRow[] {
      const anew = { status: "pending", attempts: 0, retryAt: clock.now() } as const;
      return db
        .update(inbox)
        .set(eventId === undefined ? anew : { ...anew, wakes: true })
        .where(and(isDead, eventId === undefined ? undefined : eq(inbox.eventId, eventId)))
        .returning()
        .all();
    },

    byEventId: (eventId: string): InboxRow | undefined => oneByEventId().get({ eventId }),

    page(after: number, limit: number, status?: InboxRow["status"]): InboxRow[] {
      const where = and(gt(events.seq, after), status && eq(events.status, status));
      return db.select().from(events).where(where).orderBy(asc(events.seq)).limit(limit).all();
    },
  };
};
