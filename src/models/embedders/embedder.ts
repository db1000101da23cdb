/** Turns texts into vectors. Only vectors of the same `id` can be compared. */
export type Embedder = {
  id: string;
  /** Runs in this process, free and without waiting. */
  isEmbedded: boolean;
  /** Texts that one call takes at most, and characters of each that it reads. */
  maxTexts: number;
  maxCharacters: number;
  /** Cosines: two texts are unrelated below the first, and surely related from the second on. 0: not known. */
  leastLikeness: number;
  sureLikeness: number;
  /**
   * One vector for each text, in order and of one length, and the billed tokens, 0 where there are none. Throws a
   * `modelError`, or `budget_exhausted` where its tokens are booked.
   */
  embed(texts: string[], signal: AbortSignal): Promise<{ vectors: ArrayLike<number>[]; tokens: number }>;
};

/** A longer vector does not fit a row and is refused. */
export const maxDimensions = 4096;
