import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { excerptOf, fuse } from "../../../../src/agent/memory/search/ranking.ts";
import { passagesOf } from "../../../../src/agent/memory/search/search-index.ts";
import type { EntryRow } from "../../../../src/agent/memory/search/sources.ts";
import { dotAt, quantised } from "../../../../src/agent/memory/search/vectors.ts";

describe("an excerpt", () => {
  test("shows what was found, with dots where it was cut", () => {
    const content =
      "This is a long piece of text that contains the word pattern somewhere in the middle and continues on for a while after that.";
    expect(excerptOf(content, ["pattern"], 80)).toBe(
      "...is is a long piece of text that contains the word pattern somewhere in the middle...",
    );
    expect(excerptOf("short", ["x"], 80)).toBe("short");
  });

  test("is taken where most of the words stand, inflected or not", () => {
    const content = `launch ${"x ".repeat(200)}the launching of budgets ${"y ".repeat(200)}`;
    expect(excerptOf(content, ["launch", "budget"], 80)).toContain("launching of budgets");
  });

  test("never holds half of a surrogate pair, and is bounded", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 400 }),
        fc.array(fc.string(), { maxLength: 4 }),
        (text, words) => {
          const excerpt = excerptOf(text, words, 60);
          expect(excerpt.isWellFormed()).toBe(text.isWellFormed());
          expect(excerpt.length).toBeLessThanOrEqual(60 + 20 + 8);
        },
      ),
    );
  });
});

test("rankings are fused by reciprocal rank, k = 60", () => {
  const authored = {
    spaceId: null,
    messageId: null,
    authorId: null,
    authorName: null,
    role: null,
    version: null,
    lived: null,
  };
  const entry: EntryRow = { id: 1, type: "block", ref: "", part: 0, at: 0, head: "", text: "", ...authored };
  const ranking = (...refs: string[]) => refs.map((ref) => ({ row: { ...entry, ref }, score: 0 }));
  const fused = fuse([ranking("A", "B"), ranking("B", "C")]);
  expect(fused.map(({ row, score }) => [row.ref, Number(score.toFixed(6))])).toEqual([
    ["B", 0.032522],
    ["A", 0.016393],
    ["C", 0.016129],
  ]);
});

test("passages are bounded, in order, and leave nothing out", () => {
  const word = fc.string({ minLength: 1, maxLength: 30, unit: fc.constantFrom("a", "b", ".", "\n") });
  fc.assert(
    fc.property(fc.array(word, { maxLength: 1500 }), (words) => {
      const text = words.join(" ");
      const passages = passagesOf(text);
      fc.pre(text.trim() !== "");
      let reached = 0;
      for (const passage of passages) {
        expect(passage.length).toBeLessThanOrEqual(2000);
        const at = text.indexOf(passage, Math.max(0, reached - 101));
        expect(at).toBeGreaterThanOrEqual(0);
        expect(at).toBeLessThanOrEqual(reached);
        reached = Math.max(reached, at + passage.length);
      }
      expect(reached).toBe(text.length);
    }),
    { numRuns: 50 },
  );
});

test("vectors as bytes keep their cosines within two hundredths", () => {
  const vectors = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 64, maxLength: 64 });
  fc.assert(
    fc.property(vectors, vectors, (one, other) => {
      const norm = (vector: number[]) => Math.hypot(...vector);
      fc.pre(norm(one) > 0.1 && norm(other) > 0.1);
      const exact = one.reduce((sum, value, index) => sum + value * (other[index] ?? 0), 0) / (norm(one) * norm(other));
      const [a, b] = [quantised(one), quantised(other)];
      expect(Math.abs(dotAt(a.bytes, b.bytes, 0) / (a.norm * b.norm) - exact)).toBeLessThan(0.02);
    }),
  );
  expect(quantised([0, 0]).norm).toBe(0);
});
