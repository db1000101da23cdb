import { and, asc, count, desc, eq, gt, isNotNull, isNull, lte, min, ne, or, sql } from "drizzle-orm";
import { DurableEvent } from "../../protocol/events.ts";
import type { Message } from "../../protocol/message.ts";
import { type Database, placeholders, prepared, Remembered } from "../../shared/database.ts";
import type { SaidAt } from "../../shared/stretches.ts";
import { maxTailLength } from "../bounds.ts";
import { type CallMessage, type CallOutcome, log, type ReadPlaces } from "../schema.ts";
import type { Routing } from "../wake.ts";
import { createRecentRows } from "./recent-rows.ts";

/**
 * The space's one append-only sequence of events.
 *
 * Invariants
 * 1. `seq` counts 1, 2, 3 … without a gap, in the order of appending; it is the only order, and every cursor.
 * 2. A message's `messageCount` is its ordinal among the messages. So pages, windows, totals and unread counts read as
 *    many rows as they answer, however long the log is.
 * 3. The frame in a row is what goes over the wire, byte by byte. Only an edit or a deletion of its message changes a
 *    row. Its own frame then holds it as it is, those of older changes none of its words. So a replay from any cursor
 *    tells no old words.
 * 4. The head and the newest rows are kept in memory as they are stored: this object is the table's only writer.
 */
export type LogRow = typeof log.$inferSelect;

export type Head = { seq: number; messageCount: number };

/** Of an edit or a deletion: where its old words were said, and the agent whose open mind has them as its own. */
type Left = { wasAt: number; by: string | null };

/** An event before it has its place in the log. */
export type NewEvent = DurableEvent extends infer Event
  ? Event extends { type: "space.message" }
    ? { type: "space.message"; message: Omit<Message, "seq">; routing: Routing }
    : Event extends { type: "message.updated" | "message.deleted" }
      ? { type: Event["type"]; message: Message; routing: Routing | null } & Pick<LogRow, "was"> & Left
      : Event extends { type: "space.message.updated" }
        ? { type: "space.message.updated"; message: CallMessage; outcome: CallOutcome | null }
        : Event extends { type: "member.read" | "member.left" }
          ? Omit<Event, "cursor"> & { places?: ReadPlaces | null }
          : Omit<Event, "cursor">
  : never;

/** Appends an event, within the transaction that makes it true. */
export type Append = (event: NewEvent) => LogRow;

/** The rows between two ordinals: (`over`, `upTo`]. */
export type Ordinals = { over: number; upTo: number };

export type Log = ReturnType<typeof createLog>;

/** The words of the index `log_members`. */
const isText = sql`${log.frame} ->> '$.message.kind' = 'text'`;
const isLeft = sql`${log.type} = 'member.left'`;

/** The words of the index `log_was`. */
const holdsWords = sql`${log.was} is not null`;

/** Events that are looked through for read marks at a time. */
const readsPageEvents = 500;

const counts = { seq: log.seq, messageCount: log.messageCount };
const newest = prepared((db) => db.select(counts).from(log).orderBy(desc(log.seq)).limit(1));
const hasId = eq(log.messageId, sql.placeholder("messageId"));
const message = prepared((db) => db.select().from(log).where(hasId));
const [isLater, limit] = [gt(log.seq, sql.placeholder("cursor")), sql.placeholder("limit")];
const rowsAfter = prepared((db) => db.select().from(log).where(isLater).orderBy(asc(log.seq)).limit(limit));
const columns = ["seq", "type", "entityId", "messageId", "messageCount", "routing", "outcome", "read"] as const;
// As a column's own placeholder, no words would be the text "null".
const insert = prepared((db) =>
  db.insert(log).values({ ...placeholders([...columns, "changedSeq", "frame"]), was: sql`${sql.placeholder("was")}` }),
);

