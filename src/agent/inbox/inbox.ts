import { and, asc, count, desc, eq, gt, isNull, lt, lte, min, ne, not, type SQL, sql } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import { continuityFacts } from "../../protocol/continuity.ts";
import type { Root } from "../../protocol/rpc.ts";
import { among, countOf, type Database, prepared, Remembered } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { jsonArrays } from "../../shared/json-arrays.ts";
import { log } from "../../shared/log.ts";
import {
  maxAttempts,
  maxBatchAttempts,
  maxBatchEvents,
  maxDeadLetters,
  maxInboxEvents,
  maxOverheardBytes,
  maxOverheardEvents,
} from "../bounds.ts";
import type { CallServices } from "../calls/calls.ts";
import type { Failure, InboxData, Question } from "../records.ts";
import { events, heardAs, type InboxRow, inbox, overheard } from "../schema.ts";
import { type Batch, batchOf, fitting, isAnswer } from "./batch.ts";
import {
  answersQuestion,
  isAnswerRow,
  isDead,
  isLetOut,
  isMessageOfSpace,
  isReadyAnswer,
  isReadyEvent,
  isReadyUnheeded,
  isReadyWaking,
  messageSeq,
  newestBeyond,
  newestSeq,
} from "./event-conditions.ts";
import { createHeldEvents } from "./held-events.ts";
import type { OutOfBudget } from "./out-of-budget.ts";
import type { Roots } from "./roots.ts";

/**
 * The agent's durable queue of events. Those that wake it lie in `inbox`, others in `overheard` until a run takes them.
 *
 * Invariants
 * 1. An event id is taken in once, however often it is delivered (R7). The keys are a message's place in its space, a
 *    service's dedupe key, a plan's due time and a result's phase of its call.
 * 2. A taken event belongs to one run, an answer to each run that waits for it. The transaction that ends the last of
 *    them acknowledges it, or makes it pending again (R1). After `maxAttempts` failed runs it is dead: no run takes it any more, until a person retries or discards it.
 * 3. Batches are taken in the order of arrival, which is `seq`. Answers to the agent's own question alone come before it.
 * 4. An event that a run took before has a `retryAt`. It wakes again if it did before, and its wake is counted once (B1).
 * 5. What wakes arms the watchdog in its own transaction. A root wakes no more than it may, except by an answer (B1).
 * 6. What one person's share has no room for is held (`held-events.ts`), and in no batch before (C11).
 */
type Changes = SQLiteUpdateSetSource<typeof inbox>;

/**
 * `wakes`: it asks for a run. `isTaken`: a run that waits for it has it at once. `isAwaited`: it wakes with other answers.
 */
export type NewEvent = { eventId: string; data: InboxData; wakes: boolean; isTaken?: boolean; isAwaited?: boolean };

export const rootOf = ({ data }: Pick<InboxRow, "data">): Root =>
  data.type === "space_message" ? data.delivered.root : data.root;

/** The columns of `event`, of the rows of one JSON array. Three more follow in it: `wakes`, `status` and `retry_at`. */
const added = sql`select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, ${sql.placeholder("receivedAt")}`;
const fromRows = sql`from json_each(${sql.placeholder("rows")}) where true`;

export type Inbox = ReturnType<typeof createInbox>;

type Around = Pick<CallServices, "clock" | "identity" | "spaces" | "armLoop"> & {
  roots: Roots;
  outOfBudget: OutOfBudget;
};

const newest = prepared((db) => db.select({ seq: newestSeq }).from(sql`(select 1)`));
const adding = prepared((db) =>
  db
    .insert(inbox)
    .select(sql`${added}, value ->> 5, 0, value ->> 6, null, value ->> 7 ${fromRows}`)
    .onConflictDoNothing(),
);
const hear = prepared((db) => db.insert(overheard).select(sql`${added} ${fromRows}`));
/** Rows of both tables. */
const eventsWhere = (where: SQL | undefined, order: SQL, limit: number) =>
  prepared((db) => db.select().from(events).where(where).orderBy(order).limit(limit));
