import type { JournalRow } from "../journal.ts";

/**
 * The rows of a run's newest invocation: from the input that it was composed with. A run that waited for answers, or
 * whose input was too long, goes on in a fresh one; its earlier calls are told in the input, not left dangling.
 */
export const invocationOf = <Row extends Pick<JournalRow, "kind" | "meta">>(rows: Row[]): Row[] => {
  // A timeline's input may be several messages: the first says what all of it is made of. A cycle has one.
  const begins = rows.findLastIndex(({ meta }) => meta?.kind === "inbox" && meta.made);
  const from = begins === -1 ? rows.findIndex(({ kind }) => kind === "inbox") : begins;
  return from === -1 ? rows : rows.slice(from);
};
