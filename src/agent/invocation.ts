import type { JournalRow } from "./journal.ts";

/**
 * The rows of a run's newest invocation: from the input that it was composed with. A run that waited for answers goes
 * on in a fresh one; its earlier calls are told in the input, not left dangling.
 */
export const invocationOf = <Row extends Pick<JournalRow, "kind" | "step">>(rows: Row[]): Row[] => {
  const input = rows.findLast((row) => row.kind === "inbox");
  return input ? rows.slice(rows.findIndex((row) => row.kind === "inbox" && row.step === input.step)) : rows;
};
