import type { Embedder } from "../../../models/embedders/embedder.ts";
import type { BlockDetail } from "../../../protocol/block.ts";
import { neverAny } from "../../../protocol/rpc.ts";
import { log } from "../../../shared/log.ts";
import { breathe, unlessAborted, workOff } from "../../../shared/timeouts.ts";
import {
  embedTimeoutMs,
  maxAskedAtOnce,
  maxAskedSpaces,
  maxSearchEntries,
  searchBatchCharacters,
  searchBatchRows,
  searchWaitMs,
} from "../../bounds.ts";
import type { SpaceRow } from "../../spaces.ts";
import { sharedRef } from "../blocks/shared-blocks.ts";
import { blockView } from "../blocks/shares.ts";
import { type SearchIndex, spaceSource } from "./search-index.ts";
import {
  archivalPage,
  blockFindable,
  dateWords,
  type EntryRow,
  journalPage,
  labelOf,
  type Page,
  type SearchServices,
  spacePage,
  versionOf,
} from "./sources.ts";
import { toldPage } from "./told.ts";
import { vectorOf } from "./vectors.ts";

/**
 * Brings the index up to what it follows, and gives its passages their vectors.
 *
 * Invariants
 * 1. A page and the cursor behind it are stored in one transaction, only if the cursor is still where the page was
 *    asked from. So two that gather at a time take nothing in twice.
 * 2. No more than `budget` rows are taken in: the clock stands still while an object computes, so rows are counted.
 *    One transaction takes in few rows where they are long: meanwhile nobody else has a turn.
 * 3. Messages come from spaces that the agent is in; those of others are taken out, and are not found meanwhile. Those
 *    that it was told or said itself stay, as its life, unless their space was deleted.
 * 4. Vectors are made in the order of the passages' ids. A batch and the cursor behind it are stored in one
 *    transaction, only if nobody else stored that batch or changed the embedder meanwhile.
 * 5. A compartment leaves out the open mind's blocks, spaces and runs, which are indexed there.
 * 6. All vectors that are stored are of one embedder: another one begins from the first passage.
 */
/** How much of a space's log, as far as this mind hears it, came since it was indexed. */
const newsIn = (index: SearchIndex): ((space: Pick<SpaceRow, "id" | "cursor">) => number) => {
  const cursors = index.spaces();
  return ({ id, cursor }) => cursor - (cursors.get(id) ?? 0);
};

/** Whether the index has all that the journal and the spaces hold, as far as is known here. */
export const isCaughtUp = (index: SearchIndex, services: SearchServices): boolean => {
  const news = newsIn(index);
  return (
    services.journal.after(index.cursor("told"), 1).length === 0 &&
    services.spaces.followed().every((space) => news(space) <= 0)
  );
};

