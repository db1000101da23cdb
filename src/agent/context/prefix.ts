import type { ModelMessage } from "ai";

type Input = { instructions: string; messages: ModelMessage[] };

const pieces = (input: Input): string[] => [
  input.instructions,
  ...input.messages.map((message) => JSON.stringify(message)),
];

/**
 * The share of an earlier input's characters that a later one repeats as its prefix, message by message: 1 is all
 * of it. What a provider with a prefix cache would not bill again.
 */
export const prefixReuse = (earlier: Input, later: Input): number => {
  const before = pieces(earlier);
  const after = pieces(later);
  const total = before.reduce((sum, piece) => sum + piece.length, 0);
  let shared = 0;
  for (const [index, piece] of before.entries()) {
    if (after[index] !== piece) break;
    shared += piece.length;
  }
  return total === 0 ? 1 : shared / total;
};
