import { and, asc, eq, gt, inArray, max, type SQL, sql } from "drizzle-orm";
import { type SearchRole, type SearchType, SearchType as SearchTypes } from "../../../protocol/search.ts";
import { among, type Database, prepared } from "../../../shared/database.ts";
import type { SearchCounts } from "../../records.ts";
import { spaces } from "../../schema.ts";
import { searchEntries, searchState } from "./schema.ts";

/**
 * The passages that search finds, and their words.
 *
 * Invariants
 * 1. The words of a passage stand in the table `search_words` (FTS5) exactly as long as its row is there: triggers of
 *    the schema see to it.
 * 2. A passage is never changed: what changes is taken out and comes in again, under a higher id.
 * 3. What a query may not see is left out in SQL: messages of spaces that the agent is in no more, by what it has heard.
 */
export type SearchState = typeof searchState.$inferSelect;

/** One passage that search finds. */
export type EntryRow = typeof searchEntries.$inferSelect;
type NewEntry = Omit<EntryRow, "id">;

/** Something to be found, before its text is cut into passages. */
export type Findable = Pick<NewEntry, "type" | "ref" | "at" | "head" | "text"> & Partial<NewEntry>;

const newEntry = (found: Findable, text: string, part: number): NewEntry => ({
  version: null,
  role: null,
  spaceId: null,
  messageId: null,
  authorId: null,
  authorName: null,
  ...found,
  text,
  part,
});

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

export class Entries {
  readonly #db: Database;
  readonly #state = prepared(() => this.#db.select().from(searchState).prepare());

  constructor(db: Database) {
    this.#db = db;
  }

  /** How the index stands. `isUsed`: search was asked for, so there is one. */
  state(): SearchState & { isUsed: boolean } {
    const row = this.#state().get();
    return row ? { ...row, isUsed: true } : { ...fresh, isUsed: false };
  }

  setState(changes: Partial<SearchState>): void {
    const { isUsed: _, ...state } = this.state();
    const next = { ...state, ...changes };
    this.#db.insert(searchState).values(next).onConflictDoUpdate({ target: searchState.id, set: next }).run();
  }

  /** How many passages there are. */
  count(): number {
    return Object.values(this.state().entries).reduce((sum, count) => sum + count, 0);
  }

  /** Takes these in, cut into passages. In a transaction. */
  add(findables: Findable[]): void {
    const rows = findables.flatMap((findable) =>
      passagesOf(findable.text).map((text, part) => newEntry(findable, text, part)),
    );
    if (rows.length === 0) return;
    for (const row of rows) this.#db.insert(searchEntries).values(row).run();
    this.setState({ entries: added(this.state().entries, rows, 1) });
  }

  /** Takes these out, and answers the ids of their passages. In a transaction. */
  removeRefs(type: SearchType, refs: string[]): number[] {
    // In these very words, so that the partial index answers.
    const those = sql`${searchEntries.type} = ${type} and ${searchEntries.type} in ('block', 'archival') and ${among(searchEntries.ref, refs)}`;
    return this.#remove(those);
  }

  /** Takes messages of a space out, some at a time. Answers the ids of their passages; none when all are gone. */
  removeMessages(spaceId: string, limit: number): number[] {
    const some = this.#db
      .select({ id: searchEntries.id })
      .from(searchEntries)
      .where(and(eq(searchEntries.type, "message"), eq(searchEntries.spaceId, spaceId)))
      .limit(limit);
    return this.#remove(inArray(searchEntries.id, some));
  }

  #remove(those: SQL): number[] {
    const gone = this.#db
      .delete(searchEntries)
      .where(those)
      .returning({
        id: searchEntries.id,
        type: searchEntries.type,
      })
      .all();
    if (gone.length === 0) return [];
    const { entries, embedded, embeddedUpTo } = this.state();
    this.setState({
      entries: added(entries, gone, -1),
      embedded: added(
        embedded,
        gone.filter(({ id }) => id <= embeddedUpTo),
        -1,
      ),
      // The next passage may get the id of one that is gone.
      embeddedUpTo: Math.min(embeddedUpTo, this.#newest()),
    });
    return gone.map(({ id }) => id);
  }

  #newest(): number {
    return (
      this.#db
        .select({ id: max(searchEntries.id) })
        .from(searchEntries)
        .get()?.id ?? 0
    );
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
    return this.#db
      .select()
      .from(searchEntries)
      .where(gt(searchEntries.id, id))
      .orderBy(asc(searchEntries.id))
      .limit(limit)
      .all();
  }

  /** These passages were given vectors; `upTo` is the last of them. In a transaction. */
  embeddedBy(embedderId: string, rows: EntryRow[], upTo: number): void {
    this.setState({ embedderId, embeddedUpTo: upTo, embedded: added(this.state().embedded, rows, 1) });
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
    const rows = this.rows(
      found.map(({ id }) => id),
      filter,
    );
    return found.flatMap(({ id, rank }) => {
      const row = rows.get(id);
      return row ? [{ ...row, rank }] : [];
    });
  }

  /** Those of these that the filter lets through. */
  rows(ids: number[], filter: Filter): Map<number, EntryRow> {
    const rows = this.#db
      .select()
      .from(searchEntries)
      .where(and(among(searchEntries.id, ids), ...filtered(filter)))
      .all();
    return new Map(rows.map((row) => [row.id, row]));
  }

  /** Whether there are passages after this one. */
  isBehind(upTo: number): boolean {
    return this.#newest() > upTo;
  }
}

/** A passage is indexed as one: long texts are several, so that a hit shows the place, and a vector means something. */
const passageCharacters = 2000;
/** The overlap of two neighbours: a phrase at their border is whole in one of them. */
const overlapCharacters = 100;

/** The place to cut before `end`: after a paragraph, a sentence or a word that ends in the last quarter. */
const cutBefore = (text: string, from: number, end: number): number => {
  const earliest = from + Math.floor((end - from) * 0.75);
  for (const border of ["\n\n", "\n", ". ", " "]) {
    const at = text.lastIndexOf(border, end - border.length);
    if (at >= earliest) return at + border.length;
  }
  return /[\udc00-\udfff]/.test(text[end] ?? "") ? end - 1 : end;
};

/** A text in passages of at most 2,000 characters, in order; none of a blank one. */
export const passagesOf = (text: string): string[] => {
  if (text.trim() === "") return [];
  const passages: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = from + passageCharacters;
    if (end >= text.length) return [...passages, text.slice(from)];
    const cut = cutBefore(text, from, end);
    passages.push(text.slice(from, cut));
    const back = cut - overlapCharacters;
    const word = text.indexOf(" ", back);
    from = word !== -1 && word < cut ? word + 1 : cut;
  }
  return passages;
};
