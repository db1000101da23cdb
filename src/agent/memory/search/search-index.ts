import { and, asc, eq, gt, gte, inArray, isNull, like, max, type SQL, sql } from "drizzle-orm";
import { erasedName } from "../../../protocol/entity.ts";
import type { SearchType } from "../../../protocol/search.ts";
import { among, type Database, prepared } from "../../../shared/database.ts";
import type { Scrub } from "../../redaction/forms.ts";
import { spaces } from "../../schema.ts";
import { searchEntries, searchSources, searchState } from "./schema.ts";
import { betweenParts, dateWords, type EntryRow, type Findable, headOf } from "./sources.ts";
import { createVectors, type Filter } from "./vectors.ts";

/**
 * The passages that search finds, their words and vectors, and how far each source was followed.
 *
 * Invariants
 * 1. A passage's words stand in the table `search_words` (FTS5) exactly as long as its row is there. Triggers of the
 *    schema see to it. Its vector goes with it.
 * 2. The words of a passage are never changed: what changes is taken out and comes in again, under a higher id.
 * 3. SQL leaves out what a query may not see: messages of spaces that the agent, by what it has heard, is no longer in.
 *    A query for the agent's own life still finds the messages that its runs read there.
 * 4. A message is in once, whichever of its space and the journal tells of it first. The space's copy says more, and
 *    takes the place of the journal's.
 */
export type SearchState = typeof searchState.$inferSelect;

const fresh: SearchState = { id: 1, embedderId: null, embeddedUpTo: 0, passages: 0, usedAt: 0 };

/** How much a word in the head counts against one in the text. */
const weights = "bm25(0.5, 1.0)";

const filtered = ({ types, role, from, to }: Filter): SQL[] => {
  const { type, lived, spaceId } = searchEntries;
  const own = types.filter((each) => each !== "message");
  const shows = [
    among(type, own),
    ...(types.includes("message")
      ? [sql`${type} = 'message' and ${spaceId} in (select ${spaces.id} from ${spaces} where ${spaces.left} = 0)`]
      : []),
    ...(types.includes("consciousness") ? [sql`${type} = 'message' and ${lived} is not null`] : []),
  ];
  const conditions = [sql`${searchEntries.at} between ${from} and ${to}`, sql`(${sql.join(shows, sql` or `)})`];
  if (role !== null) conditions.push(sql`${searchEntries.role} = ${role}`);
  return conditions;
};

/** Messages of other spaces may lie between two of a conversation: so many passages are looked at. */
const followerReach = 12;
/** A message that comes later is another conversation. */
const followerMs = 30 * 60_000;

const spacePrefix = "space:";

/** The name of the source that is a space's log. */
export const spaceSource = (spaceId: string): string => `${spacePrefix}${spaceId}`;

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

/** Whether what is found is a message of a person or a service: such a `senderType` tells it to `clean`. */
export const saidBySomebody = ({ type, role }: { type: SearchType; role?: string | null | undefined }): boolean =>
  type === "message" && role === "user";

/** The head of an archival entry without its space, which stands before the date. A name may hold what stands between parts. */
const withoutPlace = (head: string, scrub: Scrub): string => {
  const parts = head.split(betweenParts);
  const endings = parts.map((_, from) => parts.slice(from, -1).join(betweenParts));
  const from = endings.findIndex((ending) => scrub.value(ending, true) === "[deleted]");
  return from === -1 ? head : headOf([...parts.slice(0, from), "[deleted]", parts.at(-1)]);
};

export type SearchIndex = ReturnType<typeof createSearchIndex>;

const current = prepared((db) => db.select().from(searchState));

