import { and, asc, eq, gt, inArray, like, max, type SQL, sql } from "drizzle-orm";
import { type SearchRole, type SearchType, SearchType as SearchTypes } from "../../../protocol/search.ts";
import { among, type Database, prepared } from "../../../shared/database.ts";
import type { SearchCounts } from "../../records.ts";
import { spaces } from "../../schema.ts";
import { type EntryRow, type Findable, passagesOf } from "./findables.ts";
import { searchEntries, searchSources, searchState } from "./schema.ts";
import { Vectors } from "./vectors.ts";

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

/** The part of the index that a query is about. Times in milliseconds since the epoch, both ends included. */
export type Filter = {
  types: SearchType[];
  role: SearchRole | null;
  from: number;
  to: number;
  /** Spaces that have just refused to be read. */
  closed: string[];
};

const fresh: SearchState = { id: 1, embedderId: null, embeddedUpTo: 0, entries: {}, embedded: {}, usedAt: 0 };

/** How much a word in the head counts against one in the text. */
const weights = "bm25(0.5, 1.0)";

const added = (counts: SearchCounts, rows: { type: SearchType }[], by: 1 | -1): SearchCounts => {
  const sums = { ...counts };
  for (const { type } of rows) sums[type] = (sums[type] ?? 0) + by;
  return sums;
};

const filtered = ({ types, role, from, to, closed }: Filter): SQL[] => {
  const conditions = [
    sql`${searchEntries.at} between ${from} and ${to}`,
    sql`(${searchEntries.type} <> 'message' or ${searchEntries.spaceId} in (select ${spaces.id} from ${spaces} where ${spaces.left} = 0))`,
  ];
  if (types.length < SearchTypes.options.length) conditions.push(among(searchEntries.type, types));
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

  /** How many passages there are. */
  count(): number {
    return Object.values(this.state().entries).reduce((sum, count) => sum + count, 0);
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

  /** The spaces that are followed, by id; each has a number that it keeps. */
  spaces(): Map<string, { number: number; cursor: number }> {
    const isSpace = like(searchSources.name, `${spacePrefix}%`);
    const rows = this.#db.select().from(searchSources).where(isSpace).all();
    return new Map(rows.map((row) => [row.name.slice(spacePrefix.length), row]));
  }

  /** Takes these in, cut into passages. In a transaction. */
  add(findables: Findable[]): void {
    const rows = findables.flatMap((found) => passagesOf(found.text).map((text, part) => ({ ...found, text, part })));
    if (rows.length === 0) return;
    for (const row of rows) this.#db.insert(searchEntries).values(row).run();
    this.setState({ entries: added(this.state().entries, rows, 1) });
  }

  /** Takes these out. In a transaction. */
  removeRefs(type: SearchType, refs: string[]): void {
    // In these very words, so that the partial index answers.
    const those = sql`${searchEntries.type} = ${type} and ${searchEntries.type} in ('block', 'archival') and ${among(searchEntries.ref, refs)}`;
    this.#remove(those);
  }

  /** Takes passages of a space's messages out, at most `limit`. Answers how many. A space without any is forgotten. */
  removeMessages(spaceId: string, limit: number): number {
    const some = this.#db
      .select({ id: searchEntries.id })
      .from(searchEntries)
      .where(and(eq(searchEntries.type, "message"), eq(searchEntries.spaceId, spaceId)))
      .limit(limit);
    const gone = this.#remove(inArray(searchEntries.id, some));
    if (gone === 0)
      this.#db
        .delete(searchSources)
        .where(eq(searchSources.name, spaceSource(spaceId)))
        .run();
    return gone;
  }

  #remove(those: SQL): number {
    const gone = this.#db
      .delete(searchEntries)
      .where(those)
      .returning({ id: searchEntries.id, type: searchEntries.type })
      .all();
    if (gone.length === 0) return 0;
    this.vectors.remove(gone.map(({ id }) => id));
    const { entries, embedded, embeddedUpTo } = this.state();
    const withVector = gone.filter(({ id }) => id <= embeddedUpTo);
    this.setState({
      entries: added(entries, gone, -1),
      embedded: added(embedded, withVector, -1),
      // The next passage may get the id of one that is gone.
      embeddedUpTo: Math.min(embeddedUpTo, this.#newest()),
    });
    return gone.length;
  }

  #newest(): number {
    const row = this.#db
      .select({ id: max(searchEntries.id) })
      .from(searchEntries)
      .get();
    return row?.id ?? 0;
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

  /** These passages were given vectors; `upTo` is the last of them. In a transaction. */
  embeddedBy(embedderId: string, rows: EntryRow[], upTo: number): void {
    this.setState({ embedderId, embeddedUpTo: upTo, embedded: added(this.state().embedded, rows, 1) });
  }

  /** Whether there are passages without a vector. */
  lacksVectors(): boolean {
    return this.#newest() > this.state().embeddedUpTo;
  }

  /** The passages that match best, best first. `rank` is FTS5's: the lower, the better. */
  matching(expression: string, filter: Filter, limit: number): (EntryRow & { rank: number })[] {
    const conditions = sql.join(
      [sql`search_words match ${expression}`, sql`search_words.rank match ${weights}`, ...filtered(filter)],
      sql` and `,
    );
    // FTS5 hands its rows out best first; only those are looked up that the answer needs.
    const found = this.#db.all<{ id: number; rank: number }>(
      sql`select search_words.rowid as id, search_words.rank as rank
        from search_words cross join ${searchEntries} on ${searchEntries.id} = search_words.rowid
        where ${conditions} order by search_words.rank limit ${limit}`,
    );
    return this.withRows(found, filter);
  }

  /** Those of these passages that the filter lets through, in their order, each with its row. */
  withRows<Found extends { id: number }>(found: Found[], filter: Filter): (Found & EntryRow)[] {
    const ids = found.map(({ id }) => id);
    const isWanted = and(among(searchEntries.id, ids), ...filtered(filter));
    const rows = new Map(
      this.#db
        .select()
        .from(searchEntries)
        .where(isWanted)
        .all()
        .map((row) => [row.id, row]),
    );
    return found.flatMap((each) => {
      const row = rows.get(each.id);
      return row ? [{ ...each, ...row }] : [];
    });
  }
}
