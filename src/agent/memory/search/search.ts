import { type Embedder, EmbedderError } from "../../../models/embedders/embedder.ts";
import { type SearchAnswer, type SearchQuery, SearchType } from "../../../protocol/search.ts";
import { backoff, type Pauses } from "../../../shared/backoff.ts";
import type { Clock } from "../../../shared/clock.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { log } from "../../../shared/log.ts";
import type { Timers } from "../../../timers/timers.ts";
import {
  embedFirstRetryMs,
  embedLongestRetryMs,
  embedTimeoutMs,
  searchCatchUpRows,
  searchEmbedMs,
  searchKeepUpMs,
  searchKeptMs,
  searchLeaseMs,
  searchPauseMs,
  searchWaitMs,
  searchWorkRows,
} from "../../bounds.ts";
import { embedPending, useEmbedder } from "./embedding.ts";
import { Entries, type EntryRow, type Filter } from "./entries.ts";
import { type GatherDeps, gather } from "./gather.ts";
import { quantised } from "./int8.ts";
import { type Match, matchOf } from "./match-expression.ts";
import { asksForNewest, firstOfEach, fuse, hitOf, keyOf, ranked } from "./ranking.ts";
import { Sources } from "./sources.ts";
import { type VectorFilter, Vectors } from "./vectors.ts";

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

export type SearchDeps = Omit<GatherDeps, "entries" | "sources" | "vectors"> & {
  clock: Clock;
  timers: Timers;
  /** The id of the embedder that the config names; null for none. */
  embedderId: () => string | null;
  /** The embedder of the config, ready to be used. Throws what is wrong with it. */
  embedder: () => Promise<Embedder | null>;
};

type Effective = SearchAnswer["mode"];
type Ranking = { row: EntryRow; score: number }[];

const noteUsedEveryMs = 60 * 60_000;
const pauses: Pauses = { firstMs: embedFirstRetryMs, longestMs: embedLongestRetryMs };
/** So many rows are looked at for each that is answered: passages of one text, and what is newer, change places. */
const depth = 4;

export class Search {
  readonly #deps: SearchDeps;
  readonly entries: Entries;
  readonly #index: { entries: Entries; sources: Sources; vectors: Vectors; transaction: SearchDeps["transaction"] };
  #failures = 0;
  /** How often an embedder was set. */
  #configured = 0;
  #stopped = false;

