import { and, countDistinct, eq, isNotNull, ne, sql } from "drizzle-orm";
import type { DeliveredMessage } from "../../protocol/rpc.ts";
import type { Clock } from "../../shared/clock.ts";
import { countOf, type Database, prepared, Remembered, rowsBy } from "../../shared/database.ts";
import { replyWaitMs } from "../bounds.ts";
import type { Awaited } from "../records.ts";
import { waits } from "../schema.ts";

/**
 * The answers that runs wait for. A timeline's run rests until they come. A cycle ends: its answers wait in the inbox, and
 * wake the agent together.
 *
 * Invariants
 * 1. A wait is opened before its message is said: an answer can never come before anybody waits for it.
 * 2. The first message of an awaited participant in that space after the question is the answer, to each question that
 *    is open there. A reply to the agent's own words answers the one question that it names, or none. It belongs to each
 *    waiting run and begins no other. Until the question's `seq` is known, all their messages are held for the run.
 * 3. A wait is over when every awaited participant has answered or left the space, or the time is up. An open mind's is
 *    also over where the space is confidential.
 * 4. A cycle's wait has a root, and outlives its run. A timeline's has none, and ends with its run at the latest.
 */
export type WaitRow = typeof waits.$inferSelect;

const isOpen = (wait: WaitRow, now: number): boolean =>
  wait.dueAt > now && wait.awaited.some(({ replyId, left }) => replyId === null && !left);

/** The messages that were taken for their answers, or may be some. */
const takenBy = (waiting: WaitRow[]): string[] =>
  waiting
    .flatMap(({ awaited }) => awaited)
    .flatMap(({ replyId, held = [] }) => [replyId, ...held.map(({ messageId }) => messageId)])
    .filter((id) => id !== null);

export type Waits = ReturnType<typeof createWaits>;

const inSpace = prepared((db) => rowsBy(db, waits, waits.spaceId));

