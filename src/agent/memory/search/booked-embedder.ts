import { estimatedTokens } from "../../../models/billed-tokens.ts";
import type { Embedder } from "../../../models/embedders/embedder.ts";
import { isRefusal } from "../../../models/failure.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import type { Ledger } from "../../ledger.ts";

/** Tells calls of one millisecond apart. */
let calls = 0;

/**
 * An embedder of a provider, its tokens booked as those of a run's step are (B2): reserved before it is asked, settled
 * by what was billed; a call that failed and may have been billed is booked whole. One in this process costs nothing.
 */
export const bookedEmbedder = (embedder: Embedder, ledger: Ledger, limit: () => number, now: () => number): Embedder =>
  embedder.isEmbedded
    ? embedder
    : {
        ...embedder,
        embed: async (texts, signal) => {
          calls += 1;
          const name = `embed-${now()}-${calls}`;
          const step = `${name}:0`;
          if (!ledger.reserve(step, estimatedTokens(texts), limit(), undefined)) {
            throw new ColloquyError("budget_exhausted", "the agent's tokens of today are spent (maxTokensPerDay)");
          }
          try {
            const answer = await embedder.embed(texts, signal);
            ledger.settle(name, { step, tokens: answer.tokens });
            return answer;
          } catch (error) {
            // Refused before anything was done for it: nobody bills that. Nobody else settles what it may have cost.
            if (error instanceof Error && isRefusal(error.cause)) ledger.release(step);
            else ledger.settle(name, undefined);
            throw error;
          }
        },
      };
