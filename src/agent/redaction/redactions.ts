import { and, asc, eq, gte, isNotNull, lt, min, or, sql } from "drizzle-orm";
import type { Redaction } from "../../protocol/message-change.ts";
import type { Clock } from "../../shared/clock.ts";
import { among, type Database, Remembered } from "../../shared/database.ts";
import { fault } from "../../shared/fault.ts";
import { heldBy } from "../../shared/stretches.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  longestRedactionPauseMs,
  longestRedactionWaitMs,
  maxJoinedCharacters,
  maxRedactionsKept,
  redactionAgainMs,
  redactionPauseMs,
  redactionRows,
  redactionWaitMs,
} from "../bounds.ts";
import type { ToldState } from "../records.ts";
import { runs, summaries } from "../schema.ts";
import { deletedSpaceName } from "../spaces.ts";
import type { Scrub } from "./forms.ts";
import {
  type Group,
  isBegun,
  isOfErased,
  isPart,
  lengthOf,
  mergedWords,
  type Row,
  scrubOf,
  together,
} from "./parts.ts";
import { partWithout, places, scrubRows, toldWithout } from "./places.ts";
import { redactions } from "./schema.ts";
import { createSummaryDrops } from "./summary-drops.ts";

/**
 * Takes words out of all that this mind of an agent keeps: those of messages that were edited or deleted, or others.
 *
 * Invariants
 * 1. A redaction is stored, with the words, in the transaction that the agent hears of it in. The timer `redaction` is set
 *    until it is over; then its words are gone too. A crash repeats at most the rows of one go, which changes nothing.
 * 2. One go looks at `redactionRows` rows at most, in one transaction with the place up to which it came.
 * 3. An erased entity's words wait for more and are looked for together: each look goes through all, one after another.
 *    Many agents hear of it at once: each begins at another, and rests longer the later its timer goes off.
 * 4. Until it is over, whatever is journaled or indexed loses the words as it comes in (`clean`). A run that was under
 *    way, or an answer that was awaited, may hold them in memory. So it is over only once none of these goes on.
 * 5. A model's summary of what held the words is made anew, or dropped if its window is over.
 * 6. Changes of what its runs knew are told in STATE CHANGES.
 */
export const redactionTimer = "redaction";

type Around = {
  db: Database;
  clock: Clock;
  timers: Timers;
  /** The index of search: it takes words out of its next passages, and answers how far that came. */
  search: () => {
    redact(
      scrub: Scrub,
      of: Pick<Row, "id" | "since" | "text" | "messageIds">,
      after: number,
      limit: number,
    ): { upTo: number | undefined; changed: number };
  };
  /** Tells the agent's other minds. */
  tellMinds: (redaction: Redaction) => void;
  /** The words of messages that its runs knew are gone here. In a transaction. */
  forgotten: (messageIds: string[]) => void;
  /** A summary is to be made anew. */
  summarise: () => void;
  /** Whether a run up to this one is in its loop. One that pauses, or was cut, reads its journal anew when it goes on. */
  isLive: (upTo: number) => boolean;
  /** A call lost words: who lists it is told anew. In a transaction. */
  relist: (callId: string) => void;
  /** Crashes the object in tests. */
  ctx: Pick<DurableObjectState, "abort" | "storage">;
};

export type Redactions = ReturnType<typeof createRedactions>;

/** A message as it became, in STATE CHANGES. */
export type ChangedMessage = { messageId: string; text: string | null };

/** An agent rests this many times as long as others made its timer wait. */
const restPerLate = 4;

/** After a look for many words the next waits longer: each goes through all rows. */
const restPerCharacterMs = 0.5;

const jitterMs = (): number => redactionWaitMs * Math.random();

/** The places, and after them the index of search. */
const searchPlace = places.length;

