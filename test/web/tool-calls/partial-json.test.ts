import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePartialJson } from "../../../src/web/tool-calls/partial-json.ts";

test.each([
  ["", undefined],
  ["   ", undefined],
  ["{", {}],
  ['{"ci', {}],
  ['{"city"', {}],
  ['{"city":', {}],
  ['{"city": "Ber', { city: "Ber" }],
  ['{"city": "Berlin", "days": 1', { city: "Berlin", days: 1 }],
  ['{"days": -', {}],
  ['{"days": 1.', { days: 1 }],
  ['{"sure": tr', {}],
  ['{"sure": true', { sure: true }],
  ['{"list": [1, 2, {"a": nul', { list: [1, 2, {}] }],
  ['{"list": [1, 2], "more": [[', { list: [1, 2], more: [[]] }],
  ['{"text": "a\\', { text: "a" }],
  ['{"text": "a\\u26', { text: "a" }],
  ['{"text": "a\\u2603', { text: "a☃" }],
  ['{"text": "\\ud83d', { text: "" }],
  ['{"text": "\\ud83d\\ude00"', { text: "😀" }],
  ['{"text": "two\nlines"', { text: "two\nlines" }],
  ['{"a": 1 oops "b": 2}', { a: 1 }],
  ["[1 2]", [1]],
  ["hello", undefined],
])("%j so far has the value %j", (text, value) => {
  expect(parsePartialJson(text)).toEqual(value);
});

test("a key named __proto__ is an own key and changes no prototype", () => {
  const value = parsePartialJson('{"__proto__": {"admin": true}, "a": 1');
  expect(Object.keys(Object(value))).toEqual(["__proto__", "a"]);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
});

test("nesting that is too deep is cut off", () => {
  expect(() => parsePartialJson("[".repeat(100_000))).not.toThrow();
});

test("a whole JSON text has its own value, and no beginning of it throws", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.nat(), (value, cut) => {
      const text = JSON.stringify(value);
      expect(parsePartialJson(text)).toEqual(JSON.parse(text));
      parsePartialJson(text.slice(0, cut % (text.length + 1)));
    }),
    { numRuns: 1000, seed: 22 },
  );
});
