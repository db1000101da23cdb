import { and, asc, eq, gt, inArray, like, max, type SQL, sql } from "drizzle-orm";
import { SearchType } from "../../../protocol/search.ts";
import { among, type Database, prepared } from "../../../shared/database.ts";
import { spaces } from "../../schema.ts";
import { type EntryRow, type Findable, passagesOf } from "./findables.ts";
import { searchEntries, searchSources, searchState } from "./schema.ts";
import { type VectorFilter, Vectors } from "./vectors.ts";

/**
 * The passages that search finds, their words and vectors, and how far each source was followed.
 *
 * Invariants
 * 1. The words of a passage stand in the table `search_words` (FTS5) exactly as long as its row is there: triggers of
 *    the schema see to it. Its vector goes with it.
 * 2. A passage is never changed: what changes is taken out and comes in again, under a higher id.
 * 3. What a query may not see is left out in SQL: messages of spaces that the agent is in no more, by what it has heard.
 */
export type SearchState = typeof searchState.$inferSelect;

/** The part of the index that a query is about. `closed`: spaces that have just refused to be read. */
export type Filter = VectorFilter & { closed: string[] };

const fresh: SearchState = { id: 1, embedderId: null, embeddedUpTo: 0, passages: 0, usedAt: 0 };

/** How much a word in the head counts against one in the text. */
const weights = "bm25(0.5, 1.0)";

const filtered = ({ types, role, from, to, closed }: Filter): SQL[] => {
  const conditions = [
    sql`${searchEntries.at} between ${from} and ${to}`,
    sql`(${searchEntries.type} <> 'message' or ${searchEntries.spaceId} in (select ${spaces.id} from ${spaces} where ${spaces.left} = 0))`,
  ];
  if (types.length < SearchType.options.length) conditions.push(among(searchEntries.type, types));
  if (role !== null) conditions.push(sql`${searchEntries.role} = ${role}`);
  if (closed.length > 0) {
    conditions.push(sql`(${searchEntries.type} <> 'message' or not (${among(searchEntries.spaceId, closed)}))`);
  }
  return conditions;
};

const spacePrefix = "space:";

/** The name of the source that is a space's log. */
export const spaceSource = (spaceId: string): string => `${spacePrefix}${spaceId}`;

export class SearchIndex {
  readonly #db: Database;
  readonly vectors: Vectors;
  readonly transaction: <T>(work: () => T) => T;
  readonly #state = prepared(() => this.#db.select().from(searchState));

  constructor(db: Database, transaction: <T>(work: () => T) => T) {
    this.#db = db;
    this.vectors = new Vectors(db);
    this.transaction = transaction;
  }

  /** How the index stands. `usedAt` is 0 before search is asked for first. */
  state(): SearchState {
    return this.#state().get() ?? fresh;
  }

  setState(changes: Partial<SearchState>): void {
    const next = { ...this.state(), ...changes };
    this.#db.insert(searchState).values(next).onConflictDoUpdate({ target: searchState.id, set: next }).run();
  }

  /** How far a source was followed. */
  cursor(source: string): number {
    return this.#db.select().from(searchSources).where(eq(searchSources.name, source)).get()?.cursor ?? 0;
  }

  /** The source was followed up to `cursor`. In a transaction. */
  move(source: string, cursor: number): void {
    this.#db
      .insert(searchSources)
      .values({ name: source, cursor })
      .onConflictDoUpdate({ target: searchSources.name, set: { cursor } })
      .run();
  }

  /** How far each space that has passages was followed, by its id. */
  spaces(): Map<string, number> {
    const isSpace = like(searchSources.name, `${spacePrefix}%`);
    const rows = this.#db.select().from(searchSources).where(isSpace).all();
    return new Map(rows.map(({ name, cursor }) => [name.slice(spacePrefix.length), cursor]));
  }

