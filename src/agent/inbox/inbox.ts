import { and, asc, count, desc, eq, gt, lt, max, min, ne, not, sql } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
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
import { estimateText } from "../context/tokens.ts";
import type { Failure, InboxData } from "../records.ts";
import { inbox } from "../schema.ts";
import { Overheard } from "./overheard.ts";
import { inSpace, isAnswer, mutedBy, mutedByRoot, ready } from "./waking.ts";

/**
 * The agent's durable queue of events.
 *
 * Invariants
 * 1. An event id is taken in once, however often it is delivered (R7): a message by the cursor of its space, any other
 *    by an index.
 * 2. A taken event belongs to one run. The transaction that ends the run acknowledges it, or makes it pending again
 *    (R1). After `maxAttempts` failed runs it is dead (`DeadLetters`).
 * 3. Batches are taken in the order of arrival. The oldest events that ask for no run are evicted (messages to their
 *    history, others to the log) before they hold up events that wake, or fill the inbox.
 * 4. An event that a run took before has a `retryAt`. It wakes again if it did before, and its wake is not counted
 *    again (B1).
 * 5. Every change of the waiting events, except adding to them, makes `#overheard` count again.
 */
export type InboxRow = typeof inbox.$inferSelect;
type Changes = SQLiteUpdateSetSource<typeof inbox>;

export type NewEvent = { eventId: string; data: InboxData; wakes: boolean };

/** Whether a run took the event before. */
export const isRetry = (row: Pick<InboxRow, "retryAt">): boolean => row.retryAt !== null;

/** The events that a run takes, oldest first, and the messages that it passes over. */
export type Batch = { rows: InboxRow[]; passed: InboxRow[] };

const isMessage = ({ type }: InboxRow): boolean => type === "space_message";

