import { expect, test } from "vitest";
import { maxJsonDepth, unsoundness } from "../../src/shared/sound-json.ts";

const nested = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));

test.each([
  [{ a: ["b", { c: "d", e: null }] }, undefined],
  [{ a: [{ b: "\ud800" }] }, "a.0.b"],
  [{ a: { "\ud800": 1 } }, "a"],
  [{ a: JSON.parse('{"__proto__":1}') }, "a"],
  [{ a: { length: { toString: null } } }, "a.length"],
  [{ a: { size: [{ toString: "" }] } }, "a.size"],
  ["\udc00", ""],
  [nested(maxJsonDepth), undefined],
  [nested(maxJsonDepth + 1), ""],
])("[S4] a value is unsound at its path, or sound (%#)", (value, path) => {
  expect(unsoundness(value)?.path).toBe(path);
});
