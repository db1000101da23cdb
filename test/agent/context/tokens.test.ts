import fc from "fast-check";
import { estimateTokenCount } from "tokenx";
import { expect, test } from "vitest";
import { estimateText } from "../../../src/agent/context/tokens.ts";

/** Runs of one class, so that every length and every neighbour of a line's end comes up. */
const run = fc
  .tuple(
    fc.constantFrom(
      " ",
      "\n",
      "\t",
      "\r\n",
      "\n  ",
      ".",
      '"',
      "-",
      "'",
      "7",
      "a",
      "Z",
      "\u007f",
      "é",
      "日",
      "。",
      "—",
      "\u00a0",
      "\u3000",
      "👍",
    ),
  )
  .chain(([text]) => fc.integer({ min: 1, max: 16 }).map((times) => text.repeat(times)));
const text = fc.oneof(
  fc.string({ unit: "binary-ascii", maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 50 }),
  fc.array(run, { maxLength: 12 }).map((runs) => runs.join("")),
  fc
    .array(fc.constantFrom(" ", "\n", ".", "a", "A1", "12", "word", "é", "日", "。", "—", "я", "\u2003"), {
      maxLength: 40,
    })
    .map((all) => all.join("")),
);

test("a text is estimated as tokenx estimates it, whatever it is made of", () => {
  fc.assert(
    fc.property(text, (any) => {
      expect(estimateText(any)).toBe(estimateTokenCount(any));
    }),
    { numRuns: 6000, seed: 20261122 },
  );
});