/** The space of a message, or the space where the call of a result was made. */
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

  /** Inserts rows from one JSON array. The columns stand in the table's order. */
  readonly #add = prepared(() =>
    this.#db
      .insert(inbox)
      .select(
        sql`select null, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, 0, 'pending', null, null,
          ${sql.placeholder("receivedAt")} from json_each(${sql.placeholder("rows")}) where true`,
      )
      .onConflictDoNothing(),
  );
  readonly #batch = prepared(() =>
    this.#db.select().from(inbox).where(ready).orderBy(asc(inbox.seq)).limit(maxBatchEvents),
  );
  readonly #waking = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(and(ready, eq(inbox.wakes, true), not(mutedByRoot)))
      .orderBy(asc(inbox.seq))
      .limit(1),
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
      .groupBy(inbox.rootId),
  );
  readonly #unprocessed = prepared(() =>
    this.#db
      .select({ seq: sql<number>`json_extract(${inbox.data}, '$.delivered.message.seq')` })
      .from(inbox)
      .where(and(eq(inbox.type, "space_message"), inSpace)),
  );
  readonly #byEventId = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(eq(inbox.eventId, sql.placeholder("eventId")))
      // Messages have no index for it: who asks for one has just taken it in.
      .orderBy(desc(inbox.seq))
      .limit(1),
  );
  readonly #count = prepared(() => this.#db.select({ rows: count() }).from(inbox));
  readonly #before = prepared(() =>
    this.#db
      .select()
      .from(inbox)
      .where(and(ready, lt(inbox.seq, sql.placeholder("seq"))))
      .orderBy(desc(inbox.seq)),
  );

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
    this.#overheard = new Overheard(db, clock);
  }

  /** Whether so many more events are too many. Dead ones do not count. */
  isFull(adding: number): boolean {
    const rows = this.#count().get()?.rows ?? 0;
    // Counting the dead ones reads all rows, which is rarely needed.
    return rows + adding > maxInboxEvents && rows - this.counts().dead + adding > maxInboxEvents;
  }

  /** Whether the inbox takes no more: it is full, and `evictOverheard` would make no room. */
  refuses(maxWakes: number): boolean {
    if (!this.isFull(1)) return false;
    this.forget();
    const makingWay = this.#overheard.tooMany(maxWakes).length;
    return makingWay === 0 || this.isFull(1 - makingWay);
  }

  /** Takes an event in, unless its id is there already. */
  add(eventId: string, data: InboxData, wakes: boolean): void {
    this.addAll([{ eventId, data, wakes }]);
  }

  /** Takes events in, in their order, except those whose ids are there already. */
  addAll(events: NewEvent[]): void {
    const receivedAt = this.#clock.now();
    const rowOf = ({ eventId, data, wakes }: NewEvent) =>
      [eventId, data.type, JSON.stringify(data), rootOf({ data }).id, wakes] as const;
    for (const rows of jsonArrays(events.map(rowOf))) this.#add().run({ rows, receivedAt });
    this.#overheard.count(events.length);
  }

  /** The next `evictOverheard` counts anew. */
  forget(): void {
    this.#overheard.forget();
  }

  /** Changes these events. */
  #set(seqs: number[], changes: Changes): void {
    if (seqs.length === 0) return;
    this.forget();
    this.#db.update(inbox).set(changes).where(among(inbox.seq, seqs)).run();
  }

  /**
   * Evicts the oldest events that ask for no run, down to `keptOverheardEvents`, if there are more than
   * `maxOverheardEvents`. Answers how many messages of each space; the log names the other events.
   */
  evictOverheard(maxWakes: number, agentId: string): Map<string, number> {
    const oldest = this.#overheard.tooMany(maxWakes);
    for (const { eventId, type, spaceId } of oldest) {
      if (spaceId === null) log.warn("event.let_go", { agentId, eventId, type, code: "maxWakesPerRoot" });
    }
    this.#overheard.count(-oldest.length);
    return this.#leave(oldest);
  }

  /** Leaves messages to their spaces' histories. Answers how many to each. */
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
   * The events that the next run would take: all pending ones, oldest first, as far as they fit `maxTokens`. An event
   * whose batch has failed `maxBatchAttempts` times is taken alone, so that it spoils no other. An event that wakes is
   * in the batch: if too many overheard messages lie before it, the oldest are passed over.
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

  /** The waiting events of a space that ask for no run. */
  overheardIn(spaceId: string, maxWakes: number): InboxRow[] {
    return this.#overheard.in(spaceId, maxWakes);
  }

  /** The `seq` in the space's log of each message that no run has acknowledged yet. */
  unprocessed(spaceId: string): Set<number> {
    const rows = this.#unprocessed().all({ spaceId });
    return new Set(rows.map(({ seq }) => seq));
  }

  /** The roots of the events that ask for a run now. `unbounded`: one of them wakes beyond its root's bound. */
  wakingRoots(): { rootId: string; unbounded: boolean }[] {
    return this.#wakingRoots()
      .all({ now: this.#clock.now() })
      .map((row) => ({ rootId: row.rootId, unbounded: isRetry(row) || row.answers === 1 }));
  }

  /** When the next event is due that pauses after a failure, in milliseconds since the epoch. */
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
    if (seqs.length === 0) return [];
    return this.#db.select().from(inbox).where(among(inbox.seq, seqs)).orderBy(asc(inbox.seq)).all();
  }

  /** Pending events that arrived after `seq`, the first `limit` of them, and how many there are in all. */
  arrivedAfter(seq: number, limit: number): { rows: InboxRow[]; total: number } {
    const where = and(eq(inbox.status, "pending"), gt(inbox.seq, seq));
    const rows = this.#db.select().from(inbox).where(where).orderBy(asc(inbox.seq)).limit(limit).all();
    if (rows.length < limit) return { rows, total: rows.length };
    return { rows, total: this.#db.select({ rows: count() }).from(inbox).where(where).get()?.rows ?? 0 };
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

  /** Gives the events to a run. Those that their root has muted by then wake no more, even if they are requeued. */
  take(seqs: number[], maxWakes: number): void {
    this.#set(seqs, { status: "taken", wakes: sql<boolean>`${inbox.wakes} and not ${mutedBy(maxWakes)}` });
  }

  acknowledge(seqs: number[]): void {
    if (seqs.length > 0) this.#db.delete(inbox).where(among(inbox.seq, seqs)).run();
  }

  /** Makes the events pending again without an attempt: the run did not fail because of them (a spent budget). */
  requeue(seqs: number[]): void {
    this.#set(seqs, { status: "pending", retryAt: this.#clock.now() });
  }

  /** Makes the events pending again as if no run had taken them. */
  release(seqs: number[]): void {
    this.#set(seqs, { status: "pending" });
  }

  /** Makes the events of a failed run pending again, or dead after `maxAttempts`. */
  failed(seqs: number[], error: Failure, pauseMs: (attempts: number) => number): void {
    const rows = this.rows(seqs);
    const now = this.#clock.now();
    // The events of a batch are tried again together, after the longest of their pauses.
    const tryAt = now + pauseMs(Math.max(0, ...rows.map((row) => row.attempts)) + 1);
    for (const row of rows) {
      const attempts = row.attempts + 1;
      const dies = attempts >= maxAttempts;
      const retryAt = dies ? now : tryAt;
      this.#set([row.seq], { attempts, lastError: error, status: dies ? "dead" : "pending", retryAt });
    }
  }

  /** Counts an attempt of a run that keeps the events. Answers the fewest attempts of any of them. */
  recordAttempt(seqs: number[], error: Failure): number {
    if (seqs.length === 0) return maxAttempts;
    this.#set(seqs, { attempts: sql`${inbox.attempts} + 1`, lastError: error });
    return Math.min(...this.rows(seqs).map(({ attempts }) => attempts));
  }

  /** Makes the events dead, whatever their attempts. */
  deadLetter(seqs: number[], error: Failure): void {
    this.#set(seqs, { status: "dead", lastError: error, retryAt: this.#clock.now() });
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

/** The trigger of a run that takes this batch: its newest event that wakes. */
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

/** The first rows that fit `maxBatchBytes` and `maxTokens`, at least one. */
export const fitting = <Row extends { data: InboxData }>(rows: Row[], maxTokens: number): Row[] => {
  let bytes = 0;
  let tokens = 0;
  const end = rows.findIndex(({ data }) => {
    bytes += textBytes(JSON.stringify(data));
    tokens += estimateText(eventLine(data));
    return bytes > maxBatchBytes || tokens > maxTokens;
  });
  return end === -1 ? rows : rows.slice(0, Math.max(1, end));
};
