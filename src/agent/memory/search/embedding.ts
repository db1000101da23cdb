import type { Embedder } from "../../../models/embedders/embedder.ts";
import { searchBatchRows } from "../../bounds.ts";
import type { Entries, EntryRow } from "./entries.ts";
import { quantised } from "./int8.ts";
import { type Sources, spaceSource } from "./sources.ts";
import type { Vector, Vectors } from "./vectors.ts";

/**
 * Gives passages their vectors.
 *
 * Invariants
 * 1. Vectors are made in the order of the passages' ids; those of a batch and the cursor behind them are stored in one
 *    transaction, and only if nobody else has stored that batch or changed the embedder meanwhile.
 * 2. All vectors that are stored are of one embedder: another one begins from the first passage.
 */
export type EmbeddingDeps = {
  entries: Entries;
  vectors: Vectors;
  sources: Sources;
  transaction<T>(work: () => T): T;
};

/** The author, the place and the question are part of a passage's meaning; its date is not. */
const textOf = ({ head, at, text }: EntryRow): string => `${head.replace(dateWords(at), "")}\n${text}`;

/** Drops what another embedder made. Null: there are no vectors at all. */
export const useEmbedder = ({ entries, vectors, transaction }: EmbeddingDeps, embedderId: string | null): void => {
  if (entries.state().embedderId === embedderId) return;
  transaction(() => {
    vectors.clear();
    entries.setState({ embedderId, embeddedUpTo: 0, embedded: {} });
  });
};

/** Gives the next passages vectors, at most `budget` of them. True if there are more. */
export const embedPending = async (
  deps: EmbeddingDeps,
  embedder: Embedder,
  budget: number,
  signal: AbortSignal,
): Promise<boolean> => {
  const { entries, vectors, sources, transaction } = deps;
  for (let left = budget; left > 0; ) {
    const { embeddedUpTo } = entries.state();
    const rows = entries.after(embeddedUpTo, Math.min(left, embedder.maxTexts, searchBatchRows));
    if (rows.length === 0) return false;
    const made = await embedder.embed(rows.map(textOf), signal);
    const isMine = transaction(() => {
      const state = entries.state();
      if (state.embedderId !== embedder.id || state.embeddedUpTo !== embeddedUpTo) return false;
      // Some may have been deleted meanwhile, and their ids be those of others.
      const still = new Map(entries.after(embeddedUpTo, rows.length).map((row) => [row.id, row]));
      const kept = rows.flatMap((row, index) => {
        const vector = made.vectors[index];
        return vector && isSame(still.get(row.id), row) ? [{ row, vector }] : [];
      });
      vectors.append(kept.map(({ row, vector }) => vectorOf(row, vector, sources)));
      entries.embeddedBy(
        embedder.id,
        kept.map(({ row }) => row),
        kept.at(-1)?.row.id ?? embeddedUpTo,
      );
      return true;
    });
    if (!isMine) return true;
    left -= rows.length;
    if (embedder.isEmbedded) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return entries.isBehind(entries.state().embeddedUpTo);
};

const isSame = (one: EntryRow | undefined, other: EntryRow): boolean =>
  one !== undefined && one.ref === other.ref && one.part === other.part && one.text === other.text;

const vectorOf = ({ id, type, role, at, spaceId }: EntryRow, vector: ArrayLike<number>, sources: Sources): Vector => ({
  id,
  type,
  role,
  at,
  space: type === "message" && spaceId !== null ? (sources.find(spaceSource(spaceId))?.number ?? 0) : 0,
  ...quantised(vector),
});

const words = new Intl.DateTimeFormat("en", {
  timeZone: "UTC",
  weekday: "long",
  day: "numeric",
  month: "long",
  year: "numeric",
});

/** A time as people name its day, in UTC, so that it is found by it: `Sunday, November 22, 2026`. */
export const dateWords = (at: number): string => words.format(at);
