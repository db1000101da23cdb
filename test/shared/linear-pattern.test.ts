import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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

const source = join(import.meta.dirname, "../../src");

test("[C13] no file makes a native pattern at run time but out of words that it has escaped", () => {
  const making = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
    (name) => /\.tsx?$/.test(name) && /\bRegExp\(/.test(readFileSync(join(source, name), "utf8")),
  );
  expect(making.toSorted()).toEqual([
    "agent/context/grammar.ts", // an issued id
    "agent/redaction/forms.ts", // the forms of a line that tells a message
    "agent/tools/configured/redact.ts", // secrets, escaped
    "protocol/exported-agent.ts", // the form of an id
    "protocol/ids.ts",
    "protocol/text.ts", // classes of characters
    "rehearsal/addressed.ts", // names, escaped
    "rehearsal/rules/ask.ts",
    "rehearsal/rules/drawings.ts", // no words from outside
    "rehearsal/rules/lists.ts",
    "rehearsal/rules/plans.ts",
    "rehearsal/words.ts", // a schema's words, escaped
    "shared/invisible.ts", // classes of characters
    "shared/line-form.ts", // the forms of a prompt's lines
    "shared/look-alike.ts", // classes of characters
    "web/timeline/remark-mentions.ts", // names, escaped, in the reader's own page
  ]);
});
