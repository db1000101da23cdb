import type { Message } from "../../../protocol/message.ts";
import type { SpaceHistory } from "../../../protocol/rpc.ts";
import { log } from "../../../shared/log.ts";
import { settledWithin } from "../../../shared/timeouts.ts";
import { maxAskedAtOnce, maxAskedSpaces, maxSearchEntries, searchBatchRows } from "../../bounds.ts";
import type { ArchivalRow } from "../archival.ts";
import { dateWords } from "./embedding.ts";
import type { Entries, Findable } from "./entries.ts";
import { journalFindables, type LivedRow } from "./journal-findables.ts";
import { type Sources, spaceSource } from "./sources.ts";
import type { Vectors } from "./vectors.ts";

/**
 * Brings the index up to what it follows.
 *
 * Invariants
 * 1. A page and the cursor behind it are stored in one transaction, and only if the cursor is still where the page was
 *    asked from: two that gather at a time take nothing in twice.
 * 2. No more than `budget` rows are taken in: the clock stands still while an object computes, so rows are counted.
 * 3. Messages come from spaces that the agent is in; those of others are taken out, and are not found meanwhile.
 */
export type IndexedBlock = { label: string; version: number; description: string; text: string; updatedAt: number };

export type GatherDeps = {
  entries: Entries;
  sources: Sources;
  vectors: Vectors;
  transaction<T>(work: () => T): T;
  agent: () => { id: string; name: string };
  /** The spaces that it is in, and how far it has heard of each one's log. */
  spaces: () => { id: string; name: string; cursor: number; memberName(id: string): string | undefined }[];
  /** The name of an id from before the agent was imported. */
  originName: (id: string) => string | undefined;
  /** Up to which row the journal was lived through elsewhere, in spaces that the agent cannot be asked to read. */
  importedJournalEnd: () => number;
  journalAfter: (seq: number, limit: number) => LivedRow[];
  archivalAfter: (ordinal: number, limit: number) => ArchivalRow[];
  /** All of its own blocks: only those whose version changed are read. */
  blocks: { versions(): { label: string; version: number }[]; read(label: string): Promise<IndexedBlock | undefined> };
  isBuiltin: (toolName: string) => boolean;
  /** Its calls show as messages. */
  isSpeech: (toolName: string) => boolean;
  /** Messages of a space; null where the agent may not read it. */
  history: (spaceId: string, after: number, limit: number) => Promise<SpaceHistory | null>;
};

export type Gathered = {
  /** Something is left for later. */
  isBehind: boolean;
  /** In words: the sources that could not be read. */
  notes: string[];
  /** Spaces that have said that the agent may not read them. */
  closed: string[];
};

const journalName = "journal";
const archivalName = "archival";

/** Lets what else waits for this object have its turn. */
const breathe = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

export class Gathering {
  readonly #deps: GatherDeps;
  readonly #until: Promise<unknown>;
  #budget: number;
  readonly #gathered: Gathered = { isBehind: false, notes: [], closed: [] };
  #isLate = false;

