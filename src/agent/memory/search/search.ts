import { type Embedder, EmbedderError } from "../../../models/embedders/embedder.ts";
import { embedderIdOf, resolveEmbedder } from "../../../models/embedders/embedders.ts";
import { type SearchAnswer, type SearchQuery, SearchType } from "../../../protocol/search.ts";
import { backoff } from "../../../shared/backoff.ts";
import type { Clock } from "../../../shared/clock.ts";
import type { Database } from "../../../shared/database.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import type { Timers } from "../../../timers/timers.ts";
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
import { bookedEmbedder, embedPending, useEmbedder } from "./embedding.ts";
import { gather, type IndexedServices } from "./indexer.ts";
import { matchOf } from "./match-expression.ts";
import { asksForNewest, firstOfEach, fuse, hitOf, type Ranking, ranked } from "./ranking.ts";
import { type Filter, SearchIndex } from "./search-index.ts";
import { quantised } from "./vectors.ts";

/**
 * Search over all that an agent may read and has lived through.
 *
 * Invariants
 * 1. Nothing is indexed before search is asked for first, and nothing on the way of a message: each search takes in what
 *    is new, as much as its bounds allow, and says when that was not all. The timer `search` does the rest.
 * 2. Vectors are made in the background, but for those of an embedder in this process. Where the query's own vector
 *    cannot be had in time, words alone decide, and the answer says so.
 * 3. While something is left to do, or the index is kept up, the timer is set: a crash is followed by another try.
 */
export const searchTimer = "search";

export type SearchServices = IndexedServices & {
  clock: Clock;
  timers: Timers;
  ledger: Ledger;
  transaction<T>(work: () => T): T;
};

type Effective = SearchAnswer["mode"];

