import { and, asc, count, desc, eq, gt, lt, max, min, ne, not, sql } from "drizzle-orm";
import type { Root } from "../../protocol/rpc.ts";
import type { RunTrigger } from "../../protocol/run.ts";
import { textBytes } from "../../protocol/text.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, type Database, prepared } from "../../shared/database.ts";
import { jsonArrays } from "../../shared/json-arrays.ts";
import { log } from "../../shared/log.ts";
import { maxAttempts, maxBatchAttempts, maxBatchBytes, maxBatchEvents, maxInboxEvents } from "../bounds.ts";
import { eventLine } from "../context/consciousness/inbox-message.ts";
import { excerpt } from "../context/quote.ts";
import type { InboxEvent } from "../context/snapshot.ts";
import { estimateText } from "../context/tokens.ts";
import type { Failure, InboxData } from "../records.ts";
import { inbox } from "../schema.ts";
import { Overheard } from "./overheard.ts";
import { inSpace, isAnswer, mutedBy, mutedByRoot, ready } from "./waking.ts";

/**
 * The agent's durable queue of events.
 *
 * Invariants
 * 1. An event id is taken in once, however often it is delivered (R7).
 * 2. A taken event belongs to the one running run; it is acknowledged in the transaction that ends that run, or
 *    goes back to pending in it (R1). After `maxAttempts` failed runs it is dead (`DeadLetters`).
 * 3. Batches are taken in the order of arrival. Of what wakes nobody, or nobody any more, the oldest are let go (messages
 *    to their history, others to the log) rather than hold up what wakes, or fill the inbox.
 * 4. An event that a run took before, and gave back for whatever reason, has a `retryAt`: it wakes again, where it
 *    did, and its wake is not counted again (B1).
 * 5. Whatever changes what waits, but by adding to it, has `#overheard` look again.
 */
export type InboxRow = typeof inbox.$inferSelect;

export const asEvent = (row: InboxRow): InboxEvent => ({ eventId: row.eventId, ...row.data });

/** An event that comes. */
export type NewEvent = { eventId: string; data: InboxData; wakes: boolean };

/** Whether a run took it before. */
export const isRetry = (row: Pick<InboxRow, "retryAt">): boolean => row.retryAt !== null;

/** What a run takes, oldest first, and the messages that it passes over. */
export type Batch = { rows: InboxRow[]; passed: InboxRow[] };

const isMessage = ({ type }: InboxRow): boolean => type === "space_message";

/** Where a message came from, or where the call was made whose result has come. */
export const homeOf = (data: InboxData): string | null => {
  if (data.type === "space_message") return data.delivered.message.spaceId;
  return data.type === "tool_result" ? data.activeSpaceId : null;
};

export const rootOf = ({ data }: Pick<InboxRow, "data">): Root =>
  data.type === "space_message" ? data.delivered.root : data.root;

export class Inbox {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #overheard: Overheard;

