import type { ActorNamespace } from "../../env/env.ts";
import type { AgentRpc } from "../../protocol/agent-rpc.ts";
import type { Delivery as AgentDelivery, MessageChange, WorkspaceRpc } from "../../protocol/rpc.ts";
import { backoff } from "../../shared/backoff.ts";
import type { Clock } from "../../shared/clock.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { fault, faultOnceStored } from "../../shared/fault.ts";
import { log as logger } from "../../shared/log.ts";
import { meter } from "../../shared/meter.ts";
import { pause, settledWithin, withTimeout } from "../../shared/timeouts.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  answerFirstMs,
  deliverTimeoutMs,
  firstBackoffMs,
  indexWaitMs,
  maxBackoffMs,
  maxBatchEvents,
  maxIdleLag,
  storeHeardMs,
  watchdogMs,
} from "../bounds.ts";
import type { Log, LogRow } from "../log/log.ts";
import type { Members } from "../members.ts";
import type { Decisions } from "../router/decisions.ts";
import type { Settings } from "../settings.ts";
import { snapshotOf } from "../settings.ts";
import { type Batch, batchFor, batchOf, concerns, hears, isChange, isOnlyHeard, waitsItsTurn } from "./batch.ts";
import { Pauses } from "./pauses.ts";
import { indexSubscriber, memberOf, type Place, type SubscriberRow, type Subscribers } from "./subscribers.ts";

/**
 * Carries the log to its subscribers.
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
 * 6. Agents get nothing from the first message on that the space's router has not decided about: so the order holds.
 * 7. What is said in a confidential space gives an agent's open mind no delivery, and delays, wakes and joins none (C17).
 */
export const deliverTimer = "deliver";

export type Receivers = {
  AGENT: ActorNamespace<Pick<AgentRpc, "deliver">>;
  WORKSPACE: ActorNamespace<Pick<WorkspaceRpc, "follow">>;
};

type Surroundings = {
  /** Keeps the object alive, crashes it in tests, and knows when what was written is on disk. */
  ctx: Pick<DurableObjectState, "waitUntil" | "abort"> & { storage: Pick<DurableObjectStorage, "sync"> };
  receivers: Receivers;
  timers: Timers;
  clock: Clock;
  log: Log;
  members: Members;
  settings: Settings;
  subscribers: Subscribers;
  decisions: Decisions;
  /** The space was deleted: what has to be forgotten by whom has heard of it. */
  forgetting: { begin(agentId: string): void; endWhereOver(): void };
  /** Has a job tell a mind of a change. */
  tellMind(mindId: string, changes: MessageChange[]): void;
};

/** `whole`: it goes up to the end of what may be told. */
type Pending = { batch: Batch; after: number; deleted: boolean; whole: boolean };

export class Delivery {
  readonly #around: Surroundings;
  readonly #running = new Map<string, Promise<void>>();
  /** Up to where a subscriber's log was seen to hold nothing for it: saves storing a cursor that carries nothing. */
  readonly #idle = new Map<string, number>();
  readonly #pauses: Pauses;
  /** Somebody has heard more than is stored. */
  #isStoring = false;

  constructor(surroundings: Surroundings) {
    this.#around = surroundings;
    this.#pauses = new Pauses(surroundings.clock);
  }

  /** Belongs in the transaction that appended `rows`. */
  arm(rows: LogRow[]): void {
    const { timers, clock, subscribers } = this.#around;
    subscribers.store();
    const isFor = (row: LogRow): boolean => {
      if (row.type === "space.message") return subscribers.anyAgentBut(row.entityId ?? "");
      if (isChange(row)) return row.was !== null;
      return row.type === "space.message.updated" ? row.outcome !== null : row.type !== "member.read";
    };
    if (rows.some(isFor)) timers.setNoLater(deliverTimer, clock.now() + watchdogMs);
  }