export const createLog = (db: Database) => {
  const end = new Remembered<Head>(db, () => newest(db).get() ?? { seq: 0, messageCount: 0 });
  const recent = new Remembered(db, () => createRecentRows<LogRow>(maxTailLength));
  /** The first change whose old words are kept. */
  const keptWords = new Remembered(
    db,
    () =>
      db
        .select({ seq: min(log.seq) })
        .from(log)
        .where(holdsWords)
        .get()?.seq,
  );

  const head = (): Head => end.get();

  /** The events after `cursor`, in order. */
  const after = (cursor: number, limit: number): LogRow[] => {
    const kept = recent.get().between(cursor, Math.min(cursor + limit, head().seq));
    return kept ?? rowsAfter(db).all({ cursor, limit }).map(recent.get().keep);
  };

  /** The first `most` rows of those who left after `seq`, in order. It reads no others, however long the log is (B4). */
  const leftAfter = (seq: number, most: number): LogRow[] =>
    db
      .select()
      .from(log)
      .where(and(isLeft, gt(log.seq, seq)))
      .orderBy(asc(log.seq))
      .limit(most)
      .all();

  const isBetween = ({ over, upTo }: Ordinals) =>
    and(isNotNull(log.messageId), gt(log.messageCount, over), lte(log.messageCount, upTo));

  return {
    head,
    after,

    /** Gives the event the next place. Belongs in the transaction that makes it true. */
    append(event: NewEvent): LogRow {
      const { seq, messageCount } = head();
      const row = rowOf(event, seq + 1, messageCount);
      insert(db).run({ ...row, was: row.was && JSON.stringify(row.was) });
      if (row.was) keptWords.forget();
      end.set({ seq: row.seq, messageCount: row.messageCount });
      return recent.get().keep(row);
    },

    /**
     * Stores an edited or deleted message, in the transaction that appended the event at `changedSeq`. `row` is as it
     * was before. `updatedSeq`: the last event of its call, up to which all are rewritten. `saidAt`: of another text.
     */
    amend(row: LogRow, message: Message, changedSeq: number, updatedSeq?: number, saidAt?: SaidAt): void {
      const told = (each: LogRow, message: Message): LogRow => ({
        ...each,
        frame: JSON.stringify({ ...eventIn(each), message }),
      });
      // These columns alone: a row's indexes hold none of them.
      const store = (changed: LogRow): void => {
        const { seq, frame, changedSeq, routing, outcome } = changed;
        db.update(log).set({ frame, changedSeq, routing, outcome }).where(eq(log.seq, seq)).run();
        recent.get().change(changed);
      };
      // Nobody is woken by what was deleted, and it is unread no more.
      const routing = message.deleted || !row.routing ? null : { ...row.routing, ...(saidAt && { saidAt }) };
      const outcome = message.deleted && updatedSeq !== undefined ? "answered" : row.outcome;
      store({ ...told(row, message), changedSeq, routing, outcome });
      const last = row.changedSeq === null ? undefined : this.at(row.changedSeq);
      const { text: _, mentions: _mentions, ...wordless } = message;
      if (last) store(told(last, wordless));
      if (updatedSeq === undefined || updatedSeq === row.seq) return;
      const isOfCall = and(eq(log.type, "space.message.updated"), sql`${log.frame} ->> '$.message.id' = ${message.id}`);
      const updates = and(
        gt(log.seq, row.seq),
        lte(log.seq, updatedSeq),
        eq(log.entityId, row.entityId ?? ""),
        isOfCall,
      );
      for (const each of db.select().from(log).where(updates).all()) store(told(each, message));
    },

    /** All agents were told of the changes up to `seq`: the words that stood there before are no more. */
    forgetWords(seq: number): void {
      if ((keptWords.get() ?? Number.POSITIVE_INFINITY) > seq) return;
      keptWords
        .writing()
        .update(log)
        .set({ was: null })
        .where(and(holdsWords, lte(log.seq, seq)))
        .run();
      recent.forget();
    },

    /** Whether words that were edited or deleted are kept, since not all agents were told. */
    keepsWords: (): boolean => typeof keptWords.get() === "number",

    /** Whether an entity ever was in. It reads the rows of those who joined and left alone (B4). */
    everHad: (entityId: string): boolean =>
      db
        .select({ seq: log.seq })
        .from(log)
        .where(and(sql`(${log.type} = 'member.joined' or ${isLeft})`, eq(log.entityId, entityId)))
        .limit(1)
        .get() !== undefined,

    /** The first `limit` rows of (`over`, `upTo`] that are an entity's, or name it. */
    about: (entityId: string, over: number, upTo: number, limit: number): LogRow[] =>
      db
        .select()
        .from(log)
        .where(
          and(
            gt(log.seq, over),
            lte(log.seq, upTo),
            or(eq(log.entityId, entityId), sql`instr(${log.frame}, ${entityId}) > 0`),
          ),
        )
        .orderBy(asc(log.seq))
        .limit(limit)
        .all(),

    /** Another frame for a row: the same event, without a name. */
    reframe(row: LogRow, frame: string): void {
      db.update(log).set({ frame }).where(eq(log.seq, row.seq)).run();
      recent.get().change({ ...row, frame });
    },

    /** Other facts that nobody is shown, for a message. */
    reroute(row: LogRow, routing: Routing): void {
      db.update(log).set({ routing }).where(eq(log.seq, row.seq)).run();
      recent.get().change({ ...row, routing });
    },

    /** The messages that others elsewhere tell as their origin, and the deletions of such. */
    toldElsewhere: (): LogRow[] => db.select().from(log).where(sql`instr(${log.routing}, '"told":') > 0`).all(),

    /** The messages that were let out into this space from another confidential one. */
    letOut: (): LogRow[] => db.select().from(log).where(sql`instr(${log.routing}, '"letOutBy":') > 0`).all(),

    findMessage: (messageId: string): LogRow | undefined => message(db).get({ messageId }),

    /** The event at `seq`. */
    at(seq: number): LogRow | undefined {
      const [row] = after(seq - 1, 1);
      return row?.seq === seq ? row : undefined;
    },

    /** The read marks among the `most` events after `seq`, and the last marks of all who left since, in order. */
    *readsAfter(seq: number, most: number): Generator<LogRow> {
      const end = Math.min(seq + most, head().seq);
      for (let from = seq; from < end; from += readsPageEvents) {
        const isIn = and(gt(log.seq, from), lte(log.seq, Math.min(from + readsPageEvents, end)));
        const isRead = and(isIn, or(eq(log.type, "member.read"), eq(log.type, "member.left")));
        yield* db.select().from(log).where(isRead).orderBy(asc(log.seq)).all();
      }
      yield* leftAfter(end, most);
    },

    leftAfter,

    /** All agents that were in after `seq`, some time. It reads the rows of those who joined and left alone (B4). */
    agents(seq = 0): string[] {
      const type = sql<string | null>`${log.frame} ->> '$.member.type'`;
      const cameOrLeft = sql`${log.type} = 'member.joined' or ${isLeft}`;
      const rows = db
        .select({ seq: log.seq, id: log.entityId, type })
        .from(log)
        .where(cameOrLeft)
        .orderBy(asc(log.seq));
      const agents = new Set<string>();
      for (const row of rows.all()) {
        if (row.type === "agent") agents.add(row.id ?? "");
        else if (row.type === null && row.seq <= seq) agents.delete(row.id ?? "");
      }
      return [...agents];
    },

    /** Messages after `seq` that are not deleted, without those of tool calls that are open. */
    living(seq: number, limit: number): LogRow[] {
      const isClosed = sql`${log.seq} not in (select seq from tool_calls where is_open = 1)`;
      const isLiving = and(gt(log.seq, seq), eq(log.type, "space.message"), isNotNull(log.routing), isClosed);
      return db.select().from(log).where(isLiving).orderBy(asc(log.seq)).limit(limit).all();
    },

    /** How many messages each member said on each day, of the events after one up to another. */
    said(after: number, upTo: number): { day: string; type: string; id: string; count: number }[] {
      const day = sql<string>`substr(${log.frame} ->> '$.message.createdAt', 1, 10)`.as("day");
      const type = sql<string>`${log.frame} ->> '$.message.sender.type'`.as("sender_type");
      const isSaid = and(
        gt(log.seq, after),
        lte(log.seq, upTo),
        eq(log.type, "space.message"),
        isText,
        isNull(log.outcome),
      );
      const said = db.select({ day, type, id: log.entityId, count: count() }).from(log).where(isSaid);
      const rows = said.groupBy(sql`day`, sql`sender_type`, log.entityId).all();
      return rows.map((row) => ({ ...row, id: row.id ?? "" }));
    },

    /** How many messages there are up to and with `seq`. */
    countAt(seq: number): number {
      const upTo = db.select(counts).from(log).where(lte(log.seq, seq)).orderBy(desc(log.seq)).limit(1).get();
      return upTo?.messageCount ?? 0;
    },

    /** The messages between two ordinals, oldest first; to who hears nothing after `openUpTo`, as `heardOf` tells them. */
    messages(between: Ordinals, openUpTo = Number.POSITIVE_INFINITY): Message[] {
      const { frame, changedSeq } = log;
      const rows = db.select({ frame, changedSeq }).from(log).where(isBetween(between)).orderBy(asc(log.messageCount));
      return rows.all().map((row) => heardOf(messageOf(row.frame), row.changedSeq, openUpTo));
    },

    /** How many of the messages between two ordinals are not `entityId`'s own and not deleted, counted no further than `most`. */
    countOthers(entityId: string, between: Ordinals, most: number): number {
      const isOthers = and(isBetween(between), ne(log.entityId, entityId), isNotNull(log.routing));
      const others = db.select({ seq: log.seq }).from(log).where(isOthers).orderBy(asc(log.messageCount)).limit(most);
      return others.all().length;
    },

    /** The messages between two ordinals that an entity said, or whose routing names it, oldest first. */
    naming(entityId: string, between: Ordinals): LogRow[] {
      const isNamed = or(eq(log.entityId, entityId), sql`instr(${log.routing}, ${entityId}) > 0`);
      return db
        .select()
        .from(log)
        .where(and(isBetween(between), isNamed))
        .orderBy(asc(log.messageCount))
        .all();
    },

    clear(): void {
      recent.forget();
      end.writing().delete(log).run();
    },
  };
};

