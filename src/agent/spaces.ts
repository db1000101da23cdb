import { eq, gt, isNotNull, sql } from "drizzle-orm";
import type { LeftToHistory } from "../protocol/exported-history.ts";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import { type Database, prepared, Remembered, rowsBy } from "../shared/database.ts";
import { maxWindowMessages } from "./bounds.ts";
import { spaces } from "./schema.ts";

/**
 * The spaces that this agent is in, as their deliveries say. They are kept so that composing needs no RPC.
 *
 * Invariants
 * 1. A row is read once and remembered until another column than its cursor is written: this object is the table's only
 *    writer.
 * 2. In a compartment the open mind's other spaces are known too, as it was fed them: they can be entered and read. They
 *    have no row here, no delivery and no mark; what stands there counts as seen.
 */
export type SpaceRow = typeof spaces.$inferSelect;

const byName = (one: SpaceSnapshot, other: SpaceSnapshot): number =>
  one.name.localeCompare(other.name) || one.id.localeCompare(other.id);

/** The name that a deleted space has from then on. */
export const deletedSpaceName = "(deleted space)";

/** Rows remembered at most: an agent may be in many spaces, and each row holds its space's members. */
const maxKnownRows = 50;
export type Spaces = ReturnType<typeof createSpaces>;

/** The open mind's spaces, of a compartment. */
type Fed = {
  spaces(): SpaceSnapshot[];
  space(id: string): SpaceSnapshot | undefined;
  keptDays(): Record<string, number>;
};

/** A space of the open mind, as if all of it had been read. */
const fedRow = (snapshot: SpaceSnapshot): SpaceRow => {
  const all = { cursor: Number.MAX_SAFE_INTEGER, processedSeq: Number.MAX_SAFE_INTEGER, acknowledged: [] };
  return { id: snapshot.id, snapshot, version: snapshot.version, ...all, leftToHistory: 0, left: false };
};

const one = prepared((db) => rowsBy(db, spaces, spaces.id));
const move = prepared((db) =>
  db
    .update(spaces)
    .set({
      cursor: sql`${sql.placeholder("cursor")}`,
      leftToHistory: sql`${sql.placeholder("leftToHistory")}`,
    })
    .where(eq(spaces.id, sql.placeholder("id"))),
);

