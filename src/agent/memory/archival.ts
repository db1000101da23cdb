import { asc, count, desc, eq, gt, lt } from "drizzle-orm";
import type { ArchivalEntry, ArchivalSource } from "../../protocol/archival.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { type Database, prepared } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxArchivalEntries } from "../bounds.ts";
import { archival } from "../schema.ts";

export type ArchivalRow = typeof archival.$inferSelect;
export type NewArchival = { id: string; content: string; metadata: ArchivalEntry["metadata"]; source: ArchivalSource };

/**
 * Facts that an agent keeps beyond its context, each with who said it, where and with which message. Inserting one twice
 * under the same id is inserting it once, so a replay changes nothing (R2). What is deleted is found no more at once.
 */
export class Archival {
  readonly #db: Database;
  readonly #clock: Clock;
  /** Takes a deleted entry out of the index of search, in the same transaction. `newest` is the last that is left. */
  readonly #unindex: (id: string, newest: number) => void;
  readonly #count = prepared(() => this.#db.select({ rows: count() }).from(archival));

  constructor(db: Database, clock: Clock, unindex: (id: string, newest: number) => void) {
    this.#db = db;
    this.#clock = clock;
    this.#unindex = unindex;
  }

  /** Throws `limit_reached` past `maxArchivalEntries`. */
  insert(entry: NewArchival): ArchivalEntry {
    const known = this.#db.select().from(archival).where(eq(archival.id, entry.id)).get();
    if (known) return asEntry(known);
    if ((this.#count().get()?.rows ?? 0) >= maxArchivalEntries) {
      throw new ColloquyError(
        "limit_reached",
        `maxArchivalEntries (${maxArchivalEntries}) is reached; delete some first`,
      );
    }
    return asEntry(
      this.#db
        .insert(archival)
        .values({ ...entry, createdAt: this.#clock.now() })
        .returning()
        .get(),
    );
  }

  /** Newest first. */
  page(before: number | undefined, limit: number): ArchivalRow[] {
    return this.#db
      .select()
      .from(archival)
      .where(before === undefined ? undefined : lt(archival.ordinal, before))
      .orderBy(desc(archival.ordinal))
      .limit(limit)
      .all();
  }

  /** Oldest first, after `ordinal`. */
  after(ordinal: number, limit: number): ArchivalRow[] {
    return this.#db
      .select()
      .from(archival)
      .where(gt(archival.ordinal, ordinal))
      .orderBy(asc(archival.ordinal))
      .limit(limit)
      .all();
  }

  delete(id: string): boolean {
    return this.#db.transaction(() => {
      const gone = this.#db.delete(archival).where(eq(archival.id, id)).returning({ id: archival.id }).all().length > 0;
      if (gone) this.#unindex(id, this.page(undefined, 1)[0]?.ordinal ?? 0);
      return gone;
    });
  }
}

export const asEntry = ({ id, content, metadata, source, createdAt }: ArchivalRow): ArchivalEntry => ({
  id,
  content,
  metadata,
  source,
  createdAt: isoTime(createdAt),
});
