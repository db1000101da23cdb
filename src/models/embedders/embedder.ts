import { ColloquyError, type ErrorCode } from "../../shared/errors.ts";

/** What makes vectors of texts. Two vectors of the same `id` can be compared, of others not. */
export type Embedder = {
  id: string;
  /** It is in this process: it costs nothing and is done at once. */
  isEmbedded: boolean;
  /** Texts that one call takes at most, and characters of each that it reads. */
  maxTexts: number;
  maxCharacters: number;
  /** Below this cosine two texts have nothing in common, and from `sureLikeness` on much; 0 where that is not known. */
  leastLikeness: number;
  sureLikeness: number;
  /**
   * One vector for each text, in order, all as long; and the tokens that a provider bills, 0 where nobody does. Throws
   * an `EmbedderError`, or `budget_exhausted` where its tokens are booked.
   */
  embed(texts: string[], signal: AbortSignal): Promise<{ vectors: ArrayLike<number>[]; tokens: number }>;
};

/** Longer vectors are refused: a row holds so many bytes only. */
export const maxDimensions = 4096;

/** What went wrong with an embedder, by a model's codes; `retryAfterMs` is what its provider asked to wait. */
export class EmbedderError extends ColloquyError {
  readonly retryAfterMs: number | undefined;

  constructor(code: ErrorCode, detail: string, options: { cause?: unknown; retryAfterMs?: number | undefined } = {}) {
    super(code, detail, { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}
