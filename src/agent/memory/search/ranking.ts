import type { EntryRow } from "./entry.ts";

/** What a passage is a part of. */
export const keyOf = ({ type, ref }: EntryRow): string => `${type} ${ref}`;

/** The best passage of each text, in the order that they come. */
export const firstOfEach = <Ranked extends { row: EntryRow }>(ranking: Ranked[]): Ranked[] => {
  const seen = new Set<string>();
  return ranking.filter(({ row }) => {
    const isFirst = !seen.has(keyOf(row));
    seen.add(keyOf(row));
    return isFirst;
  });
};

/**
 * What matched by words, best first: scores from 0 to 1, of what matches as well the newer first. `rank` is FTS5's, the
 * lower the better.
 */
export const ranked = (rows: (EntryRow & { rank: number })[], _now: number): { row: EntryRow; score: number }[] => {
  const best = Math.max(...rows.map(({ rank }) => Math.abs(rank)), Number.MIN_VALUE);
  return rows
    .map(({ rank, ...row }) => ({ row, score: Math.abs(rank) / best }))
    .toSorted((one, other) => other.score - one.score || other.row.at - one.row.at);
};
