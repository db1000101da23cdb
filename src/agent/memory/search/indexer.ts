import type { Env } from "../../../env/env.ts";
import type { SpaceHistory } from "../../../protocol/rpc.ts";
import { unwrap } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import { settledWithin } from "../../../shared/timeouts.ts";
import { maxAskedAtOnce, maxAskedSpaces, maxSearchEntries, searchBatchRows, searchWaitMs } from "../../bounds.ts";
import type { Identity } from "../../identity.ts";
import type { Journal } from "../../journal.ts";
import type { Runs } from "../../runs.ts";
import type { Spaces } from "../../spaces.ts";
import type { Archival } from "../archival.ts";
import type { Blocks } from "../blocks/blocks.ts";
import { archivalFindable, type Findable, journalFindable, messageFindable, type ToolFacts } from "./findables.ts";
import { type SearchIndex, spaceSource } from "./search-index.ts";

/**
 * Brings the index up to what it follows.
 *
 * Invariants
 * 1. A page and the cursor behind it are stored in one transaction, and only if the cursor is still where the page was
 *    asked from: two that gather at a time take nothing in twice.
 * 2. No more than `budget` rows are taken in: the clock stands still while an object computes, so rows are counted.
 * 3. Messages come from spaces that the agent is in; those of others are taken out, and are not found meanwhile.
 */
export type IndexedServices = ToolFacts & {
  env: Env;
  identity: Identity;
  spaces: Spaces;
  journal: Journal;
  runs: Runs;
  blocks: Blocks;
  archival: Archival;
  /** The name of an id from before the agent was imported. */
  originName: (id: string) => string | undefined;
  /** Up to which row the journal was lived through elsewhere, in spaces that the agent cannot be asked to read. */
  importedJournalEnd: () => number;
};

export type Gathered = {
  /** Something is left for later. */
  isBehind: boolean;
  /** In words: the sources that could not be read. */
  notes: string[];
  /** Spaces that have said that the agent may not read them. */
  closed: string[];
};

type Page = { rows: number; upTo: number; found: Findable[]; more: boolean };

/** The page of a source after a cursor. Null: it cannot be read now, which is noted. */
type NextPage = (after: number) => Promise<Page | null>;

/** Lets what else waits for this object have its turn. */
const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** A label may be used again: its versions begin anew, its times do not. */
const versionOf = ({ updatedAt, version }: { updatedAt: number; version: number }): number =>
  updatedAt * 1000 + (version % 1000);

class Indexer {
  readonly #index: SearchIndex;
  readonly #services: IndexedServices;
  /** Resolves when what takes time is waited for no longer. */
  readonly #until: Promise<unknown>;
  #budget: number;
  #isLate = false;
  readonly #gathered: Gathered = { isBehind: false, notes: [], closed: [] };