export const createSpaces = (db: Database, fed: Fed) => {
  const known = new Remembered(db, () => new Map<string, SpaceRow>());

  const { id, cursor, snapshot } = spaces;
  const isMine = eq(spaces.left, false);
  const members = new Remembered(db, () =>
    db
      .select({ snapshot })
      .from(spaces)
      .where(isMine)
      .all()
      .map((row) => row.snapshot)
      .sort(byName),
  );
  const days = new Remembered(db, () => {
    // A deleted one keeps nothing.
    const keeps = sql<number>`iif(${snapshot} ->> '$.deleted', 0, ${snapshot} ->> '$.retentionDays')`;
    const rows = db.select({ id, keeps }).from(spaces).where(isNotNull(keeps)).all();
    return Object.fromEntries(rows.map((row) => [row.id, row.keeps]));
  });
  const unread = new Remembered(db, () =>
    db
      .select()
      .from(spaces)
      .where(gt(spaces.leftToHistory, 0))
      .all()
      .map((row) => ({ id: row.id, name: row.snapshot.name, messages: row.leftToHistory })),
  );

  /** The database, to write to any column. */
  const writing = (): Database => {
    known.forget();
    members.forget();
    days.forget();
    return unread.writing();
  };

  return {
    get(id: string): SpaceRow | undefined {
      const rows = known.get();
      const row = rows.get(id) ?? one(db).get({ key: id });
      const open = row ? undefined : fed.space(id);
      if (open) return fedRow(open);
      if (!row || rows.has(id)) return row;
      if (rows.size >= maxKnownRows) rows.clear();
      rows.set(id, row);
      return row;
    },

    /** Those that it is a member of, by name. */
    mine(): SpaceSnapshot[] {
      const own = members.get();
      const open = fed.spaces();
      return open.length === 0 ? own : [...own, ...open].sort(byName);
    },

    /** How many days each space keeps messages that does not keep them for ever: also those that it has left. */
    keptDays: (): Record<string, number> => ({ ...fed.keptDays(), ...days.get() }),

    /** Those that it is a member of, and how far it has come in the log of each. */
    followed: (): Pick<SpaceRow, "id" | "cursor" | "snapshot">[] =>
      db.select({ id, cursor, snapshot }).from(spaces).where(isMine).all(),

    /** Counts messages of a space that the inbox does not hold. A consciousness is told how many, and reads them there. */
    leaveToHistory(id: string, messages: number): void {
      writing()
        .update(spaces)
        .set({ leftToHistory: sql`${spaces.leftToHistory} + ${messages}` })
        .where(eq(spaces.id, id))
        .run();
    },

    leftToHistory: (): { id: string; name: string; messages: number }[] => unread.get(),

    /** A timeline run has ended. */
    settle(id: string, settled: Settled): void {
      const row = this.get(id);
      if (!row) return;
      const { upTo, beyond } = settle({ upTo: row.processedSeq, beyond: row.acknowledged }, settled);
      if (upTo === row.processedSeq && beyond.join() === row.acknowledged.join()) return;
      // Messages that the run was shown count as read.
      const leftToHistory = Math.min(row.leftToHistory, Math.max(0, row.cursor - upTo));
      const changes = { processedSeq: upTo, acknowledged: beyond, leftToHistory };
      known.get().delete(id);
      unread.writing().update(spaces).set(changes).where(eq(spaces.id, id)).run();
    },

    /** The agent becomes a timeline: every message that its inbox does not hold counts as read. */
    settleAll(): void {
      writing()
        .update(spaces)
        .set({ processedSeq: sql`${spaces.cursor}`, acknowledged: [] })
        .run();
    },

    /** A cycle that is kept was told of these. */
    toldOfHistory(told: LeftToHistory[]): void {
      for (const { id, messages } of told) this.leaveToHistory(id, -messages);
    },

    isMember(id: string): boolean {
      return this.get(id)?.left === false;
    },

    /**
     * Follows the log of a space up to `cursor`; the snapshot is written only if it is a newer one. `unheard`: messages
     * that went to no inbox. Of a space that the agent has left stays what was known; of one that is deleted nothing does.
     */
    follow(told: SpaceSnapshot, cursor: number, left: boolean, unheard: number): void {
      const { id, version, deleted } = told;
      const row = this.get(id);
      const asLeft = row && left ? { ...row.snapshot, version } : told;
      const snapshot = deleted ? { ...told, name: deletedSpaceName, members: [] } : asLeft;
      const leftToHistory = deleted ? 0 : (row?.leftToHistory ?? 0) + unheard;
      if (row?.version === version && row.left === left) {
        move(db).run({ id, cursor, leftToHistory });
        known.get().set(id, { ...row, cursor, leftToHistory });
        if (unheard > 0) unread.forget();
        return;
      }
      const set = { snapshot, version, cursor, left, leftToHistory };
      writing()
        .insert(spaces)
        .values({ id, ...set })
        .onConflictDoUpdate({ target: spaces.id, set })
        .run();
    },
  };
};

/**
 * How far an agent has come in the messages of one space, by their `seq` in its log.
 *
 * Invariants
 * 1. Only the end of a run moves it. A message is `[SEEN]` once a committed run was shown it, or once it was acknowledged
 *    itself, and is never `[NEW]` again.
 * 2. A message that still waits to be acknowledged is `[NEW]`, whoever was shown it.
 */
export type SeenMark = {
  /** The highest that committed runs were shown. What their windows left out below it, they were told the number of. */
  upTo: number;
  /** Those above it that were acknowledged and not shown by a committed run, such as a canceled one's; ascending. */
  beyond: number[];
};

/** The effect of an ended run in one space: the messages acknowledged with it, and the newest that it was shown. */
export type Settled = { acknowledged: number[]; shownTo: number };

export const settle = (mark: SeenMark, { acknowledged, shownTo }: Settled): SeenMark => {
  const upTo = Math.max(mark.upTo, shownTo);
  const beyond = [...new Set([...mark.beyond, ...acknowledged])].filter((seq) => seq > upTo);
  // Older messages lie outside every window.
  return { upTo, beyond: beyond.sort((one, other) => one - other).slice(-maxWindowMessages) };
};

/** Up to where a space's messages were delivered, and which of them wait. */
export type Known = { deliveredTo: number; waiting: ReadonlySet<number> };

/** A message that was not delivered yet is not seen. */
export const isSeen = ({ upTo, beyond }: SeenMark, { deliveredTo, waiting }: Known, seq: number): boolean =>
  !waiting.has(seq) && (seq <= Math.min(upTo, deliveredTo) || beyond.includes(seq));