const pendingOnes = eventsWhere(isReadyEvent, asc(events.seq), maxBatchEvents);
const answering = eventsWhere(isReadyAnswer, asc(events.seq), maxBatchEvents);
const heardIn = eventsWhere(isReadyUnheeded, asc(events.seq), maxOverheardEvents);
const ownLetOut = eventsWhere(isLetOut, desc(events.seq), maxBatchEvents);
const isBefore = lt(overheard.seq, sql.placeholder("seq"));
const heardBefore = prepared((db) =>
  db.select(heardAs("pending")).from(overheard).where(isBefore).orderBy(desc(overheard.seq)),
);
/** Messages have no index for it: who asks for one has just taken it in. */
const oneByEventId = eventsWhere(eq(events.eventId, sql.placeholder("eventId")), desc(events.seq), 1);
const someByEventIds = eventsWhere(among(events.eventId, sql.placeholder("ids")), asc(events.seq), -1);
const wakingOne = prepared((db) => db.select().from(inbox).where(isReadyWaking).orderBy(asc(inbox.seq)).limit(1));
const beyond = prepared((db) => db.select({ seq: newestBeyond }).from(sql`(select 1)`));
const unprocessedIn = prepared((db) => db.select({ seq: messageSeq }).from(events).where(isMessageOfSpace));
const counting = prepared((db) => db.select({ rows: count() }).from(inbox));
const isAmong = among(inbox.seq, sql.placeholder("seqs"));
const rowsAmong = prepared((db) => db.select().from(inbox).where(isAmong).orderBy(asc(inbox.seq)));
const taking = prepared((db) => db.update(inbox).set({ status: "taken" }).where(isAmong));
const deleting = prepared((db) => db.delete(inbox).where(isAmong));