  /** `until` resolves when what takes time is waited for no longer. */
  constructor(deps: GatherDeps, budget: number, until: Promise<unknown>) {
    this.#deps = deps;
    this.#budget = budget;
    this.#until = until.then(() => {
      this.#isLate = true;
    });
  }

  async run(): Promise<Gathered> {
    if (this.#deps.entries.count() >= maxSearchEntries) {
      this.#gathered.notes.push(`maxSearchEntries (${maxSearchEntries}) is reached: what is new is not found`);
      return this.#gathered;
    }
    await this.#blocks();
    await this.#pages(archivalName, (after) => this.#archivalPage(after));
    await this.#pages(journalName, (after) => this.#journalPage(after));
    await this.#messages();
    await this.#leave();
    return this.#gathered;
  }

  #behind(note: string): void {
    this.#gathered.isBehind = true;
    this.#gathered.notes.push(note);
  }

  /** Takes a local source in, page after page. */
  async #pages(
    name: string,
    page: (after: number) => { rows: number; upTo: number; found: Findable[] },
  ): Promise<void> {
    const { sources, entries, transaction } = this.#deps;
    while (this.#budget > 0) {
      const more = transaction(() => {
        const { rows, upTo, found } = page(sources.cursor(name));
        if (rows === 0) return false;
        entries.add(found);
        sources.move(name, upTo);
        this.#budget -= rows;
        return rows >= searchBatchRows;
      });
      if (!more) return;
      await breathe();
    }
    this.#behind(`not all of the ${name} is indexed yet`);
  }

  #archivalPage(after: number): { rows: number; upTo: number; found: Findable[] } {
    const rows = this.#deps.archivalAfter(after, searchBatchRows);
    const { originName } = this.#deps;
    const spaces = this.#deps.spaces();
    const found = rows.map(({ id, content, metadata, source, createdAt }): Findable => {
      const space = spaces.find((each) => each.id === source.spaceId);
      const { authorId, spaceId } = source;
      const author = authorId === undefined ? undefined : (space?.memberName(authorId) ?? originName(authorId));
      const place = spaceId === undefined ? undefined : (space?.name ?? originName(spaceId));
      const about = Object.keys(metadata).length === 0 ? undefined : JSON.stringify(metadata);
      return {
        type: "archival",
        ref: id,
        spaceId: source.spaceId ?? null,
        messageId: source.messageId ?? null,
        authorId: source.authorId ?? null,
        authorName: author ?? null,
        at: createdAt,
        head: [about, author, place, dateWords(createdAt)].filter((part) => part !== undefined).join(" · "),
        text: content,
      };
    });
    return { rows: rows.length, upTo: rows.at(-1)?.ordinal ?? after, found };
  }

  #journalPage(after: number): { rows: number; upTo: number; found: Findable[] } {
    const { journalAfter, agent, importedJournalEnd } = this.#deps;
    const rows = journalAfter(after, searchBatchRows);
    return {
      rows: rows.length,
      upTo: rows.at(-1)?.seq ?? after,
      found: journalFindables(rows, this.#deps, agent(), importedJournalEnd()),
    };
  }

  /** There are few blocks, and each is taken in whole when it has changed. */
  async #blocks(): Promise<void> {
    const { blocks, entries, vectors, transaction } = this.#deps;
    const now = new Map(blocks.versions().map(({ label, version }) => [label, version]));
    const indexed = entries.blockVersions();
    const gone = [...indexed.keys()].filter((label) => !now.has(label));
    if (gone.length > 0) transaction(() => vectors.remove(entries.removeRefs("block", gone)));
    for (const [label, version] of now) {
      if (indexed.get(label) === version) continue;
      if (this.#budget <= 0 || this.#isLate) return this.#behind("not all blocks are indexed yet");
      const block = await blocks.read(label);
      if (block) transaction(() => this.#replace(block));
      this.#budget -= 1;
    }
  }

  #replace(block: IndexedBlock): void {
    const { entries, vectors, agent } = this.#deps;
    const { label, version, description, text, updatedAt } = block;
    if (entries.blockVersions().get(label) === version) return;
    vectors.remove(entries.removeRefs("block", [label]));
    const { id: authorId, name: authorName } = agent();
    // A block without text is found by its label.
    const found = text.trim() === "" ? label : text;
    const head = `${label} · ${description}`;
    entries.add([{ type: "block", ref: label, version, authorId, authorName, at: updatedAt, head, text: found }]);
  }

  async #messages(): Promise<void> {
    const { sources, spaces } = this.#deps;
    const followed = sources.spaces();
    const news = (space: { id: string; cursor: number }): number =>
      space.cursor - (followed.get(space.id)?.cursor ?? 0);
    const asked = spaces().toSorted((one, other) => news(other) - news(one));
    const waiting = asked.slice(0, maxAskedSpaces);
    for (const { name } of asked.slice(maxAskedSpaces).filter((space) => news(space) > 0)) {
      this.#behind(`"${name}" was not looked at: there are more spaces than maxAskedSpaces (${maxAskedSpaces})`);
    }
    const askNext = async (): Promise<void> => {
      for (let space = waiting.shift(); space; space = waiting.shift()) {
        const name = space.name;
        if (this.#isLate || this.#budget <= 0) this.#behind(`not all messages of "${name}" are indexed yet`);
        else await this.#follow(space);
      }
    };
    await Promise.all(Array.from({ length: maxAskedAtOnce }, askNext));
  }

  /** Takes a space's log in, page after page. */
  async #follow({ id, name }: { id: string; name: string }): Promise<void> {
    const { sources, entries, transaction, history, agent } = this.#deps;
    const source = spaceSource(id);
    for (;;) {
      const after = sources.cursor(source);
      const page = await this.#withTimeout(history(id, after, searchBatchRows));
      if (page === null) return void this.#gathered.closed.push(id);
      if (page === "late" || page === "unreachable") {
        return this.#behind(`"${name}" did not answer: its newest messages are not found yet`);
      }
      const isMine = transaction(() => {
        if (sources.cursor(source) !== after) return false;
        if (page.cursor === after && sources.find(source)) return true;
        const all = page.before ? [page.before, ...page.messages] : page.messages;
        const own = agent().id;
        const space = { id, name: page.name };
        const first = all.length - page.messages.length;
        entries.add(
          page.messages.map((message, index) => messageFindable(message, all.slice(0, first + index), space, own)),
        );
        sources.move(source, page.cursor);
        this.#budget -= page.messages.length;
        return true;
      });
      if (!page.more || !isMine) return;
      if (this.#budget <= 0 || this.#isLate) return this.#behind(`not all messages of "${name}" are indexed yet`);
    }
  }

  async #withTimeout<T>(answer: Promise<T>): Promise<T | "late" | "unreachable"> {
    const outcome = answer.catch((error: unknown) => {
      log.warn("search.space-unreachable", { reason: error instanceof Error ? error.message : String(error) });
      return "unreachable" as const;
    });
    return Promise.race([outcome, this.#until.then(() => "late" as const)]);
  }

  /** Takes out what came from spaces that the agent has left. */
  async #leave(): Promise<void> {
    const { sources, spaces, entries, vectors, transaction } = this.#deps;
    const mine = new Set(spaces().map(({ id }) => id));
    for (const [id, { name }] of sources.spaces()) {
      while (!mine.has(id)) {
        if (this.#budget <= 0) {
          this.#gathered.isBehind = true;
          return;
        }
        const gone = transaction(() => {
          const ids = entries.removeMessages(id, searchBatchRows);
          vectors.remove(ids);
          if (ids.length === 0) sources.forget(name);
          return ids.length;
        });
        this.#budget -= gone;
        if (gone === 0) break;
        await breathe();
      }
    }
  }
}

