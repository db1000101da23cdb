import fc from "fast-check";
import { expect, test } from "vitest";
import { LinearPattern } from "../../src/shared/linear-pattern.ts";

const parts = String.raw`. \s \S \w \d [^\s] [\S] [[.] [\b] \p{sc=Greek} \P{Lu} (?<n>a) x? (?:b|\u{1F600})* \b ^ $ [^] []`;
const more = String.raw`\ud83d\ude00 \\ud83d \cA \x41 \/ a{1,3}? [a-z\-]`;
const part = fc.constantFrom(...parts.split(" "), ...more.split(" "));
const pattern = fc.array(part, { maxLength: 5 }).map((some) => some.join(""));
const text = fc.array(fc.constantFrom(..."ab[.x\\-/ Aα5\n\r\b\u2028\u00a0\ufeff\u0001", "😀", "ud83d"), {
  maxLength: 6,
});

const isPattern = (source: string): boolean => {
  try {
    return new RegExp(source, "u").source !== "";
  } catch {
    return false;
  }
};

test("a pattern matches what it matches in ECMAScript", () => {
  fc.assert(
    fc.property(pattern.filter(isPattern), text, (source, words) => {
      const told = words.join("");
      expect(new LinearPattern(source, "u").test(told)).toBe(new RegExp(source, "u").test(told));
    }),
    { numRuns: 5000 },
  );
});

test("a pattern that is none of ECMAScript throws when it is made", () => {
  for (const source of ["(", "a{2", "\\Qa\\E", "(?P<n>a)", "[[:alpha:]]"]) {
    expect(() => new LinearPattern(source, "u")).toThrow(SyntaxError);
  }
});
