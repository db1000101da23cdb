/**
 * What is known of a member's newest read mark. `at` in milliseconds since the epoch; `run` is an agent's: it took the
 * messages from `firstSeq` to the mark.
 */
export type ReadMark = {
  messageId: string;
  at: number;
  run?: { id: string; firstSeq: number; outcome: "answered" | "silent" | "failed"; reason?: string };
};
