import { backoff } from "../../shared/backoff.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fault, faultOnceStored } from "../../shared/fault.ts";
import { log as logger } from "../../shared/log.ts";
import { meter } from "../../shared/meter.ts";
import { pause, settledWithin } from "../../shared/timeouts.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  answerFirstMs,
  firstBackoffMs,
  indexWaitMs,
  maxBackoffMs,
  maxBatchEvents,
  maxIdleLag,
  storeHeardMs,
  watchdogMs,
} from "../bounds.ts";
import type { Log, LogRow } from "../log/log.ts";
import { isChange, takesBack } from "../log/row-kinds.ts";
import type { Members } from "../members.ts";
import type { Settings } from "../settings.ts";
import type { Follower, Pending } from "./follower.ts";
import { Pauses } from "./pauses.ts";
import { indexSubscriber, type Place, type SubscriberRow, type Subscribers } from "./subscribers.ts";

/**
 * Carries the log to its subscribers: to each by its kind's `Follower`.
 *
 * Invariants
 * 1. A subscriber's cursor moves only after the subscriber has answered; what is pending is what lies after it. Of
 *    messages it is stored `storeHeardMs` later, or with the next event: after a crash before that they are told again.
 * 2. One delivery at a time for each subscriber, in the log's order; a receiver ignores what it has already.
 * 3. While anything is pending the timer `deliver`, a guard, is set, since the transaction that appended it. So a crash
 *    anywhere is followed by a delivery without any outside call. A message that is held back has a job of the router.
 * 4. A subscriber that left goes away only after it was told of all its stays, however often it came back.
 * 5. What wakes an agent goes at once, with all that lies before it. Messages that it only hears go about once in
 *    `listenIntervalMs`, those of that time together; a backlog goes without a pause. What was erased goes to one agent after
 *    another, with what came until its turn.
 */
export const deliverTimer = "deliver";

type Surroundings = {
  /** Keeps the object alive, crashes it in tests, and knows when what was written is on disk. */
  ctx: Pick<DurableObjectState, "waitUntil" | "abort"> & { storage: Pick<DurableObjectStorage, "sync"> };
  followers: Record<SubscriberRow["kind"], Follower>;
  timers: Timers;
  clock: Clock;
  log: Log;
  members: Members;
  settings: Settings;
  subscribers: Subscribers;
  /** Somebody has heard of the space's end: all that is left of it may go. */
  forgetting: { endWhereOver(): void };
};

