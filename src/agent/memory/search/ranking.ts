import type { SearchHit, SearchType } from "../../../protocol/search.ts";
import { isoTime } from "../../../shared/clock.ts";
import { withoutNulls } from "../../../shared/without-nulls.ts";
import { type EntryRow, labelOf, runIdOf } from "./sources.ts";

/** Passages, best first. */
export type Ranking = { row: EntryRow; score: number }[];

/** The key of the text that a passage is a part of. */
export const keyOf = ({ type, ref }: EntryRow): string => `${type} ${ref}`;

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
export const ranked = (rows: { row: EntryRow; rank: number }[], now: number, forNewest: boolean): Ranking => {
  const best = Math.max(...rows.map(({ rank }) => Math.abs(rank)), Number.MIN_VALUE);
  const most = forNewest ? newest : newer;
  return rows
    .map(({ row, rank }) => {
      const freshness = 2 ** (-Math.max(0, now - row.at) / halfLifeMs);
      return { row, score: (Math.abs(rank) / best + most * freshness) / (1 + most) };
    })
    .toSorted((one, other) => other.score - one.score || other.row.at - one.row.at);
};

/** Reciprocal rank fusion: how far the first ranks stand out. */
const rankOffset = 60;

/**
 * Several rankings as one, best first: each adds 1 / (60 + rank) for what it holds, ranks from 1 on. What `nameOf` calls
 * the same is one thing. Their own scores do not count.
 */
export const fuseBy = <Ranked extends { score: number }>(
  rankings: Ranked[][],
  nameOf: (each: Ranked) => string,
): Ranked[] => {
  const fused = new Map<string, Ranked>();
  for (const ranking of rankings) {
    for (const [index, each] of ranking.entries()) {
      const known = fused.get(nameOf(each)) ?? { ...each, score: 0 };
      fused.set(nameOf(each), { ...known, score: known.score + 1 / (rankOffset + index + 1) });
    }
  }
  return [...fused.values()].toSorted((one, other) => other.score - one.score);
};

export const fuse = (rankings: Ranking[]): Ranking => fuseBy(rankings, ({ row }) => keyOf(row));

/** How much of a text a hit shows, in characters, and how many of them come before what was found. */
const excerptCharacters = 240;
const leadCharacters = 50;
/** How much further an excerpt may go to end with a whole word. */
const tailCharacters = 20;
/** Half of a surrogate pair, at either end of what was cut. */
const halfPair = /^[\udc00-\udfff]|[\ud800-\udbff]$/g;
/** A word is found where its beginning stands, since words are looked for by their stem. */
const stemShare = 0.7;
const fewestStemCharacters = 3;

const stemOf = (word: string): string =>
  word.slice(0, Math.max(Math.min(word.length, fewestStemCharacters), Math.ceil(word.length * stemShare)));

/** Each place where one of the words begins, with that word. */
const placesOf = (text: string, words: string[]): { at: number; word: string }[] =>
  words.flatMap((word) => {
    const places: { at: number; word: string }[] = [];
    const stem = stemOf(word);
    for (let at = text.indexOf(stem); at !== -1 && places.length < 20; at = text.indexOf(stem, at + 1)) {
      if (at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1] ?? "")) places.push({ at, word });
    }
    return places;
  });

/** The place whose excerpt holds the most of the words, a rare one counting for more; the first of those. */
const bestPlace = (text: string, words: string[], reach: number): number => {
  const places = placesOf(text, words).toSorted((one, other) => one.at - other.at);
  const weight = (word: string): number => 1 / places.filter((place) => place.word === word).length;
  const weights = new Map([...new Set(words)].map((word) => [word, weight(word)]));
  let best = { at: 0, found: 0 };
  for (const { at } of places) {
    const near = new Set(places.flatMap((other) => (other.at >= at && other.at < at + reach ? [other.word] : [])));
    const found = [...near].reduce((sum, word) => sum + (weights.get(word) ?? 0), 0);
    if (found > best.found) best = { at, found };
  }
  return best.at;
};

/** About `length` characters of a text around the first place that holds most of `words`, with `...` where it was cut. */
export const excerptOf = (content: string, words: string[], length = excerptCharacters): string => {
  if (content.length <= length) return content;
  // Not all letters keep their length in lower case; places in a text that changes would be wrong.
  const lower = content.toLowerCase();
  const text = lower.length === content.length ? lower : content;
  const found = bestPlace(
    text,
    words.map((word) => word.toLowerCase()),
    length - leadCharacters,
  );
  const start = Math.max(0, Math.min(found - leadCharacters, content.length - length));
  let end = Math.min(content.length, start + length);
  const wordEnd = content.slice(end, end + tailCharacters).search(/\s/);
  if (wordEnd >= 0) end += wordEnd;
  const excerpt = content.slice(start, end).replace(halfPair, "");
  return `${start > 0 ? "..." : ""}${excerpt}${end < content.length ? "..." : ""}`;
};

/** A passage that was found, as it is answered: a message of the agent's own life may show as that. */
export const hitOf = (
  { row, score }: Ranking[number],
  { words, type, spaceName }: { words: string[]; type: SearchType; spaceName: string | null },
): SearchHit => {
  const { ref, role, spaceId, authorId, authorName } = row;
  const id = type === "consciousness" ? (row.lived ?? ref) : ref;
  const runId = type === "consciousness" ? runIdOf(id) : null;
  const label = type === "block" ? labelOf(ref) : null;
  const messageId = row.type === "message" ? ref : row.messageId;
  return withoutNulls({
    ...{ type, id, excerpt: excerptOf(row.text, words), score, createdAt: isoTime(row.at), role },
    source: withoutNulls({ spaceId, spaceName, messageId, authorId, authorName, runId, label }),
  });
};
