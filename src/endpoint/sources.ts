import { eq, gt, lt, or } from "drizzle-orm";
import type { EndpointNews } from "../protocol/endpoint-rpc.ts";
import { type Database, Remembered } from "../shared/database.ts";
import { sources } from "./schema.ts";

export type SourceRow = typeof sources.$inferSelect;

/**
 * How far the endpoint's server has come in each source, and how far its events go. The events lie in the sources.
 *
 * Invariants
 * 1. `head` moves with what a source tells. `cursor` moves once the server has taken all up to there, and back where it is
 *    to be told again. Between them lies what is to be sent.
 * 2. `cursor` is stored by `store`, and else in memory: after a crash its server is told again what it has.
 * 3. A move back counts more than a delivery that was under way: `generation` tells.
 */
export const createSources = (db: Database) => {
  const known = new Remembered(
    db,
    () =>
      new Map(
        db
          .select()
          .from(sources)
          .all()
          .map((row) => [row.id, row]),
      ),
  );
  const unstored = new Set<string>();
  const generations = new Map<string, number>();

  const outdate = (id: string): void => void generations.set(id, (generations.get(id) ?? 0) + 1);

  const find = (id: string): SourceRow | undefined => known.get().get(id);

  const change = (row: SourceRow, changes: Partial<SourceRow>): void => {
    db.update(sources).set(changes).where(eq(sources.id, row.id)).run();
    known.get().set(row.id, { ...row, ...changes });
  };

  const store = (): void => {
    for (const id of unstored) {
      const row = find(id);
      if (row) change(row, { cursor: row.cursor });
    }
    unstored.clear();
  };

  return {
    find,
    store,

    generation: (id: string): number => generations.get(id) ?? 0,

    /** A source has told. One that had stopped, and begins again later on, is told from there. */
    told({ sourceId: id, after, cursor }: EndpointNews): void {
      const row = find(id);
      if (!row) {
        const values: SourceRow = { id, cursor: after, head: cursor, failures: 0, failingSince: null };
        db.insert(sources).values(values).run();
        known.get().set(id, values);
      } else if (cursor > row.head) {
        const isNew = after > row.head && row.cursor >= row.head;
        change(row, { head: cursor, ...(isNew && { cursor: after }) });
      }
    },

    /** The server has all up to there. */
    come(id: string, cursor: number, generation: number): void {
      const row = find(id);
      if (!row || generation !== this.generation(id)) return;
      if (row.failures > 0) change(row, { cursor, failures: 0, failingSince: null });
      else known.get().set(id, { ...row, cursor });
      unstored.add(id);
    },

    failed(id: string, now: number): { failures: number; since: number } {
      const row = find(id);
      const { failures, since } = { failures: (row?.failures ?? 0) + 1, since: row?.failingSince ?? now };
      if (row) change(row, { failures, failingSince: since });
      return { failures, since };
    },

    /** What lies after `seq` is to be sent again. False where there is no such source any more. */
    rewind(id: string, seq: number): boolean {
      const row = find(id);
      if (!row) return false;
      outdate(id);
      change(row, { cursor: Math.min(row.cursor, seq), failures: 0, failingSince: null });
      return true;
    },

    /** Words that were read may have been deleted meanwhile: they are read anew. */
    outdate,

    outdateAll(): void {
      for (const id of known.get().keys()) outdate(id);
    },

    drop(id: string): void {
      db.delete(sources).where(eq(sources.id, id)).run();
      known.get().delete(id);
      unstored.delete(id);
    },

    /** Its server may be another one, or be there again: those that failed are as new. Answers those that have something to send. */
    refresh(): string[] {
      store();
      const failing = or(gt(sources.failures, 0), lt(sources.cursor, sources.head));
      const rows = db.select().from(sources).where(failing).all();
      for (const row of rows) change(row, { failures: 0, failingSince: null });
      return rows.map(({ id }) => id);
    },
  };
};
export type Sources = ReturnType<typeof createSources>;