export class Delivery {
  readonly #around: Surroundings;
  readonly #running = new Map<string, Promise<void>>();
  /** Up to where a subscriber's log was seen to hold nothing for it: saves storing a cursor that carries nothing. */
  readonly #idle = new Map<string, number>();
  readonly #pauses: Pauses;
  /** Those to tell how it stands, though nothing new is in the log: agents began to work, or ended. Memory only. */
  readonly #stirred = new Set<string>();
  /** Somebody has heard more than is stored. */
  #isStoring = false;
  /** The place of the newest event by which people forget something. Memory only: after a restart, the end of the log. */
  #takenBackAt: number | undefined;

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    this.#pauses = new Pauses(surroundings.clock);
  }

  /** Belongs in the transaction that appended `rows`. */
  arm(rows: LogRow[]): void {
    const { timers, clock, subscribers, followers } = this.#around;
    subscribers.store();
    const [first] = rows;
    if (first) {
      for (const id of followers.person.concerned?.(rows) ?? [])
        subscribers.insert({ id, kind: "person", cursor: first.seq - 1, inside: true });
    }
    const tellsPeople = subscribers.anyPerson();
    const endpoints = subscribers.endpoints();
    const isFor = (row: LogRow): boolean => {
      if (endpoints.some((endpoint) => this.#follower(endpoint).concerns(endpoint, row))) return true;
      if (row.type === "space.message") return tellsPeople || subscribers.anyAgentBut(row.entityId ?? "");
      if (isChange(row)) return tellsPeople || row.was !== null;
      if (row.type === "space.message.updated") return tellsPeople || row.outcome !== null;
      return row.type !== "member.read" || subscribers.find(row.entityId ?? "")?.kind === "person";
    };
    if (rows.some(isFor)) timers.setNoLater(deliverTimer, clock.now() + watchdogMs);
  }

  /**
   * Starts a delivery to everyone who may have something pending and is not backing off. `rows` are what was just
   * appended: who had come up to them and is concerned by none of them is passed over.
   */
  kick(rows: LogRow[] = []): void {
    const { subscribers, clock } = this.#around;
    const end = rows.at(-1)?.seq ?? this.#end();
    this.#takenBackAt = rows.findLast(takesBack)?.seq ?? this.#takenBackAt;
    const before = end - rows.length;
    const isPosted = rows.some((row) => this.#isPosted(row));
    let answered: Promise<void> | undefined;
    for (const subscriber of subscribers.behind(end)) {
      const { id, retryAt, cursor } = subscriber;
      const follower = this.#follower(subscriber);
      if (!rows.every((row) => follower.isOnlyHeard(subscriber, row))) this.#pauses.end(id);
      if ((retryAt ?? 0) > clock.now()) continue;
      const untold =
        Math.max(cursor, this.#idle.get(id) ?? 0) >= before && !rows.some((row) => follower.concerns(subscriber, row));
      if (untold && rows.length > 0) this.#idle.set(id, end);
      if (this.#running.has(id) || (untold && end - cursor <= maxIdleLag)) continue;
      if (isPosted) answered ??= this.#letAnswerGo();
      this.#begin(id, answered);
    }
    this.#forgetWords();
  }

  #begin(id: string, answered?: Promise<void>): void {
    const running = this.#drain(id, answered);
    this.#running.set(id, running);
    this.#around.ctx.waitUntil(running);
  }

  /** What is not in the log has changed of how the space stands: people are told, as soon as they may be told again. */
  stir(): void {
    const { subscribers, clock } = this.#around;
    for (const { id, retryAt } of subscribers.people()) {
      this.#stirred.add(id);
      if (!this.#running.has(id) && (retryAt ?? 0) <= clock.now()) this.#begin(id);
    }
  }

  /** Words that were edited or deleted are kept until each agent was told of it, or is not to be told. */
  #forgetWords(): void {
    this.#around.log.forgetWords(this.#toldUpTo("agent"));
  }

  #toldUpTo(kind: SubscriberRow["kind"]): number {
    return this.#around.subscribers.toldUpTo(kind, ({ id, cursor }) => Math.max(cursor, this.#idle.get(id) ?? 0));
  }

  /**
   * Whether each agent has heard of all up to `seq`, and ignores older deliveries, and each person of what was taken back. Who has
   * not is told now.
   */
  hasTold(seq: number): boolean {
    const takenBackAt = this.#takenBackAt ?? this.#end();
    this.#takenBackAt = takenBackAt;
    const isTold = (): boolean => this.#toldUpTo("agent") >= seq && this.#toldUpTo("person") >= takenBackAt;
    if (!isTold()) this.kick();
    return isTold();
  }

  /** The timer `deliver` went off. */
  onTimer(): void {
    this.kick();
    this.#rearm();
  }

  /** Resolves when the workspace's index has heard of everything, or is late. */
  async indexed(): Promise<void> {
    await settledWithin(indexWaitMs, this.#running.get(indexSubscriber) ?? Promise.resolve());
  }

  /** Throws `unavailable` where the workspace's index does not know who came in at `seq`: a sign-out would miss a socket (L7). */
  requireIndexed(seq: number): void {
    const { subscribers, clock } = this.#around;
    const index = subscribers.find(indexSubscriber);
    if (!index || index.cursor >= seq) return;
    if (index.retryAt !== null) subscribers.fail(index.id, index.failures, clock.now());
    this.kick();
    throw new ColloquyError("unavailable", "The workspace has yet to hear who came into this space: try again");
  }

  /** The last place in the log; a deletion takes one too. */
  #end(): number {
    return this.#around.settings.find()?.deletedSeq ?? this.#around.log.head().seq;
  }

  #follower({ kind }: SubscriberRow): Follower {
    return this.#around.followers[kind];
  }

  /** A person or a service posted, edited or deleted it, and waits for the answer. */
  #isPosted(row: LogRow): boolean {
    const isTheirs = this.#around.members.find(row.entityId ?? "")?.type !== "agent";
    return isChange(row) || (row.type === "space.message" && isTheirs);
  }

  /**
   * The answer of a post waits for the same commit as a delivery does. It goes first: an agent that hears begins to work,
   * in the same process here. Then all agents are told in one turn.
   */
  async #letAnswerGo(): Promise<void> {
    await this.#around.ctx.storage.sync();
    await pause(answerFirstMs);
  }

  async #drain(id: string, answered: Promise<void> | undefined): Promise<void> {
    const { ctx, subscribers } = this.#around;
    try {
      await faultOnceStored("space.after-append", ctx);
      await answered;
      let isItsTurn = false;
      for (let subscriber = subscribers.find(id); subscriber; subscriber = subscribers.find(id)) {
        if (this.#isBehind(subscriber) && (await this.#pauses.wait(id))) continue;
        const pending = this.#pending(subscriber);
        if (!pending) break;
        const follower = this.#follower(subscriber);
        isItsTurn = !isItsTurn && follower.waitsItsTurn(pending.batch) && (await this.#pauses.turn(id));
        if (isItsTurn) continue;
        if (pending.whole && pending.batch.isPaced) this.#pauses.told(id);
        const cursor = await follower.send(subscriber, pending);
        fault("space.after-deliver", ctx);
        this.#advance(subscriber, pending, cursor);
      }
    } catch (error) {
      this.#backOff(id, error);
    } finally {
      this.#running.delete(id);
      this.#forgetWords();
      this.#rearm();
    }
  }

  /** Whether there may be something that it was not told. */
  #isBehind({ id, cursor }: SubscriberRow): boolean {
    return this.#stirred.has(id) || Math.max(cursor, this.#idle.get(id) ?? 0) < this.#end();
  }

  /** The batch after the subscriber's cursor. Undefined where there is nothing to tell. */
  #pending(subscriber: SubscriberRow): Pending | undefined {
    const { log, settings, subscribers } = this.#around;
    const follower = this.#follower(subscriber);
    const deletedSeq = settings.find()?.deletedSeq ?? undefined;
    const head = log.head().seq;
    const end = follower.endFor(subscriber, head);
    const from = Math.max(subscriber.cursor, this.#idle.get(subscriber.id) ?? 0);
    let place = { ...subscriber, cursor: from };
    while (place.cursor < end) {
      const rows = log.after(place.cursor, Math.min(maxBatchEvents, end - place.cursor));
      const batch = follower.batch(place, rows);
      if (batch.pending) this.#stirred.delete(subscriber.id);
      if (batch.pending) return { batch, after: subscriber.cursor, deleted: false, whole: batch.cursor >= end };
      place = { ...place, cursor: batch.cursor, inside: batch.inside };
    }
    if (end < head) return undefined;
    if (deletedSeq !== undefined && subscriber.cursor < deletedSeq) {
      const batch = { ...follower.batch(place, []), cursor: deletedSeq, inside: false, left: true, pending: true };
      return { batch, after: subscriber.cursor, deleted: true, whole: true };
    }
    if (this.#stirred.delete(subscriber.id)) {
      const batch = { ...follower.batch(place, []), pending: true };
      return { batch, after: subscriber.cursor, deleted: false, whole: true };
    }
    if (follower.isOver(place)) subscribers.remove(subscriber.id);
    else if (end - subscriber.cursor > maxIdleLag) subscribers.advance(subscriber.id, place);
    else this.#idle.set(subscriber.id, end);
    return undefined;
  }

  #advance(subscriber: SubscriberRow, { batch, deleted }: Pending, answered: number): void {
    const { subscribers, forgetting } = this.#around;
    const { saidAt } = batch;
    if (saidAt !== undefined) {
      meter.observe("delivery_seconds", Math.max(0, this.#around.clock.now() - Date.parse(saidAt)) / 1000);
    }
    if (answered < batch.cursor) {
      throw new ColloquyError("conflict", `${subscriber.id} came to ${answered} only, not to ${batch.cursor}`);
    }
    const place = { cursor: batch.cursor, inside: batch.inside };
    if (!deleted && batch.cursor === subscriber.cursor) return;
    if (deleted) {
      subscribers.remove(subscriber.id);
      this.#follower(subscriber).ended(subscriber);
      forgetting.endWhereOver();
    } else if (batch.isPaced) this.#heard(subscriber.id, place);
    else subscribers.advance(subscriber.id, place);
  }

  /** An agent that has heard asks its model: what the space has to store goes after that. */
  #heard(id: string, place: Place): void {
    const { ctx, subscribers } = this.#around;
    subscribers.heard(id, place);
    if (this.#isStoring) return;
    this.#isStoring = true;
    ctx.waitUntil(
      pause(storeHeardMs).then(() => {
        this.#isStoring = false;
        subscribers.store();
        this.#rearm();
      }),
    );
  }

  #backOff(id: string, error: unknown): void {
    const { subscribers, clock } = this.#around;
    const failures = (subscribers.find(id)?.failures ?? 0) + 1;
    const delay = backoff(failures - 1, { firstMs: firstBackoffMs, longestMs: maxBackoffMs });
    subscribers.fail(id, failures, clock.now() + delay);
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn("delivery.failed", { subscriber: id, failures, delay, reason });
  }

  /** Sets the timer to when it is needed next, or clears it when nothing is pending. */
  #rearm(): void {
    const { timers, subscribers, clock } = this.#around;
    const due = this.#running.size > 0 ? undefined : subscribers.nextRetry();
    if (due !== undefined && due !== timers.dueAt(deliverTimer)) timers.set(deliverTimer, due);
    else if (due === undefined && this.#running.size === 0 && !this.#isStoring) timers.clear(deliverTimer);
    else if ((timers.dueAt(deliverTimer) ?? 0) <= clock.now()) timers.set(deliverTimer, clock.now() + watchdogMs);
  }
}
