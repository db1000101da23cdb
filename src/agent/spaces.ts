import { eq, gt, sql } from "drizzle-orm";
import type { SpaceSnapshot } from "../protocol/rpc.ts";
import { type Database, prepared } from "../shared/database.ts";
import { spaces } from "./schema.ts";
import { type Settled, settle } from "./seen-mark.ts";

/** The spaces that this agent is in, as their logs have told it; kept so that composing needs no RPC. */
export type SpaceRow = typeof spaces.$inferSelect;

export class Spaces {
  readonly #db: Database;
  readonly #one = prepared(() =>
    this.#db
      .select()
      .from(spaces)
      .where(eq(spaces.id, sql.placeholder("id")))
      .prepare(),
  );

  constructor(db: Database) {
    this.#db = db;
  }

  get(id: string): SpaceRow | undefined {
    return this.#one().get({ id });
  }

  /** Those that it is a member of, by name. */
  mine(): SpaceSnapshot[] {
    return this.#db
      .select({ snapshot: spaces.snapshot })
      .from(spaces)
      .where(eq(spaces.left, false))
      .all()
      .map((row) => row.snapshot)
      .sort((one, other) => one.name.localeCompare(other.name) || one.id.localeCompare(other.id));
  }

  /** Messages of a space that the inbox had no room for: the agent is told how many, and reads them there. */
  leaveToHistory(id: string, messages: number): void {
    this.#db
      .update(spaces)
      .set({ leftToHistory: sql`${spaces.leftToHistory} + ${messages}` })
      .where(eq(spaces.id, id))
      .run();
  }

  leftToHistory(): { id: string; name: string; messages: number }[] {
    return this.#db
      .select()
      .from(spaces)
      .where(gt(spaces.leftToHistory, 0))
      .all()
      .map((row) => ({ id: row.id, name: row.snapshot.name, messages: row.leftToHistory }));
  }

  /** A timeline run has ended. */
  settle(id: string, settled: Settled): void {
    const row = this.get(id);
    if (!row) return;
    const { upTo, beyond } = settle({ upTo: row.processedSeq, beyond: row.acknowledged }, settled);
    if (upTo === row.processedSeq && beyond.length === row.acknowledged.length) return;
    this.#db.update(spaces).set({ processedSeq: upTo, acknowledged: beyond }).where(eq(spaces.id, id)).run();
  }

  /** A living agent becomes stateless: what its inbox does not hold any more, it has read. */
  settleAll(): void {
    this.#db
      .update(spaces)
      .set({ processedSeq: sql`${spaces.cursor}`, acknowledged: [] })
      .run();
  }

  toldOfHistory(): void {
    this.#db.update(spaces).set({ leftToHistory: 0 }).where(gt(spaces.leftToHistory, 0)).run();
  }

  isMember(id: string): boolean {
    const row = this.get(id);
    return row !== undefined && !row.left;
  }

  /** Follows the space's log up to `cursor`; the snapshot is written only if it is a newer one. */
  follow(snapshot: SpaceSnapshot, cursor: number, left: boolean): void {
    const known = this.get(snapshot.id);
    if (!known) {
      this.#db.insert(spaces).values({ id: snapshot.id, snapshot, version: snapshot.version, cursor, left }).run();
    } else if (known.version !== snapshot.version || known.left !== left) {
      this.#db
        .update(spaces)
        .set({ snapshot, version: snapshot.version, cursor, left })
        .where(eq(spaces.id, snapshot.id))
        .run();
    } else {
      this.#db.update(spaces).set({ cursor }).where(eq(spaces.id, snapshot.id)).run();
    }
  }
}