  /** Takes these in, cut into passages. In a transaction. */
  add(findables: Findable[]): void {
    const rows = findables.flatMap((found) => passagesOf(found.text).map((text, part) => ({ ...found, text, part })));
    if (rows.length === 0) return;
    for (const row of rows) this.#db.insert(searchEntries).values(row).run();
    this.setState({ passages: this.state().passages + rows.length });
  }

  /** Takes these out. In a transaction. */
  removeRefs(type: SearchType, refs: string[]): void {
    // In these very words, so that the partial index answers.
    this.#remove(
      sql`${searchEntries.type} = ${type} and ${searchEntries.type} in ('block', 'archival') and ${among(searchEntries.ref, refs)}`,
    );
  }

  /** Takes passages of a space's messages out, at most `limit`. Answers how many. The last of them take the source along. */
  removeMessages(spaceId: string, limit: number): number {
    const some = this.#db
      .select({ id: searchEntries.id })
      .from(searchEntries)
      .where(and(eq(searchEntries.type, "message"), eq(searchEntries.spaceId, spaceId)))
      .limit(limit);
    const gone = this.#remove(inArray(searchEntries.id, some));
    const isSource = eq(searchSources.name, spaceSource(spaceId));
    if (gone < limit) this.#db.delete(searchSources).where(isSource).run();
    return gone;
  }

  #remove(those: SQL): number {
    const gone = this.#db.delete(searchEntries).where(those).returning({ id: searchEntries.id }).all();
    if (gone.length === 0) return 0;
    this.vectors.remove(gone.map(({ id }) => id));
    const { passages, embeddedUpTo } = this.state();
    this.setState({
      passages: passages - gone.length,
      // The next passage may get the id of one that is gone.
      embeddedUpTo: Math.min(embeddedUpTo, this.#newest()),
    });
    return gone.length;
  }

  #newest(): number {
    const newest = this.#db.select({ id: max(searchEntries.id) }).from(searchEntries);
    return newest.get()?.id ?? 0;
  }

  /** Which version of each block is in. */
  blockVersions(): Map<string, number> {
    const rows = this.#db
      .select({ ref: searchEntries.ref, version: searchEntries.version })
      .from(searchEntries)
      .where(sql`${searchEntries.type} = 'block' and ${searchEntries.type} in ('block', 'archival')`)
      .all();
    return new Map(rows.map(({ ref, version }) => [ref, version ?? 0]));
  }

  /** Passages after `id`, in order. */
  after(id: number, limit: number): EntryRow[] {
    const isAfter = gt(searchEntries.id, id);
    return this.#db.select().from(searchEntries).where(isAfter).orderBy(asc(searchEntries.id)).limit(limit).all();
  }

  /** Whether there are passages without a vector. */
  lacksVectors(): boolean {
    return this.#newest() > this.state().embeddedUpTo;
  }

  /** The passages that match best, best first. `rank` is FTS5's: the lower, the better. */
  matching(expression: string, filter: Filter, limit: number): { row: EntryRow; rank: number }[] {
    const conditions = [
      sql`${searchEntries.id} = search_words.rowid`,
      sql`search_words match ${expression}`,
      sql`search_words.rank match ${weights}`,
      ...filtered(filter),
    ];
    // FTS5 hands its rows out best first, so that only those are looked up that the answer needs.
    return this.#db
      .select({ row: searchEntries, rank: sql<number>`search_words.rank` })
      .from(sql`search_words`)
      .crossJoin(searchEntries)
      .where(and(...conditions))
      .orderBy(sql`search_words.rank`)
      .limit(limit)
      .all();
  }

  /** Those of these passages that the filter lets through, in their order, each with its row. */
  withRows<Found extends { id: number }>(found: Found[], filter: Filter): (Found & { row: EntryRow })[] {
    const ids = found.map(({ id }) => id);
    const wanted = this.#db.select().from(searchEntries);
    const rows = new Map(
      wanted
        .where(and(among(searchEntries.id, ids), ...filtered(filter)))
        .all()
        .map((row) => [row.id, row]),
    );
    return found.flatMap((each) => {
      const row = rows.get(each.id);
      return row ? [{ ...each, row }] : [];
    });
  }
}