const parsed = new WeakMap<LogRow, Message>();

/** The row's message, which several are told of: parsed once. Nobody changes it. */
export const messageIn = (row: LogRow): Message => {
  const message = parsed.get(row) ?? messageOf(row.frame);
  parsed.set(row, message);
  return message;
};

const rowOf = (event: NewEvent, seq: number, messageCount: number): LogRow => {
  const none = { messageId: null, routing: null, outcome: null, read: null, changedSeq: null, was: null };
  const row = { seq, type: event.type, messageCount, ...none };
  if (event.type === "space.message") {
    const { type, routing } = event;
    const message: Message = { ...event.message, seq };
    const { id: messageId, sender } = message;
    const frame = JSON.stringify({ type, cursor: seq, message });
    const said = { ...row, entityId: sender.id, messageId, messageCount: messageCount + 1, routing, frame };
    parsed.set(said, message);
    return said;
  }
  if (event.type === "message.updated" || event.type === "message.deleted") {
    const { type, message, was, wasAt: changedSeq, by: entityId, routing } = event;
    const frame = JSON.stringify({ type, cursor: seq, message });
    return { ...row, entityId, changedSeq, was, routing, frame };
  }
  if (event.type === "space.message.updated") {
    const { type, message, outcome } = event;
    return { ...row, entityId: message.sender.id, outcome, frame: JSON.stringify({ type, cursor: seq, message }) };
  }
  if (event.type === "member.read" || event.type === "member.left") {
    const { places: read = null, ...shown } = event;
    return { ...row, entityId: event.entityId, read, frame: JSON.stringify({ ...shown, cursor: seq }) };
  }
  return { ...row, entityId: subjectOf(event), frame: JSON.stringify({ ...event, cursor: seq }) };
};

