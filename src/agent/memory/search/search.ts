import { estimatedTokens } from "../../../models/billed-tokens.ts";
import type { Embedder } from "../../../models/embedders/embedder.ts";
import { embedderIdOf, resolveEmbedder } from "../../../models/embedders/embedders.ts";
import { isRefusal } from "../../../models/failure.ts";
import {
  type QueryVector,
  type SearchAnswer,
  type SearchHit,
  type SearchQuery,
  SearchType,
} from "../../../protocol/search.ts";
import { backoff, type Pauses } from "../../../shared/backoff.ts";
import { countOf, type Database } from "../../../shared/database.ts";
import { ColloquyError, unwrap } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import { withTimeout } from "../../../shared/timeouts.ts";
import {
  embedFirstRetryMs,
  embedLongestRetryMs,
  redactionRows,
  searchCatchUpRows,
  searchEmbedMs,
  searchKeepUpMs,
  searchKeptMs,
  searchLeaseMs,
  searchNewsMs,
  searchPauseMs,
  searchWaitMs,
  searchWorkRows,
} from "../../bounds.ts";
import type { Budget } from "../../ledger.ts";
import { compartments } from "../../schema.ts";
import { unasked } from "../../tokens.ts";
import { sharedRef } from "../blocks/shared-blocks.ts";
import { embedPending, gather, isCaughtUp } from "./indexer.ts";
import { matchOf } from "./match-expression.ts";
import { asksForNewest, firstOfEach, fuse, fuseBy, hitOf, type Ranking, ranked } from "./ranking.ts";
import { asksForMore, forSpeakers, leaders, varied, withFollowers } from "./reranking.ts";
import { createSearchIndex, type SearchIndex, spaceSource } from "./search-index.ts";
import { type EntryRow, isShared, runIdOf, type SearchServices } from "./sources.ts";
import { type Filter, quantised } from "./vectors.ts";

/**
 * Search over all that an agent may read and has lived through.
 *
 * Invariants
 * 1. Nothing is indexed before search is asked for first, and nothing on the way of a message. Each search takes in
 *    what is new, as much as its bounds allow, and says when that was not all. The timer `search` does the rest.
 * 2. Vectors are made in the background. An embedder in this process makes them once somebody has asked for them, with
 *    the search. Where the query's own vector cannot be had in time, words alone decide, and the answer says so.
 * 3. While something is left to do, or the index is kept up, the timer is set: a crash is followed by another try.
 * 4. A compartment indexes what is its own, and asks the open mind for the rest. Both rank by their own words alone,
 *    and their ranks are fused. To be asked changes nothing in an open mind. Once it has compartments, its index
 *    follows what is new in time, as if nobody asked.
 */
export const searchTimer = "search";

const noteUsedEveryMs = 60 * 60_000;
const pauses: Pauses = { firstMs: embedFirstRetryMs, longestMs: embedLongestRetryMs };
/** So many rows are looked at for each that is answered: passages of one text, and what is newer, change places. */
const depth = 4;

/** The passages that may be shown beside those that the index itself leaves out. */
type Shown = {
  /** Spaces that have just refused to be read; the agent has not heard yet that it is no longer in them. */
  closed: readonly string[];
  /** Others' blocks: they are found while their owners say so. */
  proven: ReadonlySet<string>;
};

export class Search {
  readonly #services: SearchServices;
  readonly #index: SearchIndex;
  /** Whether the agent has compartments, once that was looked up. */
  #hasCompartments: boolean | undefined;
  readonly #lookUp: () => boolean;
  #failures = 0;
  /** How often an embedder was set. */
  #configured = 0;
  #stopped = false;

  constructor(db: Database, services: SearchServices) {
    this.#services = services;
    this.#lookUp = () => countOf(db, compartments) > 0;
    this.#index = createSearchIndex(
      db,
      (work) => {
        if (this.#stopped) throw new ColloquyError("gone", "the agent is being deleted");
        return db.transaction(work);
      },
      services.redactions.clean,
    );
  }