export const createRedactions = ({ db, clock, timers, search, tellMinds, forgotten, ctx, ...around }: Around) => {
  const isOpen = isNotNull(redactions.words);
  const open = new Remembered(db, () => db.select().from(redactions).where(isOpen).orderBy(asc(redactions.at)).all());
  /** To make one takes longer than to look at many rows, and each go notes how far it came. */
  const made = new Map<string, Scrub>();
  const scrubOfOpen = (row: Row): Scrub => {
    const { id, words, saidAt, since, text, kept, senderName, messageIds } = row;
    const of = JSON.stringify([id, words, saidAt, since, text, kept, senderName, messageIds]);
    const scrub = made.get(of) ?? scrubOf(row);
    made.set(of, scrub);
    return scrub;
  };
  const scrubs = new Remembered(db, () => open.get().map(scrubOfOpen));
  const known = new Remembered<ChangedMessage[]>(db, () => {
    const { isKnown, at } = redactions;
    const rows = db.select().from(redactions).where(eq(isKnown, true)).orderBy(asc(at)).all();
    return rows.flatMap(({ id, text }) => (id.startsWith("msg_") ? [{ messageId: id, text }] : []));
  });
  /** How often words began to go, or rows lost some. */
  let moves = 0;
  /** Awaited work that may still bring old words. */
  const underWay = new Set<symbol>();
  /** By redaction: what was awaited when it came. After a crash, nothing. */
  const awaited = new Map<string, Set<symbol>>();

  const store = (ids: string[], changes: Partial<Row>): void => {
    db.update(redactions).set(changes).where(among(redactions.id, ids)).run();
    open.forget();
    scrubs.forget();
  };

  const { renewSummary, dropSummaries } = createSummaryDrops(db, clock, around.summarise);

  /** The first run whose rows may hold words that were said at this time, and the first row. */
  const firstSince = (since: number): { run: number; row: number } => {
    const isLater = sql`${runs.completedAt} is null or ${runs.completedAt} >= ${since}`;
    const places = { run: min(runs.ordinal), row: min(runs.journalFrom) };
    const first = db.select(places).from(runs).where(isLater).get();
    return { run: first?.run ?? 1, row: first?.row ?? 1 };
  };

  /** Looks at the next rows of a redaction, and notes in it how far that came. Answers how many they were. */
  const step = (row: Row, scrub: Scrub): number => {
    const place = places[row.place];
    if (!place) {
      const { upTo: next, changed } = search().redact(scrub, row, row.after, redactionRows);
      row.rows += changed;
      Object.assign(row, next === undefined ? { place: row.place + 1, after: 0 } : { after: next });
      return redactionRows / 4;
    }
    const { table } = place;
    if (row.after === 0 && row.since > 0 && (table === "journal" || table === "runs")) {
      const first = firstSince(row.since);
      row.after = (table === "journal" ? first.row : first.run) - 1;
    }
    if (place.ofErased && (!isOfErased(row.id) || row.id.includes(" "))) {
      Object.assign(row, { place: row.place + 1, after: 0 });
      return 0;
    }
    const { seen, more } = scrubRows(db, place, row, scrub);
    row.rows += seen.filter(({ changed }) => changed).length;
    if (table === "calls") for (const { key, changed } of seen) if (changed) around.relist(String(key));
    if (table === "journal") {
      const known = seen.filter(({ changed, named }) => changed || named);
      const from = known.map((each) => Number(each.row.run_ordinal));
      if (from.length > 0) row.knownFrom = Math.min(row.knownFrom ?? Number.POSITIVE_INFINITY, ...from);
    }
    Object.assign(row, more ? { after: Number(seen.at(-1)?.key ?? 0) } : { place: row.place + 1, after: 0 });
    // Where rows are long, few of them are half of a go.
    return Math.max(seen.length + 1, more ? redactionRows / 2 : 0);
  };

  const newestRun = (): number =>
    db.select({ last: sql<number>`coalesce(max(ordinal), 0)` }).from(runs).get()?.last ?? 0;

  const isHeld = ({ id, lastRun }: Row): boolean =>
    around.isLive(lastRun) || [...(awaited.get(id) ?? [])].some((each) => underWay.has(each));

  /** Until when no other look for parts begins. */
  let restUntil = 0;
  const dueAt = ({ at }: Row): number => Math.max(at + redactionWaitMs, restUntil);

  /** The redactions of this go. Parts that are due form one group. Each other redaction is a group of its own. */
  const groups = (): Group[] => {
    const found: Group[] = [];
    const parts = open.get().filter(isPart);
    const moving = parts.find((row) => isBegun(row) && row.place <= searchPlace);
    const first = moving ?? parts.find((row) => !isBegun(row) && dueAt(row) <= clock.now());
    let length = 0;
    const isWithFirst = (row: Row): boolean => {
      const [mine, its] = [row, first].map((each) => [
        each?.id.split(" ")[0],
        each?.senderName,
        each?.place,
        each?.after,
      ]);
      if (JSON.stringify(mine) !== JSON.stringify(its) || length >= maxJoinedCharacters) return false;
      length += moving ? 0 : lengthOf(row);
      return true;
    };
    const [head, ...rest] = first ? parts.filter(isWithFirst) : [];
    if (head) found.push([head, ...rest]);
    if (head && !moving) restUntil = clock.now() + Math.min(longestRedactionWaitMs, length * restPerCharacterMs);
    for (const row of open.get()) if (!isPart(row) || row.place > searchPlace) found.push([row]);
    return found;
  };

  /** One go. In a transaction. Answers when the next is due, in milliseconds from now; undefined where nothing is left to be done. */
  const go = (): number | undefined => {
    let left = redactionRows;
    for (const group of groups()) {
      const row = together(group);
      const wasLooking = row.place <= searchPlace;
      if (wasLooking) {
        moves += 1;
        const scrub = scrubOfOpen(row);
        while (row.place <= searchPlace && left > 0) left -= step(row, scrub);
      }
      // A run that began meanwhile may have read rows before this redaction came to them.
      if (wasLooking && row.place > searchPlace) {
        row.lastRun = newestRun();
        for (const each of group) {
          dropSummaries({ ...each, knownFrom: row.knownFrom });
          awaited.set(each.id, new Set(underWay));
        }
      }
      const { id, place, after, knownFrom, rows, lastRun } = row;
      const changes = { place, after, knownFrom, lastRun };
      if (place > searchPlace && !isHeld(row)) {
        for (const each of group) {
          finish({ ...each, knownFrom }, { ...changes, rows: each.id === id ? rows : each.rows });
        }
      } else if (wasLooking) {
        const ids = group.map((each) => each.id);
        store(ids, changes);
        if (rows !== group[0].rows) store([id], { rows });
      }
    }
    // Whatever was read of these rows is read anew.
    db.epoch += 1;
    const rest = open.get();
    if (rest.length === 0) return undefined;
    const waits = (row: Row): number => {
      if (row.place > searchPlace) return redactionAgainMs;
      if (!isPart(row)) return 0;
      return isBegun(row) ? redactionAgainMs : dueAt(row) + jitterMs() - clock.now();
    };
    return Math.max(redactionPauseMs, Math.min(...rest.map(waits)));
  };

  /** An erased entity's words make many redactions: one row keeps how many rows all of them changed. */
  const addUp = (id: string): void => {
    const [entityId] = id.split(" ");
    if (id === entityId) return;
    const [row] = db.delete(redactions).where(eq(redactions.id, id)).returning().all();
    if (!row) return;
    const rows = sql`${redactions.rows} + ${row.rows}`;
    db.insert(redactions)
      .values({ ...row, id: `${entityId} rows`, isKnown: false, spaceId: null })
      .onConflictDoUpdate({ target: redactions.id, set: { rows, at: clock.now() } })
      .run();
  };

  const finish = ({ id, knownFrom, messageIds }: Row, changes: Partial<Row>): void => {
    awaited.delete(id);
    made.clear();
    const gone = { words: null, saidAt: null, kept: null, senderName: null, messageIds: null };
    store([id], { ...changes, ...gone, isKnown: knownFrom !== null });
    const known = knownFrom === null ? [] : [id, ...(messageIds ?? [])].filter((each) => each.startsWith("msg_"));
    if (known.length > 0) forgotten(known);
    if (isOfErased(id)) addUp(id);
    const oldest = sql`(select at from redactions order by at desc limit 1 offset ${maxRedactionsKept})`;
    db.run(sql`delete from redactions where words is null and at < ${oldest}`);
  };

  const arm = (pauseMs: number | undefined): void => {
    if (pauseMs === undefined) timers.clear(redactionTimer);
    else timers.set(redactionTimer, clock.now() + pauseMs);
  };

  return {
    renewSummary,

    /**
     * Begins a redaction. In a transaction. The first go is made at once, unless it is a part that waits for others.
     * `isHeard`: the space itself says what the message is now, and who tells this does not know it.
     */
    enter(redaction: Redaction, isHeard = false): void {
      const { id, saidAt = null, senderName = null, spaceId = null, messageIds = null } = redaction;
      const before = db.select().from(redactions).where(eq(redactions.id, id)).get();
      const { text = (isHeard && before?.text) || null } = redaction;
      const said = mergedWords([...(before ? [before] : []), { ...redaction, saidAt }]);
      const since = Math.min(redaction.since, before?.since ?? redaction.since);
      // Words that an edit takes away and the next brings back have gone from all that was written between.
      const kept = before?.words && text !== null ? heldBy(before.kept ?? before.text ?? "", text) : null;
      const values = { ...said, since, text, kept, senderName, spaceId, lastRun: newestRun() };
      const fresh = { ...values, messageIds, place: 0, after: 0, knownFrom: null, at: clock.now() };
      const isKnown = before?.isKnown ?? false;
      db.insert(redactions)
        .values({ id, isKnown, ...fresh })
        .onConflictDoUpdate({ target: redactions.id, set: fresh })
        .run();
      // An edited message keeps its new text here. The text goes when its author or its space goes.
      const isOfSpace = spaceId !== null && id.startsWith(`${spaceId} `);
      const edits = isOfSpace ? eq(redactions.spaceId, spaceId) : among(redactions.id, messageIds ?? []);
      db.update(redactions).set({ text: null }).where(edits).run();
      moves += 1;
      open.forget();
      scrubs.forget();
      known.forget();
      awaited.set(id, new Set(underWay));
      tellMinds(redaction);
      if (isPart({ id, messageIds })) timers.setNoLater(redactionTimer, clock.now() + redactionWaitMs + jitterMs());
      else arm(go());
    },

    /**
     * Begins a redaction that is not known yet, or is to begin again. In a transaction. Answers whether it is over, with all of
     * who is erased, and how many rows that changed.
     */
    forgets({ isAgain = false, ...redaction }: Redaction): { isDone: boolean; rows: number } {
      const isMore = and(gte(redactions.id, `${redaction.id} `), lt(redactions.id, `${redaction.id}!`));
      const isIts = or(eq(redactions.id, redaction.id), isMore);
      const find = () => db.select().from(redactions).where(isIts).all();
      // One of an erased entity's many was told before it is asked for, and its row goes with its words.
      const isOneOfMany = isOfErased(redaction.id) && redaction.id.includes(" ");
      const isToEnter = !isOneOfMany && (isAgain || !find().some(({ id }) => id === redaction.id));
      if (isToEnter) this.enter(redaction);
      const all = find();
      return { isDone: all.every(({ words }) => words === null), rows: all.reduce((sum, { rows }) => sum + rows, 0) };
    },

    /** A space was deleted: what waits from it goes, and the summary of it. In a transaction. */
    leaveSpace(spaceId: string): void {
      const isIts = sql`type = 'space_message' and data ->> '$.delivered.message.spaceId' = ${spaceId}`;
      db.run(sql`delete from overheard where ${isIts}`);
      db.run(sql`delete from inbox where status <> 'taken' and ${isIts}`);
      db.run(sql`update inbox set data = json_set(data, '$.spaceName', ${deletedSpaceName}) where ${isIts}`);
      db.delete(summaries).where(eq(summaries.subject, spaceId)).run();
      db.epoch += 1;
    },

    /** The space is no more: nobody is told of what changed there. Answers whether no redaction of it is under way. */
    dropSpace(spaceId: string): boolean {
      const isIts = eq(redactions.spaceId, spaceId);
      if (open.get().some((row) => row.spaceId === spaceId)) return false;
      db.delete(redactions).where(isIts).run();
      known.forget();
      return true;
    },

    /** The timer `redaction` went off. */
    fired(): void {
      // Where the thread is busy, the timer goes off late.
      const lateMs = Math.max(0, clock.now() - (timers.dueAt(redactionTimer) ?? clock.now()));
      const restMs = Math.min(longestRedactionPauseMs, lateMs * restPerLate);
      const nextMs = db.transaction(go);
      arm(nextMs === undefined ? undefined : Math.max(nextMs, restMs));
      fault("agent.mid-redaction", ctx);
    },

    /** A value as it may be kept: without the words that are being taken out. `writtenAt`: now, if left out. */
    clean<Value>(value: Value, writtenAt?: number): Value {
      const names = (scrub: Scrub, left: Value): boolean => scrub.names(JSON.stringify(left) ?? "");
      return scrubs.get().reduce((left, scrub) => scrub.value(left, names(scrub, left), writtenAt), value);
    },

    /** A part of what a compartment is fed, likewise. */
    cleanPart: <Value>(value: Value): Value =>
      scrubs.get().reduce((left, scrub) => partWithout(left, scrub, scrub.names(JSON.stringify(left))), value),

    /** Takes them out of what a run was told of its state, too. */
    cleanTold: (told: ToldState): ToldState =>
      scrubs.get().reduce((left, scrub) => toldWithout(left, scrub, scrub.names(JSON.stringify(left))), told),

    /** Does what may bring words that are old by the time it ends. What it brings goes through `clean`. */
    async during<T>(work: () => Promise<T>): Promise<T> {
      const token = Symbol();
      underWay.add(token);
      try {
        return await work();
      } finally {
        underWay.delete(token);
      }
    },

    /** A number that changes when words are taken out. Rows that were read before that may hold old words. */
    moves: (): number => moves,

    /** The messages that became others, of those that its runs knew, oldest first. */
    known: (): ChangedMessage[] => known.get(),
  };
};