export const createInbox = (db: Database, { clock, identity, spaces, roots, outOfBudget, armLoop }: Around) => {
  /** The newest words of its own that were let out of confidential spaces. A timeline's stay until they are evicted. */
  const letOut = new Remembered(db, () => ownLetOut(db).all());

  /** Changes these events. */
  const change = (seqs: number[], changes: Changes): void => {
    if (seqs.length > 0) db.update(inbox).set(changes).where(among(inbox.seq, seqs)).run();
  };

  const rowsOf = (seqs: number[]): InboxRow[] => rowsAmong(db).all({ seqs: JSON.stringify(seqs) });

  const acknowledge = (seqs: number[]): void => void deleting(db).run({ seqs: JSON.stringify(seqs) });

  /** Deletes events that no run will take. Messages are left to their space's history, as the agent is told; the log tells of others. */
  const leave = (rows: InboxRow[]): void => {
    if (rows.length === 0) return;
    const seqs = rows.map(({ seq }) => seq);
    acknowledge(seqs);
    db.delete(overheard).where(among(overheard.seq, seqs)).run();
    const { id: agentId } = identity.get();
    const left = new Map<string, number>();
    for (const { eventId, type, data, lastError } of rows) {
      if (data.type !== "space_message") {
        log.warn("event.let_go", { agentId, eventId, type, code: lastError?.code ?? "maxWakesPerRoot" });
        continue;
      }
      const { spaceId } = data.delivered.message;
      left.set(spaceId, (left.get(spaceId) ?? 0) + 1);
    }
    for (const [spaceId, messages] of left) spaces.leaveToHistory(spaceId, messages);
  };

  /** Leaves the oldest of more than `maxOverheardEvents`, or than `maxOverheardBytes` hold. */
  const evictOverheard = (): void => {
    const upTo = beyond(db).get({ most: maxOverheardEvents, mostBytes: maxOverheardBytes })?.seq ?? null;
    if (upTo === null) return;
    leave(db.select(heardAs("pending")).from(overheard).where(lte(overheard.seq, upTo)).orderBy(overheard.seq).all());
  };

  /** These events are only heard from now on. */
  const overhear = (which: SQL | undefined): void => {
    const { seq, eventId, type, data, rootId, receivedAt } = inbox;
    const rows = db.select({ seq, eventId, type, data, rootId, receivedAt }).from(inbox).where(which);
    db.insert(overheard).select(rows).run();
    db.delete(inbox).where(which).run();
    evictOverheard();
  };

  /** Answers those of the events that are dead now. Of all dead ones it leaves those beyond `maxDeadLetters` that died first. */
  const died = (seqs: number[]): InboxRow[] => {
    const dead = rowsOf(seqs).filter(({ status }) => status === "dead");
    if (dead.length === 0) return [];
    const first = db.select().from(inbox).where(isDead).orderBy(desc(inbox.retryAt), desc(inbox.seq));
    leave(first.limit(maxInboxEvents).offset(maxDeadLetters).all());
    return dead;
  };

  /** Other events of these roots wake nobody any more. Answers to a question stay: chatter evicts none. */
  const mute = (rootIds: string[]): void => {
    const isOfRoot = and(eq(inbox.status, "pending"), isNull(inbox.retryAt), among(inbox.rootId, rootIds));
    db.update(inbox).set({ wakes: false }).where(and(isOfRoot, answersQuestion)).run();
    overhear(and(isOfRoot, inbox.wakes, not(isAnswerRow)));
  };

  /** Throws `not_found`, and `conflict` for an event that is not dead. */
  const deadOne = (eventId: string, done: "retried" | "discarded"): InboxRow => {
    const row = oneByEventId(db).get({ eventId });
    if (!row) throw new ColloquyError("not_found", "there is no such event in the inbox");
    if (row.status === "dead") return row;
    throw new ColloquyError("conflict", `only a dead event can be ${done}; this one is ${row.status}`);
  };

  const anew = () => ({ status: "pending", attempts: 0, retryAt: clock.now() }) as const;
  const maxWakes = (): number => identity.get().config.limits.maxWakesPerRoot;

  /** Counts a wake of each root. What else comes of one that has had all of its wakes is only heard from now on (B1). */
  const countWakes = (rootIds: Iterable<string>): void => {
    const muted = roots.count([...new Set(rootIds)], maxWakes());
    if (muted.length === 0) return;
    mute(muted);
  };

  const { admission, ...held } = createHeldEvents(db, { clock, outOfBudget, countWakes, overhear });

  return {
    /** Whether so many more events are too many. Dead and overheard ones do not count. */
    isFull(adding: number): boolean {
      const rows = counting(db).get()?.rows ?? 0;
      // Counting the dead ones reads all rows, which is rarely needed.
      return rows + adding > maxInboxEvents && rows - countOf(db, inbox, isDead) + adding > maxInboxEvents;
    },

    /** Takes events in, in their order, except those whose ids are there already. Answers their `seq`. In a transaction. */
    enter(added: NewEvent[]): number[] {
      if (added.length === 0) return [];
      const bounded = ({ data, wakes }: NewEvent): boolean => wakes && !isAnswer(data);
      const counts = roots.wakes(added.filter(bounded).map((event) => rootOf(event).id));
      const first = (newest(db).get()?.seq ?? 0) + 1;
      const waitsHow = admission();
      const rows = added.map((event, index) => {
        const { eventId, data, isTaken = false, isAwaited = false } = event;
        const { id: rootId, by } = rootOf(event);
        const mayWake = event.wakes && !(bounded(event) && (counts.get(rootId) ?? 0) >= maxWakes());
        const how = mayWake && !isTaken ? waitsHow(data, by) : undefined;
        const wakes = mayWake && how !== "heard";
        const row = [first + index, eventId, data.type, JSON.stringify(data), rootId];
        return {
          wakes,
          heldRoots: typeof how === "number" ? [rootId] : [],
          isHeard: !wakes && !isTaken && !isAwaited,
          row: [...row, wakes, isTaken ? "taken" : "pending", how ?? null],
        };
      });
      const insert = (isHeard: boolean): void => {
        const query = isHeard ? hear(db) : adding(db);
        const all = rows.flatMap((each) => (each.isHeard === isHeard ? [each.row] : []));
        for (const some of jsonArrays(all)) query.run({ rows: some, receivedAt: clock.now() });
      };
      insert(false);
      insert(true);
      if (added.some(({ data }) => "delivered" in data && data.delivered.own)) letOut.forget();
      if (rows.some(({ wakes }) => wakes)) armLoop();
      if (rows.some(({ isHeard }) => isHeard)) evictOverheard();
      countWakes(rows.flatMap(({ heldRoots }) => heldRoots));
      return rows.map((_, index) => first + index);
    },

    /**
     * The events that the next run would take: all pending ones, oldest first, `most` at most, as they fit `maxTokens`.
     * An event whose batch has failed `maxBatchAttempts` times is taken alone, so that it spoils no other. The batch
     * has an event that wakes and the answers to the agent's questions. If too many overheard ones lie before them, the
     * oldest are passed over.
     */
    nextBatch(maxTokens: number, most = maxBatchEvents): Batch {
      const now = clock.now();
      const pending = pendingOnes(db).all({ now });
      const suspect = pending.find((row) => row.attempts >= maxBatchAttempts);
      if (suspect) return { rows: [suspect], passed: [] };
      const rows = fitting(pending.slice(0, most), maxTokens);
      if (rows.length === pending.length && pending.length < maxBatchEvents) return { rows, passed: [] };
      const waking = this.nextWaking();
      const needed = waking ? [waking, ...answering(db).all({ now })] : [];
      const newest = Math.max(0, ...needed.map(({ seq }) => seq));
      if (newest <= (rows.at(-1)?.seq ?? 0)) return { rows, passed: [] };
      const alsoWaking = pending.filter(({ wakes, seq }) => wakes && seq < newest);
      return batchOf([...needed, ...alsoWaking], heardBefore(db).all({ seq: newest }), maxTokens, most);
    },

    /** The first event that asks for a run, of none of the persons `but`. While a run waits for a person's tokens, no other event of theirs does. */
    nextWaking: (but: string[] = []): InboxRow | undefined =>
      wakingOne(db).get({ now: clock.now(), waiting: JSON.stringify([...outOfBudget.waiting.values(), ...but]) }),

    /** The waiting events of a space that ask for no run, without words of its own. */
    overheardIn: (spaceId: string): InboxRow[] => heardIn(db).all({ spaceId, now: clock.now() }),

    /** The `seq` in the space's log of each message that no run has acknowledged yet. */
    unprocessed(spaceId: string): Set<number> {
      const rows = unprocessedIn(db).all({ spaceId });
      return new Set(rows.map(({ seq }) => seq));
    },

    /** When the next event is due that pauses after a failure, in milliseconds since the epoch. */
    nextRetryAt(): number | undefined {
      const first = db.select({ at: min(inbox.retryAt) }).from(inbox);
      return first.where(and(eq(inbox.status, "pending"), gt(inbox.retryAt, clock.now()))).get()?.at ?? undefined;
    },

    rows: rowsOf,

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
      return countOf(db, inbox, and(eq(inbox.type, "plan"), ne(inbox.status, "dead"), isPlans)) > 0;
    },

    /**
     * Gives the events to a run. Overheard ones lie in the inbox from now on, and wake nobody there either. Each root
     * among `woken` wakes the agent once more. After its last allowed wake, what comes of it is only heard (B1). In a
     * transaction.
     */
    take(rows: InboxRow[], woken: InboxRow[]): void {
      const seqs = rows.map(({ seq }) => seq);
      taking(db).run({ seqs: JSON.stringify(seqs) });
      if (!rows.every(({ wakes }) => wakes)) {
        const heard = among(overheard.seq, seqs);
        db.insert(inbox)
          .select(db.select(heardAs("taken")).from(overheard).where(heard))
          .run();
        db.delete(overheard).where(heard).run();
      }
      // The wake of an event that a run took before was counted then.
      countWakes(woken.filter(({ retryAt }) => retryAt === null).map(({ rootId }) => rootId));
    },

    ...{ ...held, acknowledge, leave, letOut: (): InboxRow[] => letOut.get() },

    /** Whether a root may have one event more of a service wait. */
    mayWaitFor: (id: string): boolean => (roots.wakes([id]).get(id) ?? 0) + held.waitingOfServices(id) < maxWakes(),

    /** Those of these events that still wait for a run. */
    waiting(eventIds: string[]): InboxRow[] {
      const where = and(among(inbox.eventId, eventIds), eq(inbox.status, "pending"));
      return db.select().from(inbox).where(where).orderBy(asc(inbox.seq)).all();
    },

    /** These waiting events ask for a run from now on, as far as their roots may wake the agent (B1). In a transaction. */
    wake(rows: InboxRow[]): void {
      const counts = roots.wakes(rows.map(({ rootId }) => rootId));
      const waking = rows.filter(({ wakes, rootId }) => !wakes && (counts.get(rootId) ?? 0) < maxWakes());
      const seqs = waking.map(({ seq }) => seq);
      change(seqs, { wakes: true });
      if (waking.length > 0) armLoop();
    },

    /** The waiting event is an answer to these questions too. */
    answers(row: InboxRow, more: Question[]): void {
      if (row.data.type !== "space_message") return;
      change([row.seq], { data: { ...row.data, answers: [...(row.data.answers ?? []), ...more] } });
    },

    /** Makes the events pending again as if no run had taken them. */
    release: (seqs: number[]): void => change(seqs, { status: "pending" }),

    /** Makes the events of a failed run pending again, or dead after `maxAttempts`. Answers the dead ones. */
    failed(seqs: number[], error: Failure, pauseMs: (attempts: number) => number): InboxRow[] {
      const now = clock.now();
      // The events of a batch are tried again together, after the longest of their pauses.
      const tryAt = now + pauseMs(Math.max(0, ...rowsOf(seqs).map(({ attempts }) => attempts)) + 1);
      const orDead = (alive: string | number, dead: string | number) =>
        sql`case when ${inbox.attempts} + 1 < ${maxAttempts} then ${alive} else ${dead} end`;
      change(seqs, {
        attempts: sql`${inbox.attempts} + 1`,
        lastError: error,
        status: orDead("pending", "dead"),
        retryAt: orDead(tryAt, now),
      });
      return died(seqs);
    },

    /** Counts an attempt of a run that keeps the events. Answers the fewest attempts of any of them. */
    recordAttempt(seqs: number[], error: Failure): number {
      change(seqs, { attempts: sql`${inbox.attempts} + 1`, lastError: error });
      return Math.min(maxAttempts, ...rowsOf(seqs).map(({ attempts }) => attempts));
    },

    /** Makes the events dead, whatever their attempts. */
    deadLetter(seqs: number[], error: Failure): InboxRow[] {
      change(seqs, { status: "dead", lastError: error, retryAt: clock.now() });
      return died(seqs);
    },

    /** Makes a dead event pending again, without attempts. It then wakes the agent, even if it did not before. */
    retry(eventId: string): InboxRow {
      const changes = { ...anew(), wakes: true };
      const row = deadOne(eventId, "retried");
      change([row.seq], changes);
      armLoop();
      return { ...row, ...changes };
    },

    /** Makes all dead events pending again, without attempts. Answers how many. */
    retryAll(): number {
      const { length } = db.update(inbox).set(anew()).where(isDead).returning({ seq: inbox.seq }).all();
      if (length > 0) armLoop();
      return length;
    },

    /** Deletes a dead event, in a transaction. */
    discard(eventId: string): void {
      const { seq, data } = deadOne(eventId, "discarded");
      acknowledge([seq]);
      if (data.type !== "space_message" || !continuityFacts(identity.get().config).readsHistory) return;
      const { message } = data.delivered;
      spaces.settle(message.spaceId, { acknowledged: [message.seq], shownTo: 0 });
    },

    byEventId: (eventId: string): InboxRow | undefined => oneByEventId(db).get({ eventId }),

    /** The events with these ids that are still stored. The index leaves out messages of spaces, so this reads all events once. */
    byEventIds: (ids: string[]): InboxRow[] => someByEventIds(db).all({ ids: JSON.stringify(ids) }),

    page(after: number, limit: number, status?: InboxRow["status"]): InboxRow[] {
      const where = and(gt(events.seq, after), status && eq(events.status, status));
      return db.select().from(events).where(where).orderBy(asc(events.seq)).limit(limit).all();
    },
  };
};
