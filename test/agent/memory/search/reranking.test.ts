import fc from "fast-check";
import { expect, test } from "vitest";
import { matchOf } from "../../../../src/agent/memory/search/match-expression.ts";
import { asksForMore, forSpeakers, varied, withFollowers } from "../../../../src/agent/memory/search/reranking.ts";
import type { EntryRow } from "../../../../src/agent/memory/search/sources.ts";

const rowOf = (id: number, authorName: string | null = null, text = `text ${id}`): EntryRow => ({
  ...{ id, type: "message", ref: `m${id}`, part: 0, at: id, head: "", text, authorName, authorId: null },
  ...{ lived: null, spaceId: null, messageId: null, role: null, version: null },
});
const hit = (id: number, score: number, authorName?: string | null, text?: string) => ({
  row: rowOf(id, authorName, text),
  score,
});
const order = (ranking: { row: EntryRow }[]): number[] => ranking.map(({ row }) => row.id);

test("[K16] a match of the speaker whom a query names comes before a better one of another", () => {
  const ranking = [hit(1, 1, "Leo"), hit(2, 0.8, "Sara Lind"), hit(3, 0.5, "Sara"), hit(4, 0.4, null)];
  expect(order(forSpeakers(ranking, ["sara", "roof"]))).toEqual([2, 1, 3, 4]);
  expect(order(forSpeakers(ranking, ["@Sara", "Leo"]))).toEqual([1, 2, 3, 4]);
  expect(forSpeakers(ranking, ["Lind", "roof"])).toEqual(ranking);
});

test("[K16] what was said after a hit is a candidate, never before it: the nearer, the better", () => {
  const ranking = [hit(1, 1), hit(5, 0.65), hit(3, 0.1)];
  const followers = [2, 3, 4, 9].map((id) => ({ after: 1, row: rowOf(id) }));
  const found = withFollowers(ranking, followers);
  expect(found.map(({ row, score }) => [row.id, score])).toEqual([
    [1, 1],
    [2, 0.7],
    [5, 0.65],
    [3, 0.6],
    [4, 0.5],
  ]);
});

test("[K16] what follows is looked at for a question, not for a word or a phrase", () => {
  expect(asksForMore(matchOf("What was decided about the printer for Oslo?"))).toBe(true);
  expect(asksForMore(matchOf("the new printer"))).toBe(false);
  expect(asksForMore(matchOf('"new printer" decided Oslo'))).toBe(false);
});

test("[K16] of texts that say the same the second comes after what says something else", () => {
  const said = "we moved the launch to friday";
  const ranking = [hit(1, 1, null, said), hit(2, 0.9, null, `${said} then`), hit(3, 0.8, null, "the launch is over")];
  expect(order(varied(ranking))).toEqual([1, 3, 2]);
});

test("[K16] nothing is lost or doubled, and scores fall, however a ranking is changed", () => {
  const words = fc.array(fc.constantFrom("Sara", "Leo", "tea", "roof", "a"), { maxLength: 6 });
  const some = fc.record({ score: fc.double({ min: 0, max: 1, noNaN: true }), author: words, text: words });
  fc.assert(
    fc.property(fc.array(some, { maxLength: 30 }), words, (given, query) => {
      const ranking = given
        .map(({ score, author, text }, id) => hit(id, score, author.join(" "), text.join(" ")))
        .toSorted((one, other) => other.score - one.score);
      const followers = given.map((_, id) => ({ after: id, row: rowOf((id + 1) % 40) }));
      const found = varied(forSpeakers(withFollowers(ranking, followers), query));
      const ids = order(found);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids).toEqual(expect.arrayContaining(order(ranking)));
      const scores = found.map(({ score }) => score);
      expect(scores).toEqual(scores.toSorted((one, other) => other - one));
    }),
  );
});
