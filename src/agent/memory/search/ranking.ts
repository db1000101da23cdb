import type { SearchHit } from "../../../protocol/search.ts";
import { isoTime } from "../../../shared/clock.ts";
import { excerptOf } from "./excerpt.ts";
import { type EntryRow, runIdOf } from "./findables.ts";

/** Passages, best first. */
export type Ranking = { row: EntryRow; score: number }[];

/** The key of the text that a passage is a part of. */
const keyOf = ({ type, ref }: EntryRow): string => `${type} ${ref}`;

/** The best passage of each text, in the order that they come. */
export const firstOfEach = (ranking: Ranking): Ranking =>
  [...Map.groupBy(ranking, ({ row }) => keyOf(row)).values()].flatMap(([first]) => first ?? []);

/** How much being new adds to a match, of the best match's score; it halves every `halfLifeMs`. */
const newer = 0.04;
const newest = 0.3;
const halfLifeMs = 30 * 24 * 60 * 60_000;

/** Whether a query is about how things are now: of facts that change, the newest answers it. */
export const asksForNewest = (query: string): boolean =>
  /\b(?:now|nowadays|current|currently|latest|newest|recent|recently|today|still|anymore)\b/i.test(query);

/**
 * Matches by words, best first, with scores from 0 to 1. A newer passage gains a little, and more where the query asks for
 * the newest. `rank` is FTS5's: lower is better.
 */
export const ranked = (rows: (EntryRow & { rank: number })[], now: number, forNewest: boolean): Ranking => {
  const best = Math.max(...rows.map(({ rank }) => Math.abs(rank)), Number.MIN_VALUE);
  const most = forNewest ? newest : newer;
  return rows
    .map(({ rank, ...row }) => {
      const freshness = 2 ** (-Math.max(0, now - row.at) / halfLifeMs);
      return { row, score: (Math.abs(rank) / best + most * freshness) / (1 + most) };
    })
    .toSorted((one, other) => other.score - one.score || other.row.at - one.row.at);
};

/** Reciprocal rank fusion: how far the first ranks stand out. */
const rankOffset = 60;

/** Several rankings as one, best first: each adds 1 / (60 + rank) for what it holds, ranks from 1 on. */
export const fuse = (rankings: Ranking[]): Ranking => {
  const fused = new Map<string, Ranking[number]>();
  for (const ranking of rankings) {
    for (const [index, { row }] of ranking.entries()) {
      const known = fused.get(keyOf(row)) ?? { row, score: 0 };
      fused.set(keyOf(row), { row: known.row, score: known.score + 1 / (rankOffset + index + 1) });
    }
  }
  return [...fused.values()].toSorted((one, other) => other.score - one.score);
};

const given = <Value>(name: string, value: Value | null | undefined): Record<string, Value> =>
  value === null || value === undefined ? {} : { [name]: value };

/** A passage that was found, as it is answered. `spaces` are the names of those that the agent is in. */
export const hitOf = (row: EntryRow, score: number, words: string[], spaces: Map<string, string>): SearchHit => ({
  type: row.type,
  id: row.ref,
  excerpt: excerptOf(row.text, words),
  score,
  createdAt: isoTime(row.at),
  ...given("role", row.role),
  source: {
    ...given("spaceId", row.spaceId),
    ...given("spaceName", row.spaceId === null ? null : spaces.get(row.spaceId)),
    ...given("messageId", row.messageId),
    ...given("authorId", row.authorId),
    ...given("authorName", row.authorName),
    ...(row.type === "consciousness" ? { runId: runIdOf(row.ref) } : {}),
    ...(row.type === "block" ? { label: row.ref } : {}),
  },
});
