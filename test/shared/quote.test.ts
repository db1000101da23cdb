import fc from "fast-check";
import { expect, test } from "vitest";
import { countInvisible } from "../../src/shared/invisible.ts";
import { quote, quoteJson, visible, visibleJson } from "../../src/shared/quote.ts";

const everyCharacter = (): string[] =>
  Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter((each) => each.isWellFormed());

test("[C5] every character that nobody sees is an escape, and every other one stays", () => {
  const isHidden = (each: string): boolean => countInvisible(each) > 0 || each === "\u2028" || each === "\u2029";
  const wrong = everyCharacter().filter((each) => (visible(each) !== each) !== isHidden(each));
  expect(wrong).toEqual([]);
  expect(visible("a\u200b\u{e0041}\u2028 👩‍👩‍👧 ❤️ 1️⃣")).toBe("a\\u{200B}\\u{E0041}\\u{2028} 👩‍👩‍👧 ❤️ 1️⃣");
});

test("[C5] so it is in the keys and texts of JSON", () => {
  expect(visibleJson({ "a\u200b": ["\u00ad", 1, null, true], b: { c: "\\u{AD}" } })).toEqual({
    "a\\u{200B}": ["\\u{AD}", 1, null, true],
    b: { c: "\\u{AD}" },
  });
});

test("[S2] a quote is one line without invisible characters, and can be read back exactly", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("\\", "\\u{200B}", "\u200b", "\u{e0041}", "\n", "\u2028", '"', "👩‍👩‍👧", "x"))
      .map((all) => all.join("")),
  );
  fc.assert(
    fc.property(text, fc.json(), (words, json) => {
      const quoted = quote(words);
      expect(JSON.parse(quoted)).toBe(words);
      expect(countInvisible(quoted)).toBe(0);
      expect(quoted).not.toMatch(/[\n\r\u2028\u2029]/);
      expect(JSON.parse(quoteJson(JSON.parse(json)))).toEqual(JSON.parse(json));
    }),
    { numRuns: 2000, seed: 5 },
  );
});
