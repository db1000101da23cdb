import fc from "fast-check";
import { expect, test } from "vitest";
import { heldBy, leastStretch, type SaidAt, saidAfter, saidIn } from "../../src/shared/stretches.ts";

const piece = fc.constantFrom(
  "The harbour opens at nine",
  "nobody pays above 1000",
  "short",
  "ab".repeat(12),
  "😀 and more of it",
);
const version = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(", "));

const stretchesOf = (text: string): string[] =>
  Array.from({ length: Math.max(0, text.length - leastStretch + 1) }, (_, from) =>
    text.slice(from, from + leastStretch),
  );

test("[L4] a stretch of an edited text counts from the first version since which each has it", () => {
  fc.assert(
    fc.property(fc.array(version, { minLength: 1, maxLength: 5 }), (versions) => {
      let said: SaidAt = [[0, 1]];
      for (const [index, text] of versions.entries()) {
        if (index > 0) said = saidAfter({ text: versions[index - 1] ?? "", saidAt: said }, text, index + 1);
      }
      const text = versions.at(-1) ?? "";
      const told = saidIn(text, said);
      expect(told[0]?.[0]).toBe(text);
      for (const stretch of stretchesOf(text)) {
        const since = versions.findLastIndex((each) => !each.includes(stretch)) + 2;
        const times = told.flatMap(([words, at]) => (words.includes(stretch) ? [at] : []));
        expect(Math.min(...times)).toBe(since);
      }
      const before = versions.at(-2) ?? "";
      const held = heldBy(before, text).split("\0").flatMap(stretchesOf);
      expect(new Set(held)).toEqual(new Set(stretchesOf(text).filter((each) => before.includes(each))));
    }),
    { numRuns: 500 },
  );
});