  /** All columns, in the table's order, of rows that are one JSON array: `seq` is given, the rest begins as ever. */
  readonly #add = prepared(() =>
    this.#db
      .insert(inbox)
      .select(
        sql`select null, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, 0, 'pending', null, null,
          ${sql.placeholder("receivedAt")} from json_each(${sql.placeholder("rows")}) where true`,
      )
      .onConflictDoNothing()
      .prepare(),
  );
  readonly #batch = prepared(() =>
    this.#db.select().from(inbox).where(ready).orderBy(asc(inbox.seq)).limit(maxBatchEvents).prepare(),
  );
  readonly #waking = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(and(ready, eq(inbox.wakes, true), not(mutedByRoot)))
      .orderBy(asc(inbox.seq))
      .limit(1)
      .prepare(),
  );
  readonly #wakingRoots = prepared(() =>
    this.#db
      .select({
        rootId: inbox.rootId,
        retryAt: max(inbox.retryAt),
        answers: sql<number>`max(${isAnswer})`,
      })
      .from(inbox)
      .where(and(ready, eq(inbox.wakes, true)))
      .groupBy(inbox.rootId)
      .prepare(),
  );
  readonly #unprocessed = prepared(() =>
    this.#db
      .select({ seq: sql<number>`json_extract(${inbox.data}, '$.delivered.message.seq')` })
      .from(inbox)
      .where(and(eq(inbox.type, "space_message"), inSpace))
      .prepare(),
  );
  readonly #byEventId = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(eq(inbox.eventId, sql.placeholder("eventId")))
      .prepare(),
  );
  readonly #count = prepared(() => this.#db.select({ rows: count() }).from(inbox).prepare());
  readonly #before = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(and(ready, lt(inbox.seq, sql.placeholder("seq"))))
      .orderBy(desc(inbox.seq))
      .prepare(),
  );

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#overheard = new Overheard(db, clock);
  }

  /** Whether so many more are too many. Dead ones take no room. */
  isFull(adding: number): boolean {
    const rows = this.#count().get()?.rows ?? 0;
    // Dead ones are told apart by a look at all, which is rarely needed.
    return rows + adding > maxInboxEvents && rows - this.counts().dead + adding > maxInboxEvents;
  }

  /** Whether nothing more comes in: it is full of what does not make way (`evictOverheard`). */
  refuses(maxWakes: number): boolean {
    if (!this.isFull(1)) return false;
    this.forget();
    const makingWay = this.#overheard.tooMany(maxWakes).length;
    return makingWay === 0 || this.isFull(1 - makingWay);
  }

  /** Takes an event in unless its id is there already. */
  add(eventId: string, data: InboxData, wakes: boolean): void {
    this.addAll([{ eventId, data, wakes }]);
  }

  /** Takes events in, in their order, but those whose ids are there already. */
  addAll(events: NewEvent[]): void {
    const receivedAt = this.#clock.now();
    const rowOf = ({ eventId, data, wakes }: NewEvent) =>
      [eventId, data.type, JSON.stringify(data), rootOf({ data }).id, wakes] as const;
    for (const rows of jsonArrays(events.map(rowOf))) this.#add().run({ rows, receivedAt });
    this.#overheard.count(events.length);
  }

  /** Those that ask for no run are looked at anew by the next `evictOverheard`. */
  forget(): void {
    this.#overheard.forget();
  }

  /** The database, to change what waits. */
  #changing(): Database {
    this.forget();
    return this.#db;
  }

  /**
   * Of more than `maxOverheardEvents` that ask for no run, lets the oldest go down to `keptOverheardEvents`: messages that wake
   * nobody, and whatever's root has woken the agent `maxWakes` times. Answers how many of each space; the log tells of
   * what no space has.
   */
  evictOverheard(maxWakes: number, agentId: string): Map<string, number> {
    const oldest = this.#overheard.tooMany(maxWakes);
    for (const { eventId, type, spaceId } of oldest) {
      if (spaceId === null) log.warn("event.let_go", { agentId, eventId, type, code: "maxWakesPerRoot" });
    }
    this.#overheard.count(-oldest.length);
    return this.#leave(oldest);
  }

  /** Messages that are left to their spaces' histories. Answers how many to each. */
  leave(messages: InboxRow[]): Map<string, number> {
    return this.#leave(
      messages.flatMap(({ seq, data }) =>
        data.type === "space_message" ? [{ seq, spaceId: data.delivered.message.spaceId }] : [],
      ),
    );
  }

  #leave(events: { seq: number; spaceId: string | null }[]): Map<string, number> {
    const left = new Map<string, number>();
    for (const { spaceId } of events) if (spaceId !== null) left.set(spaceId, (left.get(spaceId) ?? 0) + 1);
    this.acknowledge(events.map(({ seq }) => seq));
    return left;
  }

  /**
   * What the next run would take: everything pending, oldest first, as far as it fits `maxTokens` of a model's input;
   * only the first if a batch with it has failed twice, so that one bad event spoils no other. What wakes is in it:
   * of more quiet messages before it than fit, the oldest are passed over.
   */
  nextBatch(maxTokens: number, maxWakes: number): Batch {
    const pending = this.#batch().all({ now: this.#clock.now() });
    const suspect = pending.find((row) => row.attempts >= maxBatchAttempts);
    if (suspect) return { rows: [suspect], passed: [] };
    const rows = fitting(pending, maxTokens);
    if (rows.length === pending.length && pending.length < maxBatchEvents) return { rows, passed: [] };
    const waking = this.nextWaking(maxWakes);
    if (!waking || rows.some(({ seq }) => seq === waking.seq)) return { rows, passed: [] };
    const newestFirst = [waking, ...this.#before().all({ seq: waking.seq, now: this.#clock.now() })];
    const fit = fitting(newestFirst.slice(0, maxBatchEvents), maxTokens);
    return { rows: fit.toReversed(), passed: newestFirst.slice(fit.length).filter(isMessage) };
  }

  /** The first event that asks for a run, and whose root has not woken the agent `maxWakes` times. */
  nextWaking(maxWakes: number): InboxRow | undefined {
    return this.#waking().get({ maxWakes, now: this.#clock.now() });
  }

  /**
   * Messages of a space that wait and ask for no run: what a cycle had not come to, what a failed run gave back, and
   * those whose root has woken the agent `maxWakes` times.
   */
  overheardIn(spaceId: string, maxWakes: number): InboxRow[] {
    return this.#overheard.in(spaceId, maxWakes);
  }

  /** The places in a space's log of the messages that no run has acknowledged yet. */
  unprocessed(spaceId: string): Set<number> {
    return new Set(
      this.#unprocessed()
        .all({ spaceId })
        .map(({ seq }) => seq),
    );
  }

  /** The roots of the events that ask for a run now, and whether one of them wakes whatever its root's bound says. */
  wakingRoots(): { rootId: string; unbounded: boolean }[] {
    return this.#wakingRoots()
      .all({ now: this.#clock.now() })
      .map((row) => ({ rootId: row.rootId, unbounded: isRetry(row) || row.answers === 1 }));
  }

  /** When the next event that pauses after a failure is due, in milliseconds since the epoch. */
  nextRetryAt(): number | undefined {
    const row = this.#db
      .select({ at: min(inbox.retryAt) })
      .from(inbox)
      .where(and(eq(inbox.status, "pending"), gt(inbox.retryAt, this.#clock.now())))
      .get();
    return row?.at ?? undefined;
  }

  /** How many events wait to be taken or tried again, and how many are dead. */
  counts(): { events: number; dead: number } {
    const rows = this.#db.select({ status: inbox.status, rows: count() }).from(inbox).groupBy(inbox.status).all();
    const of = (status: InboxRow["status"]): number => rows.find((row) => row.status === status)?.rows ?? 0;
    return { events: of("pending"), dead: of("dead") };
  }

  rows(seqs: number[]): InboxRow[] {
    return seqs.length === 0
      ? []
      : this.#db.select().from(inbox).where(among(inbox.seq, seqs)).orderBy(asc(inbox.seq)).all();
  }

  /** Pending events that arrived after `seq`, the first `limit` of them, and how many there are in all. */
  arrivedAfter(seq: number, limit: number): { rows: InboxRow[]; total: number } {
    const where = and(eq(inbox.status, "pending"), gt(inbox.seq, seq));
    const rows = this.#db.select().from(inbox).where(where).orderBy(asc(inbox.seq)).limit(limit).all();
    const total =
      rows.length < limit
        ? rows.length
        : (this.#db.select({ rows: count() }).from(inbox).where(where).get()?.rows ?? 0);
    return { rows, total };
  }

  /** Whether an event of this plan waits or is being handled. */
  holdsPlan(planId: string): boolean {
    const isPlans = sql`json_extract(${inbox.data}, '$.planId') = ${planId}`;
    const row = this.#db
      .select({ seq: inbox.seq })
      .from(inbox)
      .where(and(eq(inbox.type, "plan"), ne(inbox.status, "dead"), isPlans))
      .get();
    return row !== undefined;
  }

  /** A run takes them. What its root had muted by then asks for no run either, should it be given back. */
  take(seqs: number[], maxWakes: number): void {
    const taken = { status: "taken", wakes: sql<boolean>`${inbox.wakes} and not ${mutedBy(maxWakes)}` } as const;
    this.#changing().update(inbox).set(taken).where(among(inbox.seq, seqs)).run();
  }

  acknowledge(seqs: number[]): void {
    if (seqs.length > 0) this.#db.delete(inbox).where(among(inbox.seq, seqs)).run();
  }

  /** Back to pending, uncounted: the run did not fail by them (a spent budget). */
  requeue(seqs: number[]): void {
    if (seqs.length === 0) return;
    const back = { status: "pending", retryAt: this.#clock.now() } as const;
    this.#changing().update(inbox).set(back).where(among(inbox.seq, seqs)).run();
  }

  /** Back to pending as if nobody had taken it. */
  release(seqs: number[]): void {
    if (seqs.length > 0) this.#changing().update(inbox).set({ status: "pending" }).where(among(inbox.seq, seqs)).run();
  }

  /** Back to pending after a failed run; dead after `maxAttempts`. */
  failed(seqs: number[], error: Failure, pauseMs: (attempts: number) => number): void {
    const rows = this.rows(seqs);
    const now = this.#clock.now();
    // Together, as they were: those of one batch that did not fail as often as others wait for them.
    const tryAt = now + pauseMs(Math.max(0, ...rows.map((row) => row.attempts)) + 1);
    for (const row of rows) {
      const attempts = row.attempts + 1;
      const dies = attempts >= maxAttempts;
      const retryAt = dies ? now : tryAt;
      const changes = { attempts, lastError: error, status: dies ? "dead" : "pending", retryAt } as const;
      this.#changing().update(inbox).set(changes).where(eq(inbox.seq, row.seq)).run();
    }
  }

  /** Counts a try of a run that keeps them. Answers the fewest tries that any of them has had. */
  recordAttempt(seqs: number[], error: Failure): number {
    if (seqs.length === 0) return maxAttempts;
    const struck = { attempts: sql`${inbox.attempts} + 1`, lastError: error };
    this.#changing().update(inbox).set(struck).where(among(inbox.seq, seqs)).run();
    return Math.min(...this.rows(seqs).map(({ attempts }) => attempts));
  }

  /** Dead, however often they were tried. */
  deadLetter(seqs: number[], error: Failure): void {
    if (seqs.length === 0) return;
    const dead = { status: "dead", lastError: error, retryAt: this.#clock.now() } as const;
    this.#changing().update(inbox).set(dead).where(among(inbox.seq, seqs)).run();
  }

  byEventId(eventId: string): InboxRow | undefined {
    return this.#byEventId().get({ eventId });
  }

  page(after: number, limit: number, status?: InboxRow["status"]): InboxRow[] {
    const where = and(gt(inbox.seq, after), status && eq(inbox.status, status));
    return this.#db.select().from(inbox).where(where).orderBy(asc(inbox.seq)).limit(limit).all();
  }
}

const triggerTextCharacters = 200;

/** What begins a run that takes this batch: its newest event that wakes. */
export const triggerOf = (batch: InboxRow[]): RunTrigger => {
  const newest = batch.findLast((row) => row.wakes) ?? batch.at(-1);
  if (!newest) throw new Error("a run begins with at least one event");
  const common = { type: newest.type, eventId: newest.eventId, eventCount: batch.length };
  if (newest.data.type === "plan") {
    const { planName, instruction } = newest.data;
    return { ...common, senderName: planName, text: excerpt(instruction, triggerTextCharacters) };
  }
  if (newest.data.type === "service") return { ...common, senderName: newest.data.serviceName };
  if (newest.data.type === "tool_result") return { ...common, senderName: newest.data.tool };
  const { message } = newest.data.delivered;
  return {
    ...common,
    spaceId: message.spaceId,
    senderName: message.sender.name,
    text: excerpt(message.text ?? "", triggerTextCharacters),
  };
};

/** The spaces that these events came from. */
export const eventSpaces = (batch: InboxRow[]): string[] => [
  ...new Set(batch.flatMap(({ data }) => homeOf(data) ?? [])),
];

/** The first rows that fit `maxBatchBytes` and `maxTokens`; at least one. The others are taken by the next run. Pure. */
export const fitting = <Row extends { eventId: string; data: InboxData }>(rows: Row[], maxTokens: number): Row[] => {
  let bytes = 0;
  let tokens = 0;
  const end = rows.findIndex(({ eventId, data }) => {
    bytes += textBytes(JSON.stringify(data));
    tokens += estimateText(eventLine({ eventId, ...data }));
    return bytes > maxBatchBytes || tokens > maxTokens;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
};