export const createWaits = (db: Database, clock: Clock) => {
  const isOfCall = (callId: string) => eq(waits.callId, callId);
  /** Whether no run waits for any answer. Most agents never ask. */
  const none = new Remembered(db, () => db.get(sql`select 1 from ${waits} limit 1`) === undefined);

  const change = (callId: string, changes: Partial<Pick<WaitRow, "questionSeq" | "awaited">>): void => {
    db.update(waits).set(changes).where(isOfCall(callId)).run();
  };

  return {
    /** Opening the same call's wait again changes nothing. */
    open(
      wait: Pick<WaitRow, "callId" | "runOrdinal" | "spaceId" | "text" | "root">,
      of: Omit<Awaited, "replyId">[],
    ): void {
      const awaited = of.map((who) => ({ ...who, replyId: null }));
      const row = { ...wait, awaited, dueAt: clock.now() + replyWaitMs };
      none.writing().insert(waits).values(row).onConflictDoNothing().run();
    },

    awaitedBy: (callId: string): Awaited[] => db.select().from(waits).where(isOfCall(callId)).get()?.awaited ?? [],

    /** Deletes a wait. Answers the ids of the messages that were taken for answers, but for those that a run has read. */
    drop(callId: string): string[] {
      const [wait] = db.delete(waits).where(isOfCall(callId)).returning().all();
      return wait ? takenBy([{ ...wait, awaited: wait.awaited.filter(({ isRead }) => !isRead) }]) : [];
    },

    /** The messages among these that no wait holds, or none of this run. */
    free(messageIds: string[], runOrdinal?: number): string[] {
      const held = runOrdinal === undefined ? db.select().from(waits).all() : this.ofRun(runOrdinal);
      const taken = new Set(takenBy(held));
      return messageIds.filter((id) => !taken.has(id));
    },

    /** The question stands at `seq`. Answers it, and the ids of the held messages that answer it, and that do not. */
    asked(callId: string, seq: number): { wait: WaitRow; answers: string[]; others: string[] } | undefined {
      const wait = db.select().from(waits).where(isOfCall(callId)).get();
      if (!wait || wait.questionSeq !== null) return undefined;
      const awaited = wait.awaited.map(({ held = [], ...who }) => ({
        ...who,
        replyId: held.find((message) => message.seq > seq)?.messageId ?? null,
      }));
      change(callId, { questionSeq: seq, awaited });
      const answers = awaited.flatMap(({ replyId }) => replyId ?? []);
      return { wait, answers, others: takenBy([wait]).filter((id) => !answers.includes(id)) };
    },

    /** A message that was taken for an answer, and that no run has read, was deleted. */
    unanswered(messageId: string): void {
      if (none.get()) return;
      for (const { callId, awaited } of db.select().from(waits).all()) {
        const isIt = ({ replyId, isRead }: Awaited): boolean => replyId === messageId && !isRead;
        const isHeld = ({ held = [] }: Awaited): boolean => held.some((each) => each.messageId === messageId);
        if (!awaited.some((who) => isIt(who) || isHeld(who))) continue;
        const without = (who: Awaited): Awaited => {
          const { held = [], ...rest } = who;
          const left = held.filter((each) => each.messageId !== messageId);
          return { ...rest, ...(left.length > 0 && { held: left }), ...(isIt(who) && { replyId: null }) };
        };
        change(callId, { awaited: awaited.map(without) });
      }
    },

    /** How many other runs wait or are about to. */
    runsBeside(runOrdinal: number): number {
      const runs = db.select({ runs: countDistinct(waits.runOrdinal) }).from(waits);
      return runs.where(ne(waits.runOrdinal, runOrdinal)).get()?.runs ?? 0;
    },

    /** Ends the wait for participants who are none of these, as they left. Answers whether a run waited for one. */
    left(spaceId: string, members: Set<string>, how: NonNullable<Awaited["left"]>): boolean {
      const isGone = ({ id, replyId, left }: Awaited): boolean => replyId === null && !left && !members.has(id);
      const open = inSpace(db).all({ key: spaceId });
      const changed = open.filter(({ awaited }) => awaited.some(isGone));
      for (const { callId, awaited } of changed) {
        change(callId, { awaited: awaited.map((who) => (isGone(who) ? { ...who, left: how } : who)) });
      }
      return changed.length > 0;
    },

    ofRun: (runOrdinal: number): WaitRow[] =>
      none.get() ? [] : db.select().from(waits).where(eq(waits.runOrdinal, runOrdinal)).all(),

    /** The run has read its answers. What answers others too is theirs, but it is given back no more. */
    endOf(runOrdinal: number): void {
      if (none.get()) return;
      const ended = none.writing().delete(waits).where(eq(waits.runOrdinal, runOrdinal)).returning().all();
      const read = new Set(takenBy(ended));
      const isRead = ({ replyId }: Awaited): boolean => replyId !== null && read.has(replyId);
      for (const { callId, awaited } of read.size === 0 ? [] : db.select().from(waits).all()) {
        if (!awaited.some(isRead)) continue;
        change(callId, { awaited: awaited.map((who) => (isRead(who) ? { ...who, isRead: true } : who)) });
      }
    },

    isWaiting(runOrdinal: number): boolean {
      return this.ofRun(runOrdinal).some((wait) => isOpen(wait, clock.now()));
    },

    /** The waits of cycles that are over, by now. */
    over(): WaitRow[] {
      if (none.get()) return [];
      const asked = and(isNotNull(waits.root), isNotNull(waits.questionSeq));
      return db
        .select()
        .from(waits)
        .where(asked)
        .all()
        .filter((wait) => !isOpen(wait, clock.now()));
    },

    /** How many questions of cycles are open. */
    ofCycles: (): number => (none.get() ? 0 : countOf(db, waits, isNotNull(waits.root))),

    /** Whether a question in this space is still open. */
    awaits: (spaceId: string): boolean => !none.get() && inSpace(db).all({ key: spaceId }).length > 0,

    /**
     * Takes a message as an awaited answer. A reply to the agent's own words answers the question that it names
     * (`questionId` tells a wait's), or none. A reply to others answers by its place. A tool call is no answer. Returns
     * the waits that it is taken for, by their place.
     */
    answer({ message, repliesToIt }: DeliveredMessage, questionId: (wait: WaitRow) => string): WaitRow[] {
      const { id: messageId, kind, seq, spaceId, sender, replyTo } = message;
      if (kind === "tool_call") return [];
      const isAwaited = ({ id, replyId }: Awaited): boolean => id === sender.id && replyId === null;
      const awaiting = inSpace(db)
        .all({ key: spaceId })
        .filter((wait) => isOpen(wait, clock.now()))
        .filter(({ awaited, questionSeq }) => seq > (questionSeq ?? 0) && awaited.some(isAwaited));
      const named = awaiting.filter((wait) => replyTo === questionId(wait));
      const answered = named.length > 0 || repliesToIt ? named : awaiting;
      for (const { callId, questionSeq, awaited } of answered) {
        const taken = (who: Awaited): Awaited =>
          questionSeq === null
            ? { ...who, held: [...(who.held ?? []), { messageId, seq }] }
            : { ...who, replyId: messageId };
        change(callId, { awaited: awaited.map((who) => (who.id === sender.id ? taken(who) : who)) });
      }
      return answered.sort((one, other) => (one.questionSeq ?? seq) - (other.questionSeq ?? seq));
    },

    /** When the next wait's time is up, in milliseconds since the epoch. */
    nextDueAt(): number | undefined {
      const next = sql`select min(due_at) as at from ${waits} where due_at > ${clock.now()}`;
      return db.get<{ at: number | null }>(next).at ?? undefined;
    },
  };
};