/** `clean`: what comes in, without the words that are being taken out. */
export const createSearchIndex = (
  db: Database,
  transaction: <T>(work: () => T) => T,
  clean: <Value>(value: Value, writtenAt?: number) => Value,
) => {
  const vectors = createVectors(db);

  /** How the index stands. `usedAt` is 0 before search is asked for first. */
  const state = (): SearchState => current(db).get() ?? fresh;

  const setState = (changes: Partial<SearchState>): void => {
    const next = { ...state(), ...changes };
    db.insert(searchState).values(next).onConflictDoUpdate({ target: searchState.id, set: next }).run();
  };

  const newest = (): number => {
    const row = db.select({ id: max(searchEntries.id) }).from(searchEntries);
    return row.get()?.id ?? 0;
  };

  const remove = (those: SQL): number => {
    const gone = db.delete(searchEntries).where(those).returning({ id: searchEntries.id }).all();
    if (gone.length === 0) return 0;
    vectors.remove(gone.map(({ id }) => id));
    const { passages, embeddedUpTo } = state();
    // The next passage may get the id of one that is gone.
    setState({ passages: passages - gone.length, embeddedUpTo: Math.min(embeddedUpTo, newest()) });
    return gone.length;
  };

  /** Those of these passages that the filter lets through, in their order, each with its row. */
  const withRows = <Found extends { id: number }>(found: Found[], filter: Filter): (Found & { row: EntryRow })[] => {
    const isFound = among(
      searchEntries.id,
      found.map(({ id }) => id),
    );
    const wanted = and(isFound, ...filtered(filter));
    const rows = Map.groupBy(db.select().from(searchEntries).where(wanted).all(), ({ id }) => id);
    return found.flatMap((each) => (rows.get(each.id) ?? []).map((row) => ({ ...each, row })));
  };

  // In these very words, so that the partial index answers; those below likewise.
  const isMessage = (id: string): SQL => sql`${searchEntries.type} = 'message' and ${searchEntries.ref} = ${id}`;

  /** A message that is in already is taken out or noted as lived. Answers what is to be added. */
  const merged = (found: Findable): Findable[] => {
    if (found.type !== "message") return [found];
    const isIt = isMessage(found.ref);
    const known = db.select().from(searchEntries).where(isIt).all();
    const [first] = known;
    if (!first) return [found];
    if (found.lived == null) {
      remove(isIt);
      return [{ ...found, lived: first.lived }];
    }
    if (first.lived === null) {
      db.update(searchEntries).set({ lived: found.lived }).where(isIt).run();
      vectors.relabel(known.map((row) => ({ ...row, lived: found.lived ?? null })));
    }
    return [];
  };

  /** Without the words that are being taken out: another's message and what is older stay, but not what they answer. */
  const cleaned = (found: Findable): Findable => {
    const { type, role, ref: id, at, head } = found;
    const senderType = saidBySomebody({ type, role }) ? "human" : null;
    const answers = senderType ? Math.max(0, head.indexOf(dateWords(at))) : 0;
    const { id: _, senderType: __, ...left } = clean({ ...found, id, senderType, head: head.slice(0, answers) }, at);
    return { ...left, head: left.head + clean({ ...found, head: head.slice(answers) }).head };
  };

  const insert = (found: Findable): number => {
    const rows = passagesOf(found.text).map((text, part) => ({ ...found, text, part }));
    for (const row of rows) db.insert(searchEntries).values(row).run();
    return rows.length;
  };

  return {
    ...{ vectors, transaction, state, setState, withRows },

    /** How far a source was followed. */
    cursor: (source: string): number =>
      db.select().from(searchSources).where(eq(searchSources.name, source)).get()?.cursor ?? 0,

    /** The source was followed up to `cursor`. In a transaction. */
    move(source: string, cursor: number): void {
      const insert = db.insert(searchSources).values({ name: source, cursor });
      insert.onConflictDoUpdate({ target: searchSources.name, set: { cursor } }).run();
    },

    /** How far each space that has passages was followed, by its id. */
    spaces(): Map<string, number> {
      const isSpace = like(searchSources.name, `${spacePrefix}%`);
      const rows = db.select().from(searchSources).where(isSpace).all();
      return new Map(rows.map(({ name, cursor }) => [name.slice(spacePrefix.length), cursor]));
    },

    /** Takes these in, cut into passages. In a transaction. */
    add(findables: Findable[]): void {
      let added = 0;
      for (const found of findables) for (const each of merged(cleaned(found))) added += insert(each);
      if (added > 0) setState({ passages: state().passages + added });
    },

    /** Takes these out. In a transaction. */
    removeRefs(type: SearchType, refs: string[]): void {
      remove(
        sql`${searchEntries.type} = ${type} and ${searchEntries.type} in ('block', 'archival') and ${among(searchEntries.ref, refs)}`,
      );
    },

    /**
     * Takes passages of a space's messages out, at most `limit`; the agent's own life there only if it `isDeleted`. Answers
     * how many. The last of them take the source along.
     */
    removeMessages(spaceId: string, isDeleted: boolean, limit: number): number {
      const { type, lived } = searchEntries;
      const goes = isDeleted ? among(type, ["message", "consciousness"]) : and(eq(type, "message"), isNull(lived));
      const isOfSpace = and(eq(searchEntries.spaceId, spaceId), goes);
      const some = db.select({ id: searchEntries.id }).from(searchEntries).where(isOfSpace).limit(limit);
      const gone = remove(inArray(searchEntries.id, some));
      const isSource = eq(searchSources.name, spaceSource(spaceId));
      if (gone < limit) db.delete(searchSources).where(isSource).run();
      return gone;
    },

    /**
     * Takes words out of the passages after `after`, at most `limit` of them: what changes comes in again under a higher id. All
     * of the messages `of` goes, or comes in anew. Blocks and archival entries are their own: of them only the name goes of who
     * is erased, and of a deleted space. Answers how far it has come, undefined at the end. In a transaction.
     */
    redact(
      scrub: Scrub,
      {
        id: name,
        since,
        text: now,
        messageIds,
      }: { id: string; since: number; text: string | null; messageIds: string[] | null },
      after: number,
      limit: number,
    ): { upTo: number | undefined; changed: number } {
      const ids = new Set([name, ...(messageIds ?? [])]);
      const [about] = name.split(" ");
      const isOwn = sql`(${searchEntries.type} in ('message', 'consciousness') or ${searchEntries.authorId} = ${name}
        or ${searchEntries.type} = 'archival' and ${searchEntries.spaceId} = ${about})`;
      const next = and(gt(searchEntries.id, after), isOwn, gte(searchEntries.at, since));
      const rows = db.select().from(searchEntries).where(next).orderBy(asc(searchEntries.id)).limit(limit).all();
      const changed = rows.flatMap(({ id: _, part, ...row }): { row: EntryRow; fresh: Findable[] }[] => {
        const whole: EntryRow = { ...row, id: _, part };
        // Nothing of a deleted space is found any more.
        if (row.type === "message" && row.spaceId === about) return [{ row: whole, fresh: [] }];
        const named = ids.has(row.ref) || ids.has(row.messageId ?? "");
        if (row.type === "message" && ids.has(row.ref)) {
          const isFirst = part === 0 && now !== null && now !== row.text;
          return now === row.text ? [] : [{ row: whole, fresh: isFirst ? [{ ...row, text: now ?? "" }] : [] }];
        }
        // Another's message stays. Whoever repeats it and deletes the copy takes nothing out of it, but out of what it answers.
        const isOthers = /^(?:msg|spc)_/.test(name) && row.type === "message" && row.role === "user";
        const { authorName } = row;
        if (row.authorId === name && authorName !== null && authorName !== erasedName) {
          const head = row.head.replaceAll(authorName, erasedName);
          return [{ row: whole, fresh: [{ ...row, head, authorName: erasedName }] }];
        }
        // The entry stays. The name of its deleted space goes from its head.
        if (row.type === "archival") {
          const head = withoutPlace(row.head, scrub);
          return head === row.head ? [] : [{ row: whole, fresh: [{ ...row, head }] }];
        }
        // A head tells what a message answers as it was when it was looked at, which may be long after.
        const answers = isOthers ? row.head.indexOf(dateWords(row.at)) : 0;
        const head = row.head.slice(0, answers) + scrub.value(row.head.slice(answers), named);
        const text = isOthers ? row.text : scrub.value(row.text, named, row.at);
        return head === row.head && text === row.text ? [] : [{ row: whole, fresh: [{ ...row, head, text }] }];
      });
      const gone = changed.map(({ row }) => row.id);
      if (gone.length > 0) remove(among(searchEntries.id, gone));
      const added = changed.flatMap(({ fresh }) => fresh).reduce((sum, each) => sum + insert(each), 0);
      if (added > 0) setState({ passages: state().passages + added });
      return { upTo: rows.length < limit ? undefined : rows.at(-1)?.id, changed: changed.length };
    },

    /** Takes out what these runs thought and did. In a transaction. */
    removeRuns(runIds: string[]): void {
      const run = sql`substr(${searchEntries.ref}, 1, instr(${searchEntries.ref}, ':') - 1)`;
      remove(
        sql`${searchEntries.type} = 'consciousness' and ${run} in (select value from json_each(${JSON.stringify(runIds)}))`,
      );
    },

    /** Takes out the next messages of a space. Answers whether there are no more. */
    dropSpace(spaceId: string, limit: number): boolean {
      const isIts = and(eq(searchEntries.type, "message"), eq(searchEntries.spaceId, spaceId));
      const rows = db.select({ id: searchEntries.id }).from(searchEntries).where(isIts).limit(limit).all();
      const ids = rows.map(({ id }) => id);
      if (ids.length > 0) remove(among(searchEntries.id, ids));
      return rows.length < limit;
    },

    /** The first passage of a message. */
    message: (id: string): EntryRow | undefined =>
      db.select().from(searchEntries).where(isMessage(id)).orderBy(asc(searchEntries.id)).limit(1).get(),

    /** Which version of each block is in, or of the one that `only` names. */
    blockVersions(only?: string): Map<string, number> {
      const { ref, version, type, part } = searchEntries;
      const isIt = only === undefined ? sql`` : sql` and ${ref} = ${only}`;
      const isBlock = sql`${type} = 'block' and ${type} in ('block', 'archival') and ${part} = 0${isIt}`;
      const rows = db.select({ ref, version }).from(searchEntries).where(isBlock).all();
      return new Map(rows.map(({ ref, version }) => [ref, version ?? 0]));
    },

    /** Passages after `id`, in order. */
    after(id: number, limit: number): EntryRow[] {
      const isAfter = gt(searchEntries.id, id);
      return db.select().from(searchEntries).where(isAfter).orderBy(asc(searchEntries.id)).limit(limit).all();
    },

    /** Whether there are passages without a vector. */
    lacksVectors: (): boolean => newest() > state().embeddedUpTo,

    /**
     * The messages that came soon after these in their spaces, in order, each `after` the passage that it follows. Those of a
     * space that were read together lie together.
     */
    followers(leaders: EntryRow[], filter: Filter): { after: number; row: EntryRow }[] {
      const { id, type, part, spaceId, at } = searchEntries;
      const messages = leaders.filter((row) => row.type === "message");
      if (messages.length === 0) return [];
      const asked = JSON.stringify(messages.map((row) => ({ id: row.id, space: row.spaceId, at: row.at })));
      const isNear = sql`${id} between value ->> 'id' + 1 and value ->> 'id' + ${followerReach}`;
      const isOfSpace = sql`${type} = 'message' and ${part} = 0 and ${spaceId} = value ->> 'space'`;
      const isSoon = sql`${at} between value ->> 'at' and value ->> 'at' + ${followerMs}`;
      return db
        .select({ after: sql<number>`value ->> 'id'`, row: searchEntries })
        .from(sql`json_each(${asked}) leader`)
        .crossJoin(searchEntries)
        .where(and(isNear, isOfSpace, isSoon, ...filtered(filter)))
        .orderBy(asc(id))
        .all();
    },

    /** The passages that match best, best first. `rank` is FTS5's: the lower, the better. */
    matching(expression: string, filter: Filter, limit: number): { row: EntryRow; rank: number }[] {
      const conditions = [
        sql`${searchEntries.id} = search_words.rowid`,
        sql`search_words match ${expression}`,
        sql`search_words.rank match ${weights}`,
        ...filtered(filter),
      ];
      // FTS5 hands its rows out best first, so that only those are looked up that the answer needs.
      return db
        .select({ row: searchEntries, rank: sql<number>`search_words.rank` })
        .from(sql`search_words`)
        .crossJoin(searchEntries)
        .where(and(...conditions))
        .orderBy(sql`search_words.rank`)
        .limit(limit)
        .all();
    },
  };
};