/** Takes in what is new, at most `budget` rows; others are waited for `searchWaitMs` at most. */
export const gather = async (index: SearchIndex, services: SearchServices, budget: number) => {
  const { spaces, blocks, sharedBlocks } = services;
  const late = AbortSignal.timeout(searchWaitMs);
  const gathered = {
    /** Something is left for later. */
    isBehind: false,
    /** In words: the sources that could not be read. */
    notes: [] as string[],
    /** Spaces that have said that the agent may not read them. */
    closed: [] as string[],
    /** Others' blocks whose owners have just said that they share them, as the index names them. */
    proven: new Set<string>(),
  };
  let left = budget;
  /** The versions of blocks that are in. */
  const indexed = index.blockVersions();

  const behind = (note: string): void => {
    gathered.isBehind = true;
    if (!gathered.notes.includes(note)) gathered.notes.push(note);
  };

  /** Takes a source in, page after page, while there is `room`. A source that cannot be read now has no page. */
  const follow = async (
    source: string,
    next: (after: number, limit: number) => Promise<Page | null> | Page,
    what = `of the ${source} is`,
    isOver = (): boolean => false,
  ): Promise<void> => {
    for (let limit = searchBatchRows; ; ) {
      if (left <= 0 || isOver()) return behind(`not all ${what} indexed yet`);
      const after = index.cursor(source);
      const page = await next(after, limit);
      if (page === null) return;
      const length = page.found.reduce((sum, { text }) => sum + text.length, 0);
      if (length > searchBatchCharacters && page.rows > 1) {
        limit = Math.max(1, Math.floor((page.rows * searchBatchCharacters) / length));
        continue;
      }
      if (2 * length <= searchBatchCharacters) limit = Math.min(2 * limit, searchBatchRows);
      const isMine = index.transaction(() => {
        if (index.cursor(source) !== after) return false;
        if (page.upTo !== after) {
          index.add(page.found);
          index.move(source, page.upTo);
        }
        left -= page.rows;
        return true;
      });
      if (!page.more || !isMine) return;
      await breathe();
    }
  };

  /** There are few blocks, and each is taken in whole when it has changed. */
  const takeBlock = async (ref: string, load: () => Promise<BlockDetail>): Promise<void> => {
    const notYet = (): void => behind("not all blocks are indexed yet");
    if (left <= 0 || late.aborted) return notYet();
    const block = await unlessAborted(late, load()).catch(() => undefined);
    if (!block && late.aborted) return notYet();
    // The next search tries again: the background does not, since it may fail for ever.
    if (!block) return void gathered.notes.push(`"${labelOf(ref)}" could not be read: it is not found as it is now`);
    index.transaction(() => {
      // The block may have been deleted while it was read.
      if (!blocks.find(ref) && !sharedBlocks.list().some((row) => sharedRef(row) === ref)) return;
      if (index.blockVersions(ref).get(ref) === versionOf(block)) return;
      index.removeRefs("block", [ref]);
      index.add([blockFindable(services, ref, block)]);
    });
    left -= 1;
  };

  const takeOwn = async (): Promise<void> => {
    const now = new Map(blocks.list().map((row) => [row.label, versionOf(blockView(row))]));
    const shared = new Set(sharedBlocks.list().map(sharedRef));
    const gone = [...indexed.keys()].filter((ref) => !now.has(ref) && !shared.has(ref));
    if (gone.length > 0) index.transaction(() => index.removeRefs("block", gone));
    for (const [label, version] of now) {
      if (indexed.get(label) !== version) await takeBlock(label, () => blocks.detail(label));
    }
  };

  /** Others' blocks: each owner says which it shares still, and how they read. One that is silent delays no other. */
  const takeShared = async (): Promise<void> => {
    const others = sharedBlocks.list().filter(({ open }) => open === null);
    const byOwner = [...Map.groupBy(others, ({ ownerId }) => ownerId).values()];
    await workOff(byOwner, maxAskedAtOnce, async (rows) => {
      const read = await unlessAborted(late, sharedBlocks.read(rows, late)).catch(() => []);
      const answered = new Map(read.filter(({ version }) => version > 0).map((block) => [block.label, block]));
      for (const row of rows) {
        const ref = sharedRef(row);
        const block = answered.get(row.label);
        if (!block || indexed.get(ref) === versionOf(block)) continue;
        await takeBlock(ref, () => sharedBlocks.load(row.label, late, { from: row.ownerId }));
      }
      // A block that its owner no longer shares is off the list by now.
      const still = sharedBlocks.list().filter(({ ownerId }) => ownerId === rows[0]?.ownerId);
      for (const row of still) if (answered.has(row.label)) gathered.proven.add(sharedRef(row));
      if (still.some(({ label }) => !answered.has(label)))
        // The next search asks it again: the background does not, however long it is silent.
        gathered.notes.push(`"${rows[0]?.ownerName}" did not answer: what it shares is not found now`);
    });
  };

  const takeMessages = async (): Promise<void> => {
    const news = newsIn(index);
    const cursors = index.spaces();
    const readable = spaces.followed().filter(({ id }) => cursors.get(id) !== neverAny);
    const asked = readable.toSorted((one, other) => news(other) - news(one));
    for (const { snapshot } of asked.slice(maxAskedSpaces).filter((space) => news(space) > 0)) {
      const why = `there are more spaces than maxAskedSpaces (${maxAskedSpaces})`;
      behind(`"${snapshot.name}" was not looked at: ${why}`);
    }
    const pageOf = async (id: string, name: string, after: number, limit: number): Promise<Page | null> => {
      try {
        const page = await unlessAborted(late, spacePage(services, id, after, limit));
        if (page === null) gathered.closed.push(id);
        return page;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.warn("search.space-unreachable", { reason });
        behind(`"${name}" did not answer: its newest messages are not found yet`);
        return null;
      }
    };
    await workOff(asked.slice(0, maxAskedSpaces), maxAskedAtOnce, ({ id, snapshot: { name } }) =>
      follow(
        spaceSource(id),
        (after, limit) => pageOf(id, name, after, limit),
        `messages of "${name}" are`,
        () => late.aborted,
      ),
    );
  };

  /** Takes out what came from spaces that the agent has left, and what it was not told there. A batch of each. */
  const leave = (): void => {
    const mine = new Set(spaces.followed().map(({ id }) => id));
    for (const id of index.spaces().keys()) {
      if (mine.has(id)) continue;
      if (left <= 0) {
        gathered.isBehind = true;
        return;
      }
      const isDeleted = spaces.get(id)?.snapshot.deleted === true;
      const gone = index.transaction(() => index.removeMessages(id, isDeleted, searchBatchRows));
      left -= gone;
      if (gone === searchBatchRows) gathered.isBehind = true;
    }
  };

  await takeOwn();
  if (index.state().passages >= maxSearchEntries) {
    gathered.notes.push(`maxSearchEntries (${maxSearchEntries}) is reached: what is new is not found, blocks aside`);
    await takeShared();
    leave();
    return gathered;
  }
  await follow("archival", (after, limit) => archivalPage(services, after, limit));
  await follow("journal", (after, limit) => journalPage(services, after, limit));
  await Promise.all([takeShared(), takeMessages()]);
  // After the messages themselves, which say more.
  await follow("told", (after, limit) => toldPage(services, after, limit), "that you were told is");
  leave();
  return gathered;
};

