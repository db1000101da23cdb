import { expect, test, vi } from "vitest";
import { maxJsonDepth, maxJsonValues, soundJsonIn, unsoundness } from "../../src/shared/sound-json.ts";

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

test.each([
  ["maxJsonValues", `[${Array(349_000).fill("{}").join()}]`],
  ["maxJsonValues", `{${Array(150_000).fill('"a":0').join()}}`],
  ["maxJsonDepth", `[{"a":${"[".repeat(500_000)}`],
])("[C13] a long body beyond %s is refused before it is parsed (%#)", (bound, body) => {
  const parse = vi.spyOn(JSON, "parse");
  try {
    expect(() => soundJsonIn(body)).toThrow(bound);
    expect(parse).not.toHaveBeenCalled();
  } finally {
    parse.mockRestore();
  }
});

test("[C13] what a long body says in texts counts as no values", () => {
  const said = [`"\\[{,`.repeat(100_000), "\\", ...Array<number>(maxJsonValues - 5).fill(0)];
  expect(soundJsonIn(JSON.stringify([said]))).toEqual([said]);
});
