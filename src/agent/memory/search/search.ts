import { estimatedTokens } from "../../../models/billed-tokens.ts";
import type { Embedder } from "../../../models/embedders/embedder.ts";
import { embedderIdOf, resolveEmbedder } from "../../../models/embedders/embedders.ts";
import { isRefusal } from "../../../models/failure.ts";
import { type SearchAnswer, type SearchQuery, SearchType } from "../../../protocol/search.ts";
import { backoff, type Pauses } from "../../../shared/backoff.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import {
  embedFirstRetryMs,
  embedLongestRetryMs,
  searchCatchUpRows,
  searchEmbedMs,
  searchKeepUpMs,
  searchKeptMs,
  searchLeaseMs,
  searchPauseMs,
  searchWorkRows,
} from "../../bounds.ts";
import type { Ledger } from "../../ledger.ts";
import { embedPending, gather } from "./indexer.ts";
import { matchOf } from "./match-expression.ts";
import { asksForNewest, firstOfEach, fuse, hitOf, type Ranking, ranked } from "./ranking.ts";
import { asksForMore, forSpeakers, leaders, varied, withFollowers } from "./reranking.ts";
import { createSearchIndex, type SearchIndex, spaceSource } from "./search-index.ts";
import { type EntryRow, isShared, runIdOf, type SearchServices } from "./sources.ts";
import { type Filter, quantised } from "./vectors.ts";

/**
 * Search over all that an agent may read and has lived through.
 *
 * Invariants
 * 1. Nothing is indexed before search is asked for first, and nothing on the way of a message: each search takes in what
 *    is new, as much as its bounds allow, and says when that was not all. The timer `search` does the rest.
 * 2. Vectors are made in the background. An embedder in this process makes them once somebody has asked for them, with
 *    the search. Where the query's own vector cannot be had in time, words alone decide, and the answer says so.
 * 3. While something is left to do, or the index is kept up, the timer is set: a crash is followed by another try.
 */
export const searchTimer = "search";

const noteUsedEveryMs = 60 * 60_000;
const pauses: Pauses = { firstMs: embedFirstRetryMs, longestMs: embedLongestRetryMs };
/** So many rows are looked at for each that is answered: passages of one text, and what is newer, change places. */
const depth = 4;

export class Search {
  readonly #services: SearchServices;
  readonly #index: SearchIndex;
  #failures = 0;
  /** How often an embedder was set. */
  #configured = 0;
  #stopped = false;

