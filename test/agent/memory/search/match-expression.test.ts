import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchOf } from "../../../../src/agent/memory/search/match-expression.ts";

const database = new DatabaseSync(":memory:");
database.exec("create virtual table words using fts5(text, tokenize='porter unicode61')");
const insert = database.prepare("insert into words (text) values (?)");
for (const text of [
  "the quick brown fox jumps over the lazy dog",
  "programming is fun",
  "what's up, foo-bar?",
  "Mona said no",
]) {
  insert.run(text);
}
const select = database.prepare("select text from words where words match ? order by rank");

const found = (query: string): string[] => {
  const { expression } = matchOf(query);
  return expression === null ? [] : select.all(expression).map(({ text }) => String(text));
};

describe("a query as an expression of FTS5", () => {
  test("words: any may match, inflections do, and what matches more comes first", () => {
    expect(found("program jumping fox")).toEqual(["the quick brown fox jumps over the lazy dog", "programming is fun"]);
  });

  test("a phrase must be there, in that order; other words beside it need not", () => {
    expect(found('"quick brown fox"')).toHaveLength(1);
    expect(found('"brown quick fox"')).toEqual([]);
    expect(found('"brown quick fox" programming')).toEqual([]);
    expect(found('"lazy dog" programming')).toEqual(["the quick brown fox jumps over the lazy dog"]);
  });

  test("a star at its end finds the beginning of a word, and nowhere else", () => {
    expect(found("prog*")).toEqual(["programming is fun"]);
    expect(found("xyz*")).toEqual([]);
    expect(found('"quick bro"*')).toHaveLength(1);
    expect(found("*")).toEqual([]);
  });

  test("words of the grammar count only where there are no others, and a possessive is its owner", () => {
    expect(found("is the fox")).toEqual(["the quick brown fox jumps over the lazy dog"]);
    expect(found("is")).toEqual(["programming is fun"]);
    expect(found("what did Mona's")).toEqual(["Mona said no"]);
  });

  test.each([
    ["what's up?", ["what's up, foo-bar?"]],
    ["foo-bar", ["what's up, foo-bar?"]],
    ["NEAR(fox", ["the quick brown fox jumps over the lazy dog"]],
    ["fun OR (", ["programming is fun"]],
    ['"fun', ["programming is fun"]],
    ["text:fun", ["programming is fun"]],
    ['"', []],
    ["", []],
    ["\0", []],
    ["🙂 !?", []],
  ])("[S4] %j is no syntax", (query, expected) => {
    expect(found(query)).toEqual(expected);
  });

  test("[S4] any text is a query that FTS5 takes", () => {
    const syntax = fc.constantFrom(
      '"',
      ...["*", "(", ")", "^", "+", "-", ":", "{", "}", "NEAR", "AND", "OR", "NOT", "'", "\\", "fox", " ", ",", "\0"],
      ...["é", "中"],
    );
    const anything = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.array(syntax, { maxLength: 20 }).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(anything, (query) => void found(query)),
      { numRuns: 2000 },
    );
  });

  test("[B3] however long a query is, a bounded number of its words is looked for", () => {
    const words = Array.from({ length: 500 }, (_, index) => `word${index}`);
    expect(matchOf(words.join(" ")).words).toHaveLength(32);
  });
});
