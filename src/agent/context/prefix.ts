import type { ModelMessage } from "ai";

type Input = { instructions: string; messages: ModelMessage[] };

const pieces = (input: Input): string[] => [
  input.instructions,
  ...input.messages.map((message) => JSON.stringify(message)),
];

const commonPrefix = (before: string, after: string): number => {
  const most = Math.min(before.length, after.length);
  let length = 0;
  while (length < most && before.charCodeAt(length) === after.charCodeAt(length)) length += 1;
  return length;
};

/**
 * The share of an earlier input's characters that a later one repeats as its prefix; 1 is all of it. A provider with a
 * prefix cache would not bill it again.
 */
export const prefixReuse = (earlier: Input, later: Input): number => {
  const before = pieces(earlier);
  const after = pieces(later);
  const total = before.reduce((sum, piece) => sum + piece.length, 0);
  let shared = 0;
  for (const [index, piece] of before.entries()) {
    const next = after[index] ?? "";
    shared += commonPrefix(piece, next);
    if (next !== piece) break;
  }
  return total === 0 ? 1 : shared / total;
};
