import { asc, desc, eq, gt, lt, type SQL } from "drizzle-orm";
import type { ArchivalEntry, ArchivalSource } from "../../protocol/archival.ts";
import { type Clock, isoTime } from "../../shared/clock.ts";
import { countOf, type Database } from "../../shared/database.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { maxArchivalEntries } from "../bounds.ts";
import { archival } from "../schema.ts";

export type ArchivalRow = typeof archival.$inferSelect;
export type NewArchival = { id: string; content: string; metadata: ArchivalEntry["metadata"]; source: ArchivalSource };

export type Archival = ReturnType<typeof createArchival>;

/**
 * Facts that an agent keeps beyond its context, each with who said it, where and with which message. Inserting one twice
 * under the same id is inserting it once, so a replay changes nothing (R2). What is deleted is found no more at once.
 */
export const createArchival = (
  db: Database,
  clock: Clock,
  /** Takes a deleted entry out of the index of search, in the same transaction. `newest` is the last that is left. */
  unindex: (id: string, newest: number) => void,
  /** In a compartment: whether an entry is the open mind's. */
  isOpen: (id: string) => boolean,
) => {
  const rows = (isMeant: SQL | undefined, order: SQL, limit: number): ArchivalRow[] =>
    db.select().from(archival).where(isMeant).orderBy(order).limit(limit).all();

  /** Newest first. */
  const page = (before: number | undefined, limit: number): ArchivalRow[] =>
    rows(before === undefined ? undefined : lt(archival.ordinal, before), desc(archival.ordinal), limit);

  return {
    page,
    /** Oldest first, after `ordinal`. */
    after: (ordinal: number, limit: number) => rows(gt(archival.ordinal, ordinal), asc(archival.ordinal), limit),
    /** Throws `limit_reached` past `maxArchivalEntries`. */
    insert(entry: NewArchival): ArchivalEntry {
      const known = db.select().from(archival).where(eq(archival.id, entry.id)).get();
      if (known) return asEntry(known);
      if (countOf(db, archival) >= maxArchivalEntries) {
        const detail = `maxArchivalEntries (${maxArchivalEntries}) is reached; delete some first`;
        throw new ColloquyError("limit_reached", detail);
      }
      const row = { ...entry, createdAt: clock.now() };
      return asEntry(db.insert(archival).values(row).returning().get());
    },
    /** Throws `forbidden` for what the open mind keeps. */
    delete: (id: string): boolean =>
      db.transaction(() => {
        const isGone = db.delete(archival).where(eq(archival.id, id)).returning({ id: archival.id }).all().length > 0;
        if (!isGone && isOpen(id)) {
          const message = "that is an open archival entry; a run of a confidential space may not change it";
          throw new ColloquyError("forbidden", message);
        }
        if (isGone) unindex(id, page(undefined, 1)[0]?.ordinal ?? 0);
        return isGone;
      }),
  };
};

export const asEntry = ({ ordinal: _, createdAt, ...entry }: ArchivalRow): ArchivalEntry => ({
  ...entry,
  createdAt: isoTime(createdAt),
});