  constructor(db: Database, services: SearchServices) {
    this.#services = services;
    this.#index = createSearchIndex(db, (work) => {
      if (this.#stopped) throw new ColloquyError("gone", "the agent is being deleted");
      return db.transaction(work);
    });
  }

  /** A message that the agent read, though no event told it: its place in the journal, its run and its words. */
  async lived(messageId: string): Promise<{ place: string; runId: string; text: string } | undefined> {
    // Any search takes in what is new first.
    await this.search({ query: messageId, mode: "fts", types: [], limit: 1 });
    const { lived, text = "" } = this.#index.message(messageId) ?? {};
    return lived == null ? undefined : { place: lived, runId: runIdOf(lived), text };
  }

  async search(query: SearchQuery): Promise<SearchAnswer> {
    const { clock, timers, spaces } = this.#services;
    const index = this.#index;
    if (clock.now() - index.state().usedAt > noteUsedEveryMs) index.setState({ usedAt: clock.now() });
    const { isBehind, notes, closed, proven } = await gather(index, this.#services, searchCatchUpRows);
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
    const match = matchOf(query.query);
    const filter = filterOf(query);
    const most = query.limit * 2;
    // Those that are closed have just refused to be read; the agent has not heard yet that it is in them no more. Others'
    // blocks are found while their owners say so.
    const isOpen = (spaceId: string): boolean => spaces.isMember(spaceId) && !closed.includes(spaceId);
    const shownAs = ({ type, ref, spaceId, lived }: EntryRow): SearchType | undefined => {
      if (type === "block" && isShared(ref) && !proven.has(ref)) return undefined;
      const space = spaceId ?? "";
      const isDeleted = spaces.get(space)?.snapshot.deleted === true;
      if (type === "consciousness" && isDeleted) return undefined;
      if (type !== "message") return type;
      if (filter.types.includes("message") && isOpen(space)) return "message";
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
    if (vector && embedder) {
      // Beside a search by words, only passages that are surely alike count.
      const least = mode === "vector" ? embedder.leastLikeness : embedder.sureLikeness;
      const alike = index.withRows(index.vectors.nearest(quantised(vector), filter, least, most * depth), filter);
      const shown = alike.flatMap(({ row, likeness }) => (shownAs(row) ? { row, score: likeness } : []));
      rankings.push(firstOfEach(shown).slice(0, most));
    }
    const ranking = mode === "hybrid" ? fuse(rankings) : rankings.flat();
    const items = ranking.slice(0, query.limit).map((each) => {
      const { type, spaceId } = each.row;
      const spaceName = spaces.get(spaceId ?? "")?.snapshot.name ?? null;
      return hitOf(each, { words: match.words, type: shownAs(each.row) ?? type, spaceName });
    });
    return { items, nextCursor: null, mode, partial: notes.length > 0, notes };
  }

  /** The config's embedder was set: another one begins anew, in the background. */
  configured(): void {
    this.#configured += 1;
    if (this.#index.state().usedAt > 0) this.#services.timers.set(searchTimer, this.#services.clock.now());
  }

  /** An archival entry is gone. In its transaction; `newest` is the last that is left. */
  forget(id: string, newest: number): void {
    this.#index.removeRefs("archival", [id]);
    if (this.#index.cursor("archival") > newest) this.#index.move("archival", newest);
  }

  /** A space was deleted: what is indexed of it goes with the next look at the sources. In a transaction. */
  forgetSpace(spaceId: string): void {
    if (this.#index.state().usedAt > 0) this.#index.move(spaceSource(spaceId), 0);
  }

  /** The timer fired. Answers the work, which goes on beside its caller. */
  async work(): Promise<void> {
    const { clock, timers } = this.#services;
    if (this.#index.state().usedAt === 0) return;
    // For when it is cut.
    const lease = clock.now() + searchLeaseMs;
    const configured = this.#configured;
    timers.set(searchTimer, lease);
    try {
      const { isBehind } = await gather(this.#index, this.#services, searchWorkRows);
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
    const { env, identity, ledger } = this.#services;
    const { embedder: config, limits } = identity.get().config;
    this.#use(embedderIdOf(config));
    try {
      const embedder = await resolveEmbedder(config, { env, openSecret: (name) => identity.openSecret(name) });
      return embedder && booked(embedder, ledger, limits.maxTokensPerDay);
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
 * An embedder of a provider, its tokens booked as those of a run's step are (B2): reserved before it is asked, settled
 * by what was billed; a call that failed and may have been billed is booked whole. One in this process costs nothing.
 */
const booked = (embedder: Embedder, ledger: Ledger, limit: number): Embedder => ({
  ...embedder,
  embed: async (texts, signal) => {
    if (embedder.isEmbedded) return embedder.embed(texts, signal);
    const step = `embed-${crypto.randomUUID()}`;
    const reserved = estimatedTokens(texts);
    if (!ledger.reserve(step, reserved, limit)) {
      throw new ColloquyError("budget_exhausted", "the agent's tokens of today are spent (maxTokensPerDay)");
    }
    try {
      const answer = await embedder.embed(texts, signal);
      ledger.settle(step, answer.tokens);
      return answer;
    } catch (error) {
      // Refused before anything was done for it: nobody bills that. Any other failure may be billed.
      ledger.settle(step, error instanceof Error && isRefusal(error.cause) ? 0 : reserved);
      throw error;
    }
  },
});