  constructor(index: SearchIndex, services: IndexedServices, budget: number, until: Promise<unknown>) {
    this.#index = index;
    this.#services = services;
    this.#budget = budget;
    this.#until = until.then(() => {
      this.#isLate = true;
    });
  }

  async run(): Promise<Gathered> {
    if (this.#index.count() >= maxSearchEntries) {
      this.#gathered.notes.push(`maxSearchEntries (${maxSearchEntries}) is reached: what is new is not found`);
      return this.#gathered;
    }
    await this.#blocks();
    await this.#follow("archival", (after) => this.#archival(after));
    await this.#follow("journal", (after) => this.#journal(after));
    await this.#messages();
    await this.#leave();
    return this.#gathered;
  }

  #behind(note: string): void {
    this.#gathered.isBehind = true;
    this.#gathered.notes.push(note);
  }

  /** Takes a source in, page after page; a space's log until it is late. */
  async #follow(source: string, next: NextPage, spaceName?: string): Promise<void> {
    for (;;) {
      if (this.#budget <= 0 || (spaceName !== undefined && this.#isLate)) {
        const what = spaceName === undefined ? `of the ${source} is` : `messages of "${spaceName}" are`;
        return this.#behind(`not all ${what} indexed yet`);
      }
      const after = this.#index.cursor(source);
      const page = await next(after);
      if (page === null) return;
      const isMine = this.#index.transaction(() => {
        if (this.#index.cursor(source) !== after) return false;
        if (page.upTo !== after) {
          this.#index.add(page.found);
          this.#index.move(source, page.upTo);
        }
        this.#budget -= page.rows;
        return true;
      });
      if (!page.more || !isMine) return;
      await breathe();
    }
  }

  async #archival(after: number): Promise<Page> {
    const { archival, spaces, originName } = this.#services;
    const rows = archival.after(after, searchBatchRows);
    const known = new Map(spaces.followed().map(({ id, snapshot }) => [id, snapshot]));
    const found = rows.map((row) => archivalFindable(row, known, originName));
    return { rows: rows.length, upTo: rows.at(-1)?.ordinal ?? after, found, more: rows.length >= searchBatchRows };
  }

  async #journal(after: number): Promise<Page> {
    const { journal, runs, importedJournalEnd } = this.#services;
    const rows = journal.after(after, searchBatchRows);
    const ordinals = [...new Set(rows.map(({ runOrdinal }) => runOrdinal))];
    const ids = new Map(runs.those(ordinals).map(({ ordinal, id }) => [ordinal, id]));
    const imported = importedJournalEnd();
    const found = rows.flatMap((row) => {
      const runId = ids.get(row.runOrdinal) ?? "";
      return journalFindable(row, runId, this.#services, this.#agent(), row.seq <= imported) ?? [];
    });
    return { rows: rows.length, upTo: rows.at(-1)?.seq ?? after, found, more: rows.length >= searchBatchRows };
  }

  #agent(): { id: string; name: string } {
    const { id, config } = this.#services.identity.get();
    return { id, name: config.name };
  }

  /** There are few blocks, and each is taken in whole when it has changed. */
  async #blocks(): Promise<void> {
    const { blocks } = this.#services;
    const now = new Map(blocks.list().map((row) => [row.label, versionOf(row)]));
    const indexed = this.#index.blockVersions();
    const gone = [...indexed.keys()].filter((label) => !now.has(label));
    if (gone.length > 0) this.#index.transaction(() => this.#index.removeRefs("block", gone));
    for (const [label, version] of now) {
      if (indexed.get(label) === version) continue;
      if (this.#budget <= 0 || this.#isLate) return this.#behind("not all blocks are indexed yet");
      await this.#block(label);
      this.#budget -= 1;
    }
  }

  async #block(label: string): Promise<void> {
    const { blocks } = this.#services;
    const row = blocks.find(label);
    if (!row) return;
    const version = versionOf(row);
    const text = await blocks.wholeText(label);
    const { id: authorId, name: authorName } = this.#agent();
    const found: Findable = {
      ...{ type: "block", ref: label, version, authorId, authorName, at: row.updatedAt },
      head: `${label} · ${row.description}`,
      // A block without text is found by its label.
      text: text.trim() === "" ? label : text,
    };
    this.#index.transaction(() => {
      if (this.#index.blockVersions().get(label) === version) return;
      this.#index.removeRefs("block", [label]);
      this.#index.add([found]);
    });
  }

  async #messages(): Promise<void> {
    const followed = this.#index.spaces();
    const news = (space: { id: string; cursor: number }): number =>
      space.cursor - (followed.get(space.id)?.cursor ?? 0);
    const asked = this.#services.spaces.followed().toSorted((one, other) => news(other) - news(one));
    for (const { snapshot } of asked.slice(maxAskedSpaces).filter((space) => news(space) > 0)) {
      const why = `there are more spaces than maxAskedSpaces (${maxAskedSpaces})`;
      this.#behind(`"${snapshot.name}" was not looked at: ${why}`);
    }
    const waiting = asked.slice(0, maxAskedSpaces);
    const askNext = async (): Promise<void> => {
      for (let space = waiting.shift(); space; space = waiting.shift()) {
        const { id, snapshot } = space;
        await this.#follow(spaceSource(id), (after) => this.#history(id, snapshot.name, after), snapshot.name);
      }
    };
    await Promise.all(Array.from({ length: maxAskedAtOnce }, askNext));
  }

  async #history(id: string, name: string, after: number): Promise<Page | null> {
    const asked = this.#ask(id, after).catch((error: unknown) => {
      log.warn("search.space-unreachable", { reason: error instanceof Error ? error.message : String(error) });
      return undefined;
    });
    const page = await Promise.race([asked, this.#until.then(() => undefined)]);
    if (page === undefined) this.#behind(`"${name}" did not answer: its newest messages are not found yet`);
    if (page === null) this.#gathered.closed.push(id);
    if (!page) return null;
    const { messages, before, cursor: upTo, more } = page;
    const all = before ? [before, ...messages] : messages;
    const space = { id, name: page.name };
    const agentId = this.#agent().id;
    const found = messages.map((message, index) =>
      messageFindable(message, all.slice(0, all.length - messages.length + index), space, agentId),
    );
    return { rows: messages.length, upTo, found, more };
  }

  /** Messages of a space; null where the agent may not read it. */
  async #ask(spaceId: string, after: number): Promise<SpaceHistory | null> {
    const { env, identity } = this.#services;
    const { id, workspaceId } = identity.get();
    const page = { after, limit: searchBatchRows };
    const answer = await env.SPACE.getByName(spaceId).history(workspaceId, id, page);
    if (!answer.ok && (answer.problem.code === "not_a_member" || answer.problem.code === "not_found")) return null;
    return unwrap(answer);
  }

  /** Takes out what came from spaces that the agent has left. */
  async #leave(): Promise<void> {
    const mine = new Set(this.#services.spaces.followed().map(({ id }) => id));
    for (const id of this.#index.spaces().keys()) {
      while (!mine.has(id)) {
        if (this.#budget <= 0) {
          this.#gathered.isBehind = true;
          return;
        }
        const gone = this.#index.transaction(() => this.#index.removeMessages(id, searchBatchRows));
        this.#budget -= gone;
        if (gone === 0) break;
        await breathe();
      }
    }
  }
}

/** Takes in what is new, at most `budget` rows; others are waited for `searchWaitMs` at most. */
export const gather = async (index: SearchIndex, services: IndexedServices, budget: number): Promise<Gathered> => {
  const over = Promise.withResolvers<void>();
  try {
    return await new Indexer(index, services, budget, settledWithin(searchWaitMs, over.promise)).run();
  } finally {
    over.resolve();
  }
};
