import type { matchOf } from "./match-expression.ts";
import { keyOf, type Ranking } from "./ranking.ts";
import type { EntryRow } from "./sources.ts";

/**
 * Ranks by what a match of words does not tell: who is asked about, what was said next, and what says the same again.
 * Each takes a ranking, best first, and answers another. The figures that chose the numbers are in
 * `docs/decisions/2026-11-23-search-ranks-conversations.md`.
 */

/** How much more a match of a speaker counts whom the query names. */
const namedSpeaker = 0.35;

const byScore = (ranking: Ranking): Ranking =>
  ranking.toSorted((one, other) => other.score - one.score || other.row.at - one.row.at);

/** Names and words as a query and a text share them. */
const wordsIn = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];

/**
 * Most questions in a group are about what somebody said. Their name is in every one of their messages, so it is no
 * rare word there. It is rarer where others address them: those would come first. A speaker is known by the first name.
 */
export const forSpeakers = (ranking: Ranking, words: string[]): Ranking => {
  const asked = new Set(wordsIn(words.join(" ")));
  const isNamed = ({ authorName }: EntryRow): boolean => {
    const [first] = wordsIn(authorName ?? "");
    return first !== undefined && asked.has(first);
  };
  return byScore(ranking.map(({ row, score }) => ({ row, score: isNamed(row) ? score * (1 + namedSpeaker) : score })));
};

/** So many of the best have their followers looked at. */
export const leaders = 5;
/** The shares of a hit's score that the first, second and third message after it have. */
const shares = [0.7, 0.6, 0.5];
/** A query of fewer words looks for them, and one of more asks about something. */
const fewestWords = 3;

/** Whether what follows a hit may answer the query, though none of its words are there. */
export const asksForMore = ({ words, isExact }: Pick<ReturnType<typeof matchOf>, "words" | "isExact">): boolean =>
  !isExact && words.length >= fewestWords;

/** An answer, an objection or a decision seldom names its matter again. `followers`: messages soon `after` a passage, in order. */
export const withFollowers = (ranking: Ranking, followers: { after: number; row: EntryRow }[]): Ranking => {
  const all = new Map(ranking.map((each) => [keyOf(each.row), each]));
  const scores = new Map(ranking.map(({ row, score }) => [row.id, score]));
  for (const [after, next] of Map.groupBy(followers, (each) => each.after)) {
    for (const [place, share] of shares.entries()) {
      const row = next[place]?.row;
      if (!row) break;
      const known = all.get(keyOf(row));
      const score = (scores.get(after) ?? 0) * share;
      if (score > (known?.score ?? 0)) all.set(keyOf(row), { row: known?.row ?? row, score });
    }
  }
  return byScore([...all.values()]);
};

/** So many of the best are chosen one after another, each by how little of it the others say. */
const variedHits = 10;
/** The share of their words from which two texts say the same, and what the second of them loses then. */
const sameShare = 0.7;
const repetition = 0.2;

/** The share of the words of two texts that both have. */
const overlap = (one: Set<string>, other: Set<string>): number => {
  const [few, many] = one.size < other.size ? [one, other] : [other, one];
  let shared = 0;
  for (const word of few) if (many.has(word)) shared += 1;
  return shared === 0 ? 0 : shared / (one.size + other.size - shared);
};

/** Maximal marginal relevance: of two that are about as good, one that says something else than the better ones. */
export const varied = (ranking: Ranking): Ranking => {
  const left = ranking.map((each) => ({ ...each, words: new Set(wordsIn(each.row.text)), alike: 0 }));
  const worth = ({ score, alike }: { score: number; alike: number }): number =>
    alike < sameShare ? score : score * (1 - repetition * alike);
  const chosen: Ranking = [];
  while (left.length > 0 && chosen.length < variedHits) {
    const best = left.reduce((one, other) => (worth(other) > worth(one) ? other : one));
    left.splice(left.indexOf(best), 1);
    chosen.push({ row: best.row, score: worth(best) });
    for (const each of left) each.alike = Math.max(each.alike, overlap(each.words, best.words));
  }
  return [...chosen, ...byScore(left.map((each) => ({ row: each.row, score: worth(each) })))];
};