/** The author, the place and the question are part of a passage's meaning; its date is not. */
const textOf = ({ head, at, text }: EntryRow): string => `${head.replace(dateWords(at), "")}\n${text}`;

const isSame = (one: EntryRow | undefined, other: EntryRow): boolean =>
  one !== undefined && one.ref === other.ref && one.part === other.part && one.text === other.text;

/** Gives the next passages vectors, at most `budget` of them. True if there are more. */
export const embedPending = async (index: SearchIndex, embedder: Embedder, budget: number): Promise<boolean> => {
  const signal = AbortSignal.timeout(embedTimeoutMs);
  for (let left = budget; left > 0; ) {
    const { embeddedUpTo } = index.state();
    const rows = index.after(embeddedUpTo, Math.min(left, embedder.maxTexts, searchBatchRows));
    if (rows.length === 0) return false;
    const made = await embedder.embed(rows.map(textOf), signal);
    const isMine = index.transaction(() => {
      const state = index.state();
      if (state.embedderId !== embedder.id || state.embeddedUpTo !== embeddedUpTo) return false;
      // Some may have been deleted meanwhile, and their ids be those of others.
      const still = new Map(index.after(embeddedUpTo, rows.length).map((row) => [row.id, row]));
      const kept = rows.flatMap((row, at) => {
        const vector = made.vectors[at];
        return vector && isSame(still.get(row.id), row) ? vectorOf(row, vector) : [];
      });
      index.vectors.append(kept);
      index.setState({ embeddedUpTo: kept.at(-1)?.id ?? embeddedUpTo });
      return true;
    });
    if (!isMine) return true;
    left -= rows.length;
    if (embedder.isEmbedded) await breathe();
  }
  return index.lacksVectors();
};
