import { estimatedTokens } from "../../../models/billed-tokens.ts";
import type { Embedder } from "../../../models/embedders/embedder.ts";
import { isRefusal } from "../../../models/failure.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { embedTimeoutMs, searchBatchRows } from "../../bounds.ts";
import type { Ledger } from "../../ledger.ts";
import { dateWords, type EntryRow } from "./findables.ts";
import type { SearchIndex } from "./search-index.ts";
import { quantised } from "./vectors.ts";

/**
 * Gives passages their vectors.
 *
 * Invariants
 * 1. Vectors are made in the order of the passages' ids; those of a batch and the cursor behind them are stored in one
 *    transaction, and only if nobody else has stored that batch or changed the embedder meanwhile.
 * 2. All vectors that are stored are of one embedder: another one begins from the first passage.
 */

/** The author, the place and the question are part of a passage's meaning; its date is not. */
const textOf = ({ head, at, text }: EntryRow): string => `${head.replace(dateWords(at), "")}\n${text}`;

/** Drops what another embedder made. Null: there are no vectors at all. */
export const useEmbedder = (index: SearchIndex, embedderId: string | null): void => {
  if (index.state().embedderId === embedderId) return;
  index.transaction(() => {
    index.vectors.clear();
    index.setState({ embedderId, embeddedUpTo: 0, embedded: {} });
  });
};

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
      const spaces = index.spaces();
      const kept = rows.flatMap((row, at) => {
        const vector = made.vectors[at];
        return vector && isSame(still.get(row.id), row) ? [{ row, vector }] : [];
      });
      index.vectors.append(
        kept.map(({ row: { id, type, role, at, spaceId }, vector }) => {
          const space = type === "message" ? (spaces.get(spaceId ?? "")?.number ?? 0) : 0;
          return { id, type, role, at, space, ...quantised(vector) };
        }),
      );
      const embedded = kept.map(({ row }) => row);
      index.embeddedBy(embedder.id, embedded, embedded.at(-1)?.id ?? embeddedUpTo);
      return true;
    });
    if (!isMine) return true;
    left -= rows.length;
    if (embedder.isEmbedded) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  return index.lacksVectors();
};

const isSame = (one: EntryRow | undefined, other: EntryRow): boolean =>
  one !== undefined && one.ref === other.ref && one.part === other.part && one.text === other.text;

/**
 * An embedder of a provider, its tokens booked as those of a run's step are (B2): reserved before it is asked, settled
 * by what was billed; a call that failed and may have been billed is booked whole. One in this process costs nothing.
 */
export const bookedEmbedder = (embedder: Embedder, ledger: Ledger, limit: number): Embedder => ({
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
      // Refused before anything was done for it: nobody bills that. Nobody else settles what it may have cost.
      ledger.settle(step, error instanceof Error && isRefusal(error.cause) ? 0 : reserved);
      throw error;
    }
  },
});