  #gather(rows: number): ReturnType<typeof gather> {
    return this.#services.redactions.during(() => gather(this.#index, this.#services, rows));
  }

  /** A message that the agent read, though no event told it: its place in the journal, its run and its words. */
  async lived(messageId: string): Promise<{ place: string; runId: string; text: string } | undefined> {
    // Any search takes in what is new first.
    await this.search({ query: messageId, mode: "fts", types: [], limit: 1 });
    const { lived, text = "" } = this.#index.message(messageId) ?? {};
    return lived == null ? undefined : { place: lived, runId: runIdOf(lived), text };
  }

  /** Takes words out of the next passages. In a transaction. Answers how far that came, undefined at the end. */
  redact: SearchIndex["redact"] = (...asked) => this.#index.redact(...asked);

  /** The journal of these runs is cut. In a transaction. */
  forgetRuns = (runIds: string[]): void => this.#index.removeRuns(runIds);

  async search(query: SearchQuery): Promise<SearchAnswer> {
    const { clock, timers, identity } = this.#services;
    const index = this.#index;
    if (clock.now() - index.state().usedAt > noteUsedEveryMs) index.setState({ usedAt: clock.now() });
    const { isBehind, notes, closed, proven } = await this.#gather(searchCatchUpRows);
    const embedder = await this.#embedder(query.mode === "fts" ? [] : notes);
    const isAsked = query.mode === "vector" || query.mode === "hybrid";
    // Letters alone do not earn a place beside words: an embedder in this process works where it is asked for by name.
    const embeds = embedder !== null && (isAsked || !embedder.isEmbedded);
    const embedsNow = embeds && embedder.isEmbedded;
    const isLeft = embedsNow ? await embedPending(index, embedder, searchCatchUpRows) : embeds && index.lacksVectors();
    // A failed embedder is retried when its pause is over, not earlier.
    if (this.#failures === 0 || timers.dueAt(searchTimer) === undefined) {
      timers.setNoLater(searchTimer, clock.now() + (isBehind || isLeft ? searchPauseMs : searchKeepUpMs));
    }
    const { passages, embeddedUpTo } = index.state();
    const best = embeds && (embeddedUpTo > 0 || passages === 0) ? "hybrid" : "fts";
    const wanted = query.mode === "auto" ? best : query.mode;
    if (isLeft && wanted !== "fts") notes.push("not all has vectors yet");
    const vector = wanted === "fts" || !embedder ? null : await vectorFor(query.query, embedder, notes);
    const mode = vector === null ? this.#withoutVector(query, notes) : wanted;
    // Beside a search by words, only passages that are surely alike count.
    const least = (mode === "vector" ? embedder?.leastLikeness : embedder?.sureLikeness) ?? 0;
    const alike = vector && embedder && { embedderId: embedder.id, values: Array.from(vector), least };
    const asked = { ...query, mode };
    const own = this.#hits(asked, alike, { closed, proven });
    const isWhole = identity.get().compartmentId === null;
    const items = isWhole ? own : withOpen(own, await this.#askOpen(asked, alike, notes)).slice(0, query.limit);
    return { items, nextCursor: null, mode, partial: notes.length > 0, notes };
  }

  /** For a compartment, as far as the index has come. Changes nothing. Others' blocks are the compartment's own to ask for. */
  read(query: SearchQuery, alike: QueryVector | null): SearchAnswer {
    const { embedderId, embeddedUpTo } = this.#index.state();
    const knowsVectors = alike?.embedderId === embedderId && embeddedUpTo > 0;
    const mode = query.mode === "hybrid" && !knowsVectors ? "fts" : query.mode;
    const notes = [
      ...(isCaughtUp(this.#index, this.#services) ? [] : ["not all of the open mind is indexed yet"]),
      ...(mode === "vector" && !knowsVectors ? ["the open mind has no vectors yet"] : []),
    ];
    const items = this.#hits({ ...query, mode }, knowsVectors ? alike : null, { closed: [], proven: new Set() });
    return { items, nextCursor: null, mode: mode === "auto" ? "fts" : mode, partial: notes.length > 0, notes };
  }

  /** The hits of the open mind. */
  async #askOpen(query: SearchQuery, alike: QueryVector | null, notes: string[]): Promise<SearchHit[]> {
    const { env, identity } = this.#services;
    const { id: ownerId, workspaceId } = identity.get();
    try {
      const asked = env.AGENT.getByName(ownerId).searchOpen(workspaceId, query, alike);
      const answer = unwrap(await withTimeout(searchWaitMs, asked));
      notes.push(...answer.notes);
      return answer.items.map((hit) => {
        const id = hit.type === "block" ? sharedRef({ label: hit.id, ownerId }) : hit.id;
        return { ...hit, id, open: true };
      });
    } catch (error) {
      log.warn("search.open-mind-unreachable", { reason: String(error) });
      notes.push("your open mind did not answer: what you know outside of this space is not found now");
      return [];
    }
  }

  /** The best of what is indexed. The query's mode is what is done. */
  #hits(query: SearchQuery, alike: QueryVector | null, { closed, proven }: Shown): SearchHit[] {
    const { clock, spaces } = this.#services;
    const index = this.#index;
    const { mode } = query;
    const match = matchOf(query.query);
    const filter = filterOf(query);
    const most = query.limit * 2;
    const spaceOf = ({ spaceId }: EntryRow) => (spaceId === null ? undefined : spaces.get(spaceId));
    const shownAs = (row: EntryRow): SearchType | undefined => {
      const { type, ref, lived } = row;
      if (type === "block" && isShared(ref) && !proven.has(ref)) return undefined;
      const space = spaceOf(row);
      const isDeleted = space?.snapshot.deleted === true;
      if (type === "consciousness" && isDeleted) return undefined;
      if (type !== "message") return type;
      const isOpen = space?.left === false && !closed.includes(space.id);
      if (isOpen && filter.types.includes("message")) return "message";
      return lived !== null && !isDeleted && filter.types.includes("consciousness") ? "consciousness" : undefined;
    };
    const rankings: Ranking[] = [];
    if (mode !== "vector" && match.expression !== null) {
      const rows = index.matching(match.expression, filter, most * depth).filter(({ row }) => shownAs(row));
      const matches = firstOfEach(ranked(rows, clock.now(), asksForNewest(query.query)));
      const leading = asksForMore(match) ? matches.slice(0, leaders).map(({ row }) => row) : [];
      const next = index.followers(leading, filter).filter(({ row }) => shownAs(row));
      rankings.push(varied(forSpeakers(withFollowers(matches, next), match.words)).slice(0, most));
    }
    if (alike) {
      const nearest = index.vectors.nearest(quantised(alike.values), filter, alike.least, most * depth);
      const shown = index
        .withRows(nearest, filter)
        .flatMap(({ row, likeness }) => (shownAs(row) ? { row, score: likeness } : []));
      rankings.push(firstOfEach(shown).slice(0, most));
    }
    const ranking = mode === "hybrid" ? fuse(rankings) : rankings.flat();
    return ranking.slice(0, query.limit).map((each) => {
      const spaceName = spaceOf(each.row)?.snapshot.name ?? null;
      return hitOf(each, { words: match.words, type: shownAs(each.row) ?? each.row.type, spaceName });
    });
  }

  /** Whether the index is brought up by the timer. */
  #isUsed(): boolean {
    return this.#index.state().usedAt > 0 || this.#isRead();
  }

  #isRead(): boolean {
    this.#hasCompartments ??= this.#lookUp();
    return this.#hasCompartments;
  }

  /** There is something new for the index; `compartment`: one that will ask for it. Compartments read what is there. */
  noticed(compartment = false): void {
    if (compartment) this.#hasCompartments = true;
    if (this.#isRead()) this.#services.timers.setNoLater(searchTimer, this.#services.clock.now() + searchNewsMs);
  }

  /** The config's embedder was set: another one begins anew, in the background. */
  configured(): void {
    this.#configured += 1;
    if (this.#isUsed()) this.#services.timers.set(searchTimer, this.#services.clock.now());
  }

  /** An archival entry is gone. In its transaction; `newest` is the last that is left. */
  forget(id: string, newest: number): void {
    this.#index.removeRefs("archival", [id]);
    if (this.#index.cursor("archival") > newest) this.#index.move("archival", newest);
  }

  /** A block is gone, or is no longer shared. */
  forgetBlock(ref: string): void {
    this.#index.removeRefs("block", [ref]);
  }

  /** Takes out what it has of a space's messages, as much as one go may. Answers whether that was all. */
  dropSpace(spaceId: string): boolean {
    return this.#index.dropSpace(spaceId, redactionRows);
  }

  /** A space was deleted: what is indexed of it goes with the next look at the sources. In a transaction. */
  forgetSpace(spaceId: string): void {
    if (this.#isUsed()) this.#index.move(spaceSource(spaceId), 0);
  }

  /** The timer fired. Answers the work, which goes on beside its caller. */
  async work(): Promise<void> {
    const { clock, timers } = this.#services;
    if (!this.#isUsed()) return;
    // For when it is cut.
    const lease = clock.now() + searchLeaseMs;
    const configured = this.#configured;
    timers.set(searchTimer, lease);
    try {
      const { isBehind } = await this.#gather(searchWorkRows);
      const embedder = await this.#embedder();
      const isWanted = embedder !== null && (!embedder.isEmbedded || this.#index.state().embeddedUpTo > 0);
      const isLeft = isWanted && (await embedPending(this.#index, embedder, searchWorkRows));
      this.#failures = 0;
      // Somebody else may have set it meanwhile.
      if (timers.dueAt(searchTimer) !== lease) return;
      const now = clock.now();
      if (isBehind || isLeft) timers.set(searchTimer, now + searchPauseMs);
      else if (now - this.#index.state().usedAt < searchKeptMs) timers.set(searchTimer, now + searchKeepUpMs);
      else timers.clear(searchTimer);
    } catch (error) {
      // The failure was the old embedder's: another one was set meanwhile.
      if (this.#stopped || configured !== this.#configured) return;
      const { code = "internal", retryAfterMs } = error instanceof ColloquyError ? error : {};
      timers.set(searchTimer, clock.now() + backoff(this.#failures, pauses, retryAfterMs));
      this.#failures += 1;
      log.warn("search.work-failed", { code, failures: this.#failures });
    }
  }

  /** The agent is being deleted: nothing is stored any more. */
  stop(): void {
    this.#stopped = true;
  }

  /** The embedder of the config, null for none. Throws what is wrong with it, or notes it where it is given `notes`. */
  async #embedder(notes?: string[]): Promise<Embedder | null> {
    const { env, identity, budget } = this.#services;
    const { embedder: config } = identity.get().config;
    this.#use(embedderIdOf(config));
    try {
      const embedder = await resolveEmbedder(config, {
        env,
        unsealSecret: (name, use) => identity.unsealSecret(name, use),
      });
      return embedder && booked(embedder, budget);
    } catch (error) {
      if (!notes || !(error instanceof ColloquyError)) throw error;
      notes.push(`the embedder cannot be used: ${error.message}`);
      return null;
    }
  }

  /** Drops what another embedder made. Null: there are no vectors at all. */
  #use(embedderId: string | null): void {
    if (this.#index.state().embedderId === embedderId) return;
    this.#index.transaction(() => {
      this.#index.vectors.clear();
      this.#index.setState({ embedderId, embeddedUpTo: 0 });
    });
  }

  #withoutVector({ mode }: SearchQuery, notes: string[]): "fts" {
    if (mode === "fts" || mode === "auto") return "fts";
    if (this.#index.state().embedderId === null) {
      throw new ColloquyError("invalid_request", "this agent has no embedder: set one in its config, or search by fts");
    }
    if (mode === "hybrid") return "fts";
    throw new ColloquyError("unavailable", `the query has no vector: ${notes.at(-1) ?? "try again"}; or search by fts`);
  }
}

/** The hits of a compartment and of its open mind, by the place of each in its own order. */
const withOpen = (own: SearchHit[], open: SearchHit[]): SearchHit[] =>
  fuseBy([own, open], ({ type, id }) => `${type} ${id}`);

/** The vector of a query; null where the embedder does not answer in time, which is noted. */
const vectorFor = async (text: string, embedder: Embedder, notes: string[]): Promise<ArrayLike<number> | null> => {
  try {
    const { vectors } = await embedder.embed([text], AbortSignal.timeout(searchEmbedMs));
    return vectors[0] ?? null;
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    notes.push(`the embedder did not answer (${error.code}): searched by words alone`);
    return null;
  }
};

const filterOf = ({ types, role, from, to }: SearchQuery): Filter => ({
  types: types.length > 0 ? [...new Set(types)] : SearchType.options,
  role: role ?? null,
  from: from === undefined ? 0 : Date.parse(from),
  to: to === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(to),
});

/**
 * A provider's embedder, its tokens booked like a run's step's (B2). They are reserved before it is asked, and settled
 * by what was billed. A call that failed and may have been billed is booked whole. One in this process costs nothing.
 * They count for the account `unasked`, which has one person's share of the day (C11).
 */
const booked = (embedder: Embedder, budget: Budget): Embedder => ({
  ...embedder,
  embed: async (texts, signal) => {
    if (embedder.isEmbedded) return embedder.embed(texts, signal);
    const step = `embed-${crypto.randomUUID()}`;
    const reserved = estimatedTokens(texts);
    if ((await budget.reserve(step, reserved, unasked, signal)) !== "reserved") {
      throw new ColloquyError(
        "budget_exhausted",
        "the agent's tokens of today are spent or booked (maxTokensPerDay, maxShareOfPerson)",
      );
    }
    try {
      const answer = await embedder.embed(texts, signal);
      budget.settle(step, answer.tokens);
      return answer;
    } catch (error) {
      // Refused before anything was done for it: nobody bills that. Any other failure may be billed.
      budget.settle(step, error instanceof Error && isRefusal(error.cause) ? 0 : reserved);
      throw error;
    }
  },
});
