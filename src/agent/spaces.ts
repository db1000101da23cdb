import { eq, gt, sql } from "drizzle-orm";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import { type Database, prepared, Remembered, rowsBy } from "../shared/database.ts";
import { maxWindowMessages } from "./bounds.ts";
import type { LeftToHistory } from "./records.ts";
import { spaces } from "./schema.ts";

/**
 * The spaces that this agent is in, as their deliveries say. They are kept so that composing needs no RPC.
 *
 * Invariants
 * 1. A row is read once and remembered until another column than its cursor is written: this object is the table's only
 *    writer. A rollback makes it forget all rows (`services.ts`).
 */
export type SpaceRow = typeof spaces.$inferSelect;

/** Rows remembered at most: an agent may be in many spaces, and each row holds its space's members. */
const maxKnownRows = 50;
const sameNumbers = (some: number[], others: number[]): boolean => some.join() === others.join();

export class Spaces {
  readonly #db: Database;
  readonly #known = new Map<string, SpaceRow>();
  readonly #one = prepared(() => rowsBy(this.#db, spaces, spaces.id));
  readonly #move = prepared(() =>
    this.#db
      .update(spaces)
      .set({
        cursor: sql`${sql.placeholder("cursor")}`,
        leftToHistory: sql`${sql.placeholder("leftToHistory")}`,
      })
      .where(eq(spaces.id, sql.placeholder("id"))),
  );

  readonly #current = () => {
    const { id, cursor, snapshot } = spaces;
    return this.#db.select({ id, cursor, snapshot }).from(spaces).where(eq(spaces.left, false)).all();
  };
  readonly #members = new Remembered(() =>
    this.#current()
      .map(({ snapshot }) => snapshot)
      .sort((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id)),
  );
  readonly #unread = new Remembered(() =>
    this.#db
      .select()
      .from(spaces)
      .where(gt(spaces.leftToHistory, 0))
      .all()
      .map((row) => ({ id: row.id, name: row.snapshot.name, messages: row.leftToHistory })),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  get(id: string): SpaceRow | undefined {
    const known = this.#known.get(id);
    if (known) return known;
    const row = this.#one().get({ key: id });
    if (!row) return undefined;
    if (this.#known.size >= maxKnownRows) this.forget();
    this.#known.set(id, row);
    return row;
  }

  /** The rows are read anew when they are asked for next. */
  forget(): void {
    this.#known.clear();
    this.#members.forget();
    this.#unread.forget();
  }

  /** The database, to write to this table. */
  #writing(): Database {
    this.forget();
    return this.#db;
  }

  /** Those that it is a member of, by name. */
  mine(): SpaceSnapshot[] {
    return this.#members.get();
  }

  /** Those that it is a member of, and how far it has come in the log of each. */
  followed(): Pick<SpaceRow, "id" | "cursor" | "snapshot">[] {
    return this.#current();
  }

  /** Counts messages of a space that the inbox does not hold. A consciousness is told how many, and reads them there. */
  leaveToHistory(id: string, messages: number): void {
    this.#writing()
      .update(spaces)
      .set({ leftToHistory: sql`${spaces.leftToHistory} + ${messages}` })
      .where(eq(spaces.id, id))
      .run();
  }

  leftToHistory(): { id: string; name: string; messages: number }[] {
    return this.#unread.get();
  }

  /** A timeline run has ended. */
  settle(id: string, settled: Settled): void {
    const row = this.get(id);
    if (!row) return;
    const { upTo, beyond } = settle({ upTo: row.processedSeq, beyond: row.acknowledged }, settled);
    if (upTo === row.processedSeq && sameNumbers(beyond, row.acknowledged)) return;
    // Messages that the run was shown count as read.
    const leftToHistory = Math.min(row.leftToHistory, Math.max(0, row.cursor - upTo));
    const changes = { processedSeq: upTo, acknowledged: beyond, leftToHistory };
    this.#known.delete(id);
    this.#unread.forget();
    this.#db.update(spaces).set(changes).where(eq(spaces.id, id)).run();
  }

  /** The agent becomes a timeline: every message that its inbox does not hold counts as read. */
  settleAll(): void {
    this.#writing()
      .update(spaces)
      .set({ processedSeq: sql`${spaces.cursor}`, acknowledged: [] })
      .run();
  }

  /** A cycle that is kept was told of these. */
  toldOfHistory(told: LeftToHistory[]): void {
    for (const { id, messages } of told) this.leaveToHistory(id, -messages);
  }

  isMember(id: string): boolean {
    const row = this.get(id);
    return row !== undefined && !row.left;
  }

  /**
   * Follows the log of a space up to `cursor`; the snapshot is written only if it is a newer one. `unheard`: messages
   * that went to no inbox.
   */
  follow(snapshot: SpaceSnapshot, cursor: number, left: boolean, unheard: number): void {
    const { id, version } = snapshot;
    const known = this.get(id);
    const leftToHistory = (known?.leftToHistory ?? 0) + unheard;
    if (known?.version === version && known.left === left) {
      this.#move().run({ id, cursor, leftToHistory });
      this.#known.set(id, { ...known, cursor, leftToHistory });
      if (unheard > 0) this.#unread.forget();
      return;
    }
    const set = { snapshot, version, cursor, left, leftToHistory };
    this.#writing()
      .insert(spaces)
      .values({ id, ...set })
      .onConflictDoUpdate({ target: spaces.id, set })
      .run();
  }
}

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