  constructor(deps: SearchDeps, db: ConstructorParameters<typeof Entries>[0]) {
    this.#deps = deps;
    this.entries = new Entries(db);
    const transaction: SearchDeps["transaction"] = (work) => {
      if (this.#stopped) throw new ColloquyError("gone", "the agent is being deleted");
      return deps.transaction(work);
    };
    this.#index = { entries: this.entries, sources: new Sources(db), vectors: new Vectors(db), transaction };
  }

  async search(query: SearchQuery): Promise<SearchAnswer> {
    const { clock } = this.#deps;
    const { usedAt, isUsed } = this.entries.state();
    if (!isUsed || clock.now() - usedAt > noteUsedEveryMs) this.entries.setState({ usedAt: clock.now() });
    const { isBehind, notes, closed } = await gather(
      { ...this.#deps, ...this.#index },
      searchCatchUpRows,
      searchWaitMs,
    );
    const { embedder, note } = await this.#embedder();
    const isLeft = embedder?.isEmbedded
      ? await embedPending(this.#index, embedder, searchCatchUpRows, AbortSignal.timeout(embedTimeoutMs))
      : embedder !== null && this.entries.isBehind(this.entries.state().embeddedUpTo);
    this.#setTimer(isBehind || isLeft);
    const filter = filterOf(query, closed);
    const wanted = this.#mode(query, filter, embedder);
    if (note !== undefined && query.mode !== "fts") notes.push(note);
    if (isLeft && wanted !== "fts") notes.push("not all has vectors yet");
    const vector = wanted === "fts" || !embedder ? null : await this.#vectorOf(query.query, embedder, notes);
    const mode = vector === null ? this.#withoutVector(query, notes) : wanted;
    const items = this.#hits(query, mode, filter, embedder, vector);
    return { items, nextCursor: null, mode, partial: notes.length > 0, notes };
  }

  /** The config's embedder was set: another one begins anew, in the background. */
  configured(): void {
    this.#configured += 1;
    if (this.entries.state().isUsed) this.#deps.timers.set(searchTimer, this.#deps.clock.now());
  }

  /** An archival entry is gone. In its transaction; `newest` is the last that is left. */
  forget(id: string, newest: number): void {
    const { entries, vectors, sources } = this.#index;
    vectors.remove(entries.removeRefs("archival", [id]));
    if (sources.cursor("archival") > newest) sources.move("archival", newest);
  }

  /** The timer fired. Answers the work, which goes on beside its caller. */
  async work(): Promise<void> {
    const { clock, timers } = this.#deps;
    if (!this.entries.state().isUsed) return;
    // For when it is cut.
    const lease = clock.now() + searchLeaseMs;
    const configured = this.#configured;
    timers.set(searchTimer, lease);
    /** Somebody else may have set it meanwhile. */
    const end = (dueAt?: number): void => {
      if (timers.dueAt(searchTimer) !== lease) return;
      if (dueAt === undefined) timers.clear(searchTimer);
      else timers.set(searchTimer, dueAt);
    };
    try {
      const { isBehind } = await gather({ ...this.#deps, ...this.#index }, searchWorkRows, searchWaitMs);
      const embedder = await this.#deps.embedder();
      useEmbedder(this.#index, embedder?.id ?? null);
      const isLeft =
        embedder !== null &&
        (await embedPending(this.#index, embedder, searchWorkRows, AbortSignal.timeout(embedTimeoutMs)));
      this.#failures = 0;
      const isKept = clock.now() - this.entries.state().usedAt < searchKeptMs;
      if (isBehind || isLeft) end(clock.now() + searchPauseMs);
      else end(isKept ? clock.now() + searchKeepUpMs : undefined);
    } catch (error) {
      // The failure was the old embedder's: another one was set meanwhile.
      if (this.#stopped || configured !== this.#configured) return;
      const asked = error instanceof EmbedderError ? error.retryAfterMs : undefined;
      const pause = backoff(this.#failures, pauses, asked);
      this.#failures += 1;
      const code = error instanceof ColloquyError ? error.code : "internal";
      log.warn("search.work-failed", { code, failures: this.#failures });
      timers.set(searchTimer, clock.now() + pause);
    }
  }

  /** The agent is being deleted: nothing is stored any more. */
  stop(): void {
    this.#stopped = true;
  }

  #setTimer(isBehind: boolean): void {
    const { clock, timers } = this.#deps;
    // A failed embedder is retried when its pause is over, not earlier.
    if (this.#failures > 0 && timers.dueAt(searchTimer) !== undefined) return;
    timers.setNoLater(searchTimer, clock.now() + (isBehind ? searchPauseMs : searchKeepUpMs));
  }

  async #embedder(): Promise<{ embedder: Embedder | null; note?: string }> {
    try {
      const embedder = await this.#deps.embedder();
      useEmbedder(this.#index, embedder?.id ?? null);
      return { embedder };
    } catch (error) {
      if (!(error instanceof ColloquyError)) throw error;
      useEmbedder(this.#index, this.#deps.embedderId());
      return { embedder: null, note: `the embedder cannot be used: ${error.message}` };
    }
  }

  /** The mode of this search, provided that the query's vector can be had. */
  #mode(query: SearchQuery, { types }: Filter, embedder: Embedder | null): Effective {
    if (query.mode !== "auto") return query.mode;
    const { entries, embedded } = this.entries.state();
    const all = types.every((type) => (entries[type] ?? 0) === 0 || (embedded[type] ?? 0) > 0);
    return embedder !== null && all ? "hybrid" : "fts";
  }

  #withoutVector({ mode }: SearchQuery, notes: string[]): "fts" {
    if (mode === "fts" || mode === "auto") return "fts";
    if (this.#deps.embedderId() === null) {
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

  #hits(
    query: SearchQuery,
    mode: Effective,
    filter: Filter,
    embedder: Embedder | null,
    vector: ArrayLike<number> | null,
  ): SearchAnswer["items"] {
    const match = matchOf(query.query);
    const wide = query.limit * 2;
    const byWords = mode === "vector" ? [] : this.#byWords(match, query.query, filter, wide);
    const byLikeness = vector && embedder ? this.#byLikeness(vector, leastOf(embedder, mode), filter, wide) : [];
    const ranking = mode === "fts" ? byWords : mode === "vector" ? byLikeness : fused(byWords, byLikeness, query.limit);
    const spaces = new Map(this.#deps.spaces().map(({ id, name }) => [id, name]));
    return ranking.slice(0, query.limit).map(({ row, score }) => hitOf(row, score, match.words, spaces));
  }

  #byWords({ expression }: Match, text: string, filter: Filter, most: number): Ranking {
    if (expression === null) return [];
    const rows = this.entries.matching(expression, filter, most * depth);
    return firstOfEach(ranked(rows, this.#deps.clock.now(), asksForNewest(text))).slice(0, most);
  }

  #byLikeness(vector: ArrayLike<number>, least: number, filter: Filter, most: number): Ranking {
    const { sources, vectors } = this.#index;
    const spaces = new Set([...sources.spaces().values()].map(({ number }) => number));
    const narrowed: VectorFilter = { ...filter, types: new Set(filter.types), spaces };
    const found = vectors.nearest(quantised(vector), narrowed, least, most * depth);
    const rows = this.entries.rows(
      found.map(({ id }) => id),
      filter,
    );
    return firstOfEach(
      found.flatMap(({ id, likeness }) => {
        const row = rows.get(id);
        return row ? [{ row, score: likeness }] : [];
      }),
    ).slice(0, most);
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

const fused = (byWords: Ranking, byLikeness: Ranking, limit: number): Ranking => {
  const rows = new Map([...byLikeness, ...byWords].map(({ row }) => [keyOf(row), row]));
  const keys = [byWords, byLikeness].map((ranking) => ranking.map(({ row }) => keyOf(row)));
  return fuse(keys, limit).flatMap(({ id, score }) => {
    const row = rows.get(id);
    return row ? [{ row, score }] : [];
  });
};