const subjectOf = (
  event: Exclude<NewEvent, { message: unknown } | { type: "member.read" | "member.left" }>,
): string | null => {
  switch (event.type) {
    case "member.joined":
      return event.member.id;
    case "space.updated":
    case "message.routed":
      return null;
    default:
      return event.entityId;
  }
};

/** A message, for who hears nothing after `openUpTo`: what was edited after that is deleted for them. */
export const heardOf = (message: Message, changedSeq: number | null, openUpTo: number): Message =>
  (changedSeq ?? 0) <= openUpTo || message.deleted
    ? message
    : tombstoneOf(message, { at: message.editedAt ?? message.createdAt });

/** What is left of a message that is deleted. Its sender finds it by its `clientKey`. */
export const tombstoneOf = (
  { id, seq, spaceId, sender, clientKey, createdAt }: Message,
  deleted: NonNullable<Message["deleted"]>,
): Message => ({ id, seq, spaceId, kind: "text", sender, clientKey, createdAt, deleted });

const eventIn = ({ frame }: LogRow): DurableEvent => DurableEvent.parse(JSON.parse(frame));

/** The message in a stored frame, as it was then, or as it is where it was edited or deleted. Parsed, not trusted: what an older version stored must still make sense. */
export const messageOf = (frame: string): Message => {
  const event = DurableEvent.parse(JSON.parse(frame));
  if ("message" in event) return event.message;
  throw new Error(`log: ${event.type} is not a message`);
};
