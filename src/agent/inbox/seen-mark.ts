import { maxWindowMessages } from "../bounds.ts";

/**
 * How far an agent has come in the messages of one space, whose places in its log are `seq`s. Pure.
 *
 * Invariants
 * 1. Only a run that ends moves it, and only what a committed one was shown counts as shown: nothing is `[NEW]` again
 *    after that, and nothing is `[SEEN]` that no committed run was shown, but what was acknowledged itself.
 * 2. A message that still waits to be acknowledged is `[NEW]`, whoever was shown it.
 */
export type SeenMark = {
  /** The highest that committed runs were shown. What their windows left out below it, they were told the number of. */
  upTo: number;
  /** Those above it that were acknowledged and not shown by a committed run, such as a canceled one's; ascending. */
  beyond: number[];
};

/** What an ended run leaves in one space: the messages acknowledged with it, and up to where it was shown any. */
export type Settled = { acknowledged: number[]; shownTo: number };

export const settle = (mark: SeenMark, { acknowledged, shownTo }: Settled): SeenMark => {
  const upTo = Math.max(mark.upTo, shownTo);
  const beyond = [...new Set([...mark.beyond, ...acknowledged])].filter((seq) => seq > upTo);
  // Older ones are beyond every window.
  return { upTo, beyond: beyond.sort((one, other) => one - other).slice(-maxWindowMessages) };
};

/** What is known of a space's messages now: up to where they were delivered, and which of them wait. */
export type Known = { deliveredTo: number; waiting: ReadonlySet<number> };

/** Of a message that was not delivered yet, nobody knows whether it waits. */
export const isSeen = ({ upTo, beyond }: SeenMark, { deliveredTo, waiting }: Known, seq: number): boolean =>
  !waiting.has(seq) && (seq <= Math.min(upTo, deliveredTo) || beyond.includes(seq));