const noteUsedEveryMs = 60 * 60_000;
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
    this.#index = new SearchIndex(db, (work) => {
      if (this.#stopped) throw new ColloquyError("gone", "the agent is being deleted");
      return services.transaction(work);
    });
  }

  async search(query: SearchQuery): Promise<SearchAnswer> {
    const { clock, spaces } = this.#services;
    if (clock.now() - this.#index.state().usedAt > noteUsedEveryMs) this.#index.setState({ usedAt: clock.now() });
    const { isBehind, notes, closed } = await gather(this.#index, this.#services, searchCatchUpRows);
    const { embedder, note } = await this.#usableEmbedder();
    const isLeft = embedder?.isEmbedded
      ? await embedPending(this.#index, embedder, searchCatchUpRows)
      : embedder !== null && this.#index.lacksVectors();
    this.#setTimer(isBehind || isLeft);
    const filter = filterOf(query, closed);
    const wanted = query.mode === "auto" ? this.#bestMode(filter, embedder) : query.mode;
    if (note !== undefined && query.mode !== "fts") notes.push(note);
    if (isLeft && wanted !== "fts") notes.push("not all has vectors yet");
    const vector = wanted === "fts" || !embedder ? null : await this.#vectorOf(query.query, embedder, notes);
    const mode = vector === null ? this.#withoutVector(query, notes) : wanted;
    const { expression, words } = matchOf(query.query);
    const rankings = [
      mode === "vector" || expression === null ? [] : this.#byWords(query, expression, filter),
      vector && embedder ? this.#byLikeness(query, vector, leastOf(embedder, mode), filter) : [],
    ];
    const ranking = mode === "hybrid" ? fuse(rankings) : rankings.flat();
    const names = new Map(spaces.followed().map(({ id, snapshot }) => [id, snapshot.name]));
    const items = ranking.slice(0, query.limit).map(({ row, score }) => hitOf(row, score, words, names));
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
      const isLeft = embedder !== null && (await embedPending(this.#index, embedder, searchWorkRows));
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
      const asked = error instanceof EmbedderError ? error.retryAfterMs : undefined;
      const pauses = { firstMs: embedFirstRetryMs, longestMs: embedLongestRetryMs };
      const pauseMs = backoff(this.#failures, pauses, asked);
      this.#failures += 1;
      const code = error instanceof ColloquyError ? error.code : "internal";
      log.warn("search.work-failed", { code, failures: this.#failures });
      timers.set(searchTimer, clock.now() + pauseMs);
    }
  }

  /** The agent is being deleted: nothing is stored any more. */
  stop(): void {
    this.#stopped = true;
  }

  #setTimer(isBehind: boolean): void {
    const { clock, timers } = this.#services;
    // A failed embedder is retried when its pause is over, not earlier.
    if (this.#failures > 0 && timers.dueAt(searchTimer) !== undefined) return;
    timers.setNoLater(searchTimer, clock.now() + (isBehind ? searchPauseMs : searchKeepUpMs));
  }

  /** The embedder of the config, null for none. Throws what is wrong with it. */
  async #embedder(): Promise<Embedder | null> {
    const { env, identity, ledger } = this.#services;
    const { embedder: config, limits } = identity.get().config;
    const embedder = await resolveEmbedder(config, { env, openSecret: (name) => identity.openSecret(name) });
    useEmbedder(this.#index, embedder?.id ?? null);
    return embedder && bookedEmbedder(embedder, ledger, limits.maxTokensPerDay);
  }

  async #usableEmbedder(): Promise<{ embedder: Embedder | null; note?: string }> {
    try {
      return { embedder: await this.#embedder() };
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      useEmbedder(this.#index, this.#embedderId());
      return { embedder: null, note: `the embedder cannot be used: ${error.message}` };
    }
  }

  #embedderId(): string | null {
    return embedderIdOf(this.#services.identity.get().config.embedder);
  }

  /** Both, where some passages of each type have vectors. */
  #bestMode({ types }: Filter, embedder: Embedder | null): Effective {
    const { entries, embedded } = this.#index.state();
    const all = types.every((type) => (entries[type] ?? 0) === 0 || (embedded[type] ?? 0) > 0);
    return embedder !== null && all ? "hybrid" : "fts";
  }

  #withoutVector({ mode }: SearchQuery, notes: string[]): "fts" {
    if (mode === "fts" || mode === "auto") return "fts";
    if (this.#embedderId() === null) {
      throw new ColloquyError("invalid_request", "this agent has no embedder: set one in its config, or search by fts");
    }
    if (mode === "hybrid") return "fts";
    throw new ColloquyError("unavailable", `the query has no vector: ${notes.at(-1) ?? "try again"}; or search by fts`);
  }

  async #vectorOf(text: string, embedder: Embedder, notes: string[]): Promise<ArrayLike<number> | null> {
    try {
      const { vectors } = await embedder.embed([text], AbortSignal.timeout(searchEmbedMs));
      return vectors[0] ?? null;
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      notes.push(`the embedder did not answer (${error.code}): searched by words alone`);
      return null;
    }
  }

  #byWords({ query, limit }: SearchQuery, expression: string, filter: Filter): Ranking {
    const rows = this.#index.matching(expression, filter, limit * 2 * depth);
    return firstOfEach(ranked(rows, this.#services.clock.now(), asksForNewest(query))).slice(0, limit * 2);
  }

  #byLikeness({ limit }: SearchQuery, vector: ArrayLike<number>, least: number, filter: Filter): Ranking {
    const spaces = new Set([...this.#index.spaces().values()].map(({ number }) => number));
    const alike = this.#index.vectors.nearest(quantised(vector), { ...filter, spaces }, least, limit * 2 * depth);
    const rows = this.#index.withRows(alike, filter).map((row) => ({ row, score: row.likeness }));
    return firstOfEach(rows).slice(0, limit * 2);
  }
}

/** Beside a search by words, only passages that are surely alike count. */
const leastOf = ({ leastLikeness, sureLikeness }: Embedder, mode: Effective): number =>
  mode === "vector" ? leastLikeness : sureLikeness;

const filterOf = ({ types, role, from, to }: SearchQuery, closed: string[]): Filter => ({
  types: types.length > 0 ? [...new Set(types)] : SearchType.options,
  role: role ?? null,
  from: from === undefined ? 0 : Date.parse(from),
  to: to === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(to),
  closed,
});