/** Gathers for `waitMs` at most, where others are waited for. */
export const gather = async (deps: GatherDeps, budget: number, waitMs: number): Promise<Gathered> => {
  const over = Promise.withResolvers<void>();
  const until = settledWithin(waitMs, over.promise);
  try {
    return await new Gathering(deps, budget, until).run();
  } finally {
    over.resolve();
  }
};

const textOf = ({ text, toolCall }: Message): string =>
  toolCall ? `${toolCall.name} ${JSON.stringify(toolCall.input)}` : (text ?? "");

/** An answer says little without its question; one that is older than that is another matter. */
const questionMs = 30 * 60_000;
const questionCharacters = 300;

/** The text that a message answers: the message that it replies to, or a question just before it. */
const answeredBy = (message: Message, before: Message | undefined): string | undefined => {
  if (!before || before.sender.id === message.sender.id) return undefined;
  const isReply = message.replyTo === before.id;
  const isSoon = Date.parse(message.createdAt) - Date.parse(before.createdAt) <= questionMs;
  if (!isReply && !(isSoon && before.text?.includes("?"))) return undefined;
  return textOf(before).slice(0, questionCharacters);
};

/** A message of a space, found by what it says, who said it, where and when, and what it answers. */
export const messageFindable = (
  message: Message,
  earlier: Message[],
  space: { id: string; name: string },
  agentId: string,
): Findable => {
  const at = Date.parse(message.createdAt);
  const before = earlier.find(({ id }) => id === message.replyTo) ?? earlier.at(-1);
  const answers = answeredBy(message, before);
  return {
    type: "message",
    ref: message.id,
    role: message.sender.id === agentId ? "assistant" : "user",
    spaceId: space.id,
    messageId: message.id,
    authorId: message.sender.id,
    authorName: message.sender.name,
    at,
    head: [message.sender.name, space.name, dateWords(at), ...(answers === undefined ? [] : [answers])].join(" · "),
    text: textOf(message),
  };
};
