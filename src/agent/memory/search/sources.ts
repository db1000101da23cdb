import { eq, like } from "drizzle-orm";
import type { Database } from "../../../shared/database.ts";
import { searchSources } from "./schema.ts";

/** A source of the index with its cursor: the journal, the archival entries, or the log of a space. */
export type SourceRow = typeof searchSources.$inferSelect;

const spacePrefix = "space:";

export const spaceSource = (spaceId: string): string => `${spacePrefix}${spaceId}`;

export class Sources {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(name: string): SourceRow | undefined {
    return this.#db.select().from(searchSources).where(eq(searchSources.name, name)).get();
  }

  cursor(name: string): number {
    return this.find(name)?.cursor ?? 0;
  }

  /** The source has been followed up to `cursor`. Answers its number, which it keeps. In a transaction. */
  move(name: string, cursor: number): number {
    return this.#db
      .insert(searchSources)
      .values({ name, cursor })
      .onConflictDoUpdate({ target: searchSources.name, set: { cursor } })
      .returning()
      .get().number;
  }

  /** The spaces that are followed, by id. */
  spaces(): Map<string, SourceRow> {
    const rows = this.#db
      .select()
      .from(searchSources)
      .where(like(searchSources.name, `${spacePrefix}%`))
      .all();
    return new Map(rows.map((row) => [row.name.slice(spacePrefix.length), row]));
  }

  forget(name: string): void {
    this.#db.delete(searchSources).where(eq(searchSources.name, name)).run();
  }
}
