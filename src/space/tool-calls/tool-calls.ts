import { and, asc, desc, eq, isNotNull, lte, min, notInArray, sql } from "drizzle-orm";
import type { Message } from "../../protocol/message.ts";
import { among, type Database } from "../../shared/database.ts";
import { isOwnedBy } from "../../shared/ids.ts";
import { type CallMessage, members, toolCalls } from "../schema.ts";
import { isOver, withShown } from "./call-state.ts";

export type CallRow = typeof toolCalls.$inferSelect;

const asStored = ({ message, ...row }: CallRow): CallRow => ({
  ...row,
  message: { ...message, toolCall: withShown(message.toolCall) },
});

const isNamed = (entityId: string) =>
  sql`instr(${toolCalls.message}, ${entityId}) > 0 or instr(coalesce(${toolCalls.openMessage}, ''), ${entityId}) > 0`;

/** In these very words, so that the partial index answers. */
const isOpen = sql`${toolCalls.isOpen} = 1`;

export type ToolCalls = ReturnType<typeof createToolCalls>;

/**
 * How the tool calls that show here stand now.
 *
 * Invariants
 * 1. A row is its message as the newest of its events in the log tells it; both are written in one transaction.
 * 2. `isOpen` is set until the call is over, `expiresAt` while people may answer.
 * 3. `openMessage` is set once, by the first change after the space became confidential, of a call that showed before. Its
 *    origin alone changes later: words that go from there go from both.
 */
export const createToolCalls = (db: Database) => {
  return {
    /** By the `seq` of its message. */
    at(seq: number): CallRow | undefined {
      const row = db.select().from(toolCalls).where(eq(toolCalls.seq, seq)).get();
      return row && asStored(row);
    },

    /**
     * The messages with their calls as they stand now. Reads a row for each that is one. For a mind that hears nothing of a
     * confidential space: as they stood when it became so, its own calls aside.
     */
    current(messages: Message[], deafMindId?: string): Message[] {
      const seqs = messages.flatMap(({ kind, seq }) => (kind === "tool_call" ? [seq] : []));
      if (seqs.length === 0) return messages;
      const found = db.select().from(toolCalls).where(among(toolCalls.seq, seqs)).all();
      const known = ({ openMessage, ...row }: CallRow): CallRow => {
        const isOwn = deafMindId === undefined || isOwnedBy(row.message.toolCall.id, deafMindId);
        return { ...row, openMessage, message: isOwn ? row.message : (openMessage ?? row.message) };
      };
      const bySeq = new Map(found.map(known).map((row) => [row.seq, asStored(row).message]));
      return messages.map((message) => bySeq.get(message.seq) ?? message);
    },

    /** Belongs in the transaction that appended the message, as `updatedSeq` says. `confidentialFrom`: the space's. */
    store(message: CallMessage, updatedSeq: number, confidentialFrom: number | null): void {
      const { status, awaits } = message.toolCall;
      const expiresAt = status === "requires_action" && awaits ? Date.parse(awaits.expiresAt) : null;
      const state = { isOpen: !isOver(status), expiresAt, updatedSeq, message };
      const isOpenStill = sql`${toolCalls.openMessage} IS NULL AND ${toolCalls.updatedSeq} <= ${confidentialFrom}`;
      const stood = sql`CASE WHEN ${isOpenStill} THEN ${toolCalls.message} ELSE ${toolCalls.openMessage} END`;
      const origin = JSON.stringify(message.origin ?? null);
      const openMessage = message.origin ? sql`json_set(${stood}, '$.origin', json(${origin}))` : stood;
      db.insert(toolCalls)
        .values({ seq: message.seq, agentId: message.sender.id, ...state })
        .onConflictDoUpdate({ target: toolCalls.seq, set: { ...state, openMessage } })
        .run();
    },

    /** How many are open, counted no further than `most`. */
    countOpen: (most: number): number =>
      db.select({ seq: toolCalls.seq }).from(toolCalls).where(isOpen).limit(most).all().length,

    openOf(agentId: string, limit: number): CallRow[] {
      const own = and(isOpen, eq(toolCalls.agentId, agentId));
      return db.select().from(toolCalls).where(own).orderBy(asc(toolCalls.seq)).limit(limit).all();
    },

    /** Open calls of those who are in the space no more. */
    orphans(limit: number): CallRow[] {
      const present = db.select({ id: members.entityId }).from(members);
      const left = and(isOpen, notInArray(toolCalls.agentId, present));
      return db.select().from(toolCalls).where(left).limit(limit).all();
    },

    /** Those that showed up to this place of the log and wait for people, the oldest first. */
    asked(upTo: number, limit: number): CallRow[] {
      const isAsked = and(isNotNull(toolCalls.expiresAt), lte(toolCalls.seq, upTo));
      return db.select().from(toolCalls).where(isAsked).orderBy(asc(toolCalls.seq)).limit(limit).all();
    },

    /** The newest of those that wait for this person, who has not answered; the oldest of these first. */
    askedOf(entityId: string, limit: number): CallRow[] {
      const [approvers, answers] = ["approvers", "answers"].map((of) => `$.toolCall.awaits.${of}`);
      const isAsked = and(
        isNotNull(toolCalls.expiresAt),
        sql`(json_type(${toolCalls.message}, ${approvers}) is null
          or ${entityId} in (select value from json_each(${toolCalls.message}, ${approvers})))`,
        sql`${entityId} not in (select value ->> 'entityId' from json_each(${toolCalls.message}, ${answers}))`,
      );
      return db.select().from(toolCalls).where(isAsked).orderBy(desc(toolCalls.seq)).limit(limit).all().reverse();
    },

    /** Those whose time is up, the earliest first. */
    due(now: number, limit: number): CallRow[] {
      const isDue = lte(toolCalls.expiresAt, now);
      return db.select().from(toolCalls).where(isDue).orderBy(asc(toolCalls.expiresAt)).limit(limit).all();
    },

    /** When the next one's time is up. */
    nextDue(): number | undefined {
      const waiting = db.select({ at: min(toolCalls.expiresAt) }).from(toolCalls);
      return waiting.where(isNotNull(toolCalls.expiresAt)).get()?.at ?? undefined;
    },

    /** Whether one of them names the entity. */
    name: (entityId: string): boolean =>
      db.select({ seq: toolCalls.seq }).from(toolCalls).where(isNamed(entityId)).limit(1).get() !== undefined,

    /** Each that names the entity, as it is without it. */
    reshape(entityId: string, shaped: (message: Message) => Message): void {
      const reshaped = (was: CallMessage): CallMessage => {
        const { toolCall = was.toolCall, ...now } = shaped(was);
        return { ...now, kind: "tool_call", toolCall };
      };
      for (const row of db.select().from(toolCalls).where(isNamed(entityId)).all()) {
        const now = { message: reshaped(row.message), openMessage: row.openMessage && reshaped(row.openMessage) };
        db.update(toolCalls).set(now).where(eq(toolCalls.seq, row.seq)).run();
      }
    },

    /** The place of the first message whose call is open. */
    firstOpen: (): number | undefined =>
      db.select({ seq: toolCalls.seq }).from(toolCalls).where(isOpen).orderBy(asc(toolCalls.seq)).limit(1).get()?.seq,

    /** Its message was deleted. */
    remove(seq: number): void {
      db.delete(toolCalls).where(eq(toolCalls.seq, seq)).run();
    },

    clear(): void {
      db.delete(toolCalls).run();
    },
  };
};
