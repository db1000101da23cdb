import type { ModelMessage } from "ai";

type Input = { instructions: string; messages: ModelMessage[] };

const textOf = ({ instructions, messages }: Input): string =>
  [instructions, ...messages.map((message) => JSON.stringify(message))].join("");

/**
 * The share of an earlier input's characters that a later one repeats as its prefix; 1 is all of it. A provider with a
 * prefix cache would not bill it again.
 */
export const prefixReuse = (earlier: Input, later: Input): number => {
  const [before, after] = [textOf(earlier), textOf(later)];
  let shared = 0;
  while (shared < before.length && before.charCodeAt(shared) === after.charCodeAt(shared)) shared += 1;
  return before === "" ? 1 : shared / before.length;
};