  /**
   * Starts a delivery to everyone who may have something pending and is not backing off. `rows` are what was just
   * appended: who had come up to them and is concerned by none of them is passed over.
   */
  kick(rows: LogRow[] = []): void {
    const { subscribers, clock, ctx } = this.#around;
    const end = rows.at(-1)?.seq ?? this.#end();
    const before = end - rows.length;
    const isPosted = rows.some((row) => this.#isPosted(row));
    const openUpTo = this.#openUpTo();
    let answered: Promise<void> | undefined;
    for (const subscriber of subscribers.behind(end)) {
      const { id, retryAt, cursor } = subscriber;
      if (!rows.every((row) => isOnlyHeard(subscriber, row, openUpTo))) this.#pauses.end(id);
      if ((retryAt ?? 0) > clock.now()) continue;
      const untold =
        Math.max(cursor, this.#idle.get(id) ?? 0) >= before && !rows.some((row) => concerns(subscriber, row, openUpTo));
      if (untold && rows.length > 0) this.#idle.set(id, end);
      if (this.#running.has(id) || (untold && end - cursor <= maxIdleLag)) continue;
      if (isPosted && subscriber.kind === "agent") answered ??= this.#letAnswerGo();
      const running = this.#drain(id, answered);
      this.#running.set(id, running);
      ctx.waitUntil(running);
    }
    this.#forgetWords();
  }

  /** Words that were edited or deleted are kept until each agent was told of it, or is not to be told. */
  #forgetWords(): void {
    this.#around.log.forgetWords(this.#toldUpTo());
  }

  #toldUpTo(): number {
    return this.#around.subscribers.toldUpTo(({ id, cursor }) => Math.max(cursor, this.#idle.get(id) ?? 0));
  }

  /** Whether each agent has heard of all up to `seq`, and ignores older deliveries. Who has not is told now. */
  hasTold(seq: number): boolean {
    if (this.#toldUpTo() < seq) this.kick();
    return this.#toldUpTo() >= seq;
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

  /** The place in the log after which it is confidential. */
  #openUpTo(): number {
    return this.#around.settings.find()?.confidentialFrom ?? Number.POSITIVE_INFINITY;
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
        isItsTurn = !isItsTurn && waitsItsTurn(pending.batch) && (await this.#pauses.turn(id));
        if (isItsTurn) continue;
        if (pending.whole && pending.batch.messages.length > 0) this.#pauses.told(id);
        const cursor = await this.#send(subscriber, pending);
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
    return Math.max(cursor, this.#idle.get(id) ?? 0) < this.#end();
  }

  /** The batch after the subscriber's cursor. Undefined where there is nothing to tell. */
  #pending(subscriber: SubscriberRow): Pending | undefined {
    const { log, members, settings, subscribers, decisions } = this.#around;
    const deletedSeq = settings.find()?.deletedSeq ?? undefined;
    const head = log.head().seq;
    const openUpTo = this.#openUpTo();
    const held = subscriber.kind === "agent" ? decisions.pending() : [];
    const undecided = held.find((seq) => hears(subscriber, seq, openUpTo)) ?? head + 1;
    const end = Math.min(head, undecided - 1);
    const from = Math.max(subscriber.cursor, this.#idle.get(subscriber.id) ?? 0);
    let place = { ...subscriber, cursor: from };
    while (place.cursor < end) {
      const rows = log.after(place.cursor, Math.min(maxBatchEvents, end - place.cursor));
      const batch = batchFor(place, rows, decisions.chosen(rows), openUpTo);
      if (batch.pending) return { batch, after: subscriber.cursor, deleted: false, whole: batch.cursor >= end };
      place = { ...place, cursor: batch.cursor, inside: batch.inside };
    }
    if (end < head) return undefined;
    if (deletedSeq !== undefined && subscriber.cursor < deletedSeq) {
      const batch = batchOf({ cursor: deletedSeq, inside: false, left: true, pending: true });
      return { batch, after: subscriber.cursor, deleted: true, whole: true };
    }
    if (subscriber.kind === "agent" && !place.inside && !members.find(memberOf(subscriber)))
      subscribers.remove(subscriber.id);
    else if (end - subscriber.cursor > maxIdleLag) subscribers.advance(subscriber.id, place);
    else this.#idle.set(subscriber.id, end);
    return undefined;
  }

  /** Answers the cursor to which the subscriber has come; throws whatever kept it from coming on. */
  async #send(subscriber: SubscriberRow, { batch, after, deleted }: Pending): Promise<number> {
    const { receivers, members, settings, tellMind } = this.#around;
    const row = settings.find();
    if (!row) throw new Error("delivery: the space has no settings");
    const { cursor, messages, left } = batch;
    const answers = batch.answers.length > 0 ? { answers: batch.answers } : {};
    const changes = batch.changes.length > 0 ? { changes: batch.changes } : {};
    // One that was outside keeps what it knew of the space.
    const member = memberOf(subscriber);
    const outside = deleted && subscriber.kind === "agent" && !members.find(member);
    const known = outside ? { ...row, name: "" } : row;
    const space = snapshotOf(deleted ? { ...known, version: cursor } : row, outside ? [] : members.all());
    if (deleted) space.deleted = true;
    if (subscriber.kind === "index") {
      const createdBy = row.createdBy === null ? {} : { createdBy: row.createdBy };
      const follow = receivers.WORKSPACE.getByName(row.workspaceId).follow({ space, ...createdBy, cursor, deleted });
      const followed = await withTimeout(deliverTimeoutMs, follow);
      if (!followed.ok) throw new ColloquyError(followed.problem.code, followed.problem.detail);
      return cursor;
    }
    const isCompartment = subscriber.compartmentOf !== null;
    const mind = isCompartment
      ? { compartment: { mindId: subscriber.id, agentId: member } }
      : { openUpTo: row.confidentialFrom ?? undefined };
    const told: AgentDelivery = { space, messages, ...answers, ...changes, after, cursor, left, ...mind };
    const deliver = receivers.AGENT.getByName(subscriber.id).deliver(JSON.stringify(told));
    const delivered = await withTimeout(deliverTimeoutMs, deliver);
    if (delivered.ok) {
      // One of the last release takes none, and its cursor passes them.
      if (!delivered.value.changes) tellMind(subscriber.id, batch.changes);
      return delivered.value.cursor;
    }
    // An agent that is gone for good need not be told that it left.
    const over = left || row.deletedSeq !== null || !members.find(member);
    if (over && delivered.problem.code === "not_found") return cursor;
    throw new ColloquyError(delivered.problem.code, delivered.problem.detail);
  }

  #advance(subscriber: SubscriberRow, { batch, deleted }: Pending, answered: number): void {
    const { subscribers, forgetting } = this.#around;
    const [oldest] = batch.messages;
    if (oldest) {
      const { createdAt } = oldest.message;
      meter.observe("delivery_seconds", Math.max(0, this.#around.clock.now() - Date.parse(createdAt)) / 1000);
    }
    if (answered < batch.cursor) {
      throw new ColloquyError("conflict", `${subscriber.id} came to ${answered} only, not to ${batch.cursor}`);
    }
    const place = { cursor: batch.cursor, inside: batch.inside };
    if (deleted) {
      subscribers.remove(subscriber.id);
      // A compartment of the space ends as it hears of it.
      if (subscriber.kind === "agent" && subscriber.compartmentOf === null) forgetting.begin(subscriber.id);
      forgetting.endWhereOver();
    } else if (batch.messages.length > 0) this.#heard(subscriber.id, place);
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
