import fc from "fast-check";
import { expect, test } from "vitest";
import { keyItems } from "../../../src/web/blocks/keyed-items.ts";

const keys = (items: readonly { key: number }[]): number[] => items.map(({ key }) => key);

test("a row keeps its key while other rows come, go and change", () => {
  const first = keyItems([], ["a", "b", "c"]);
  expect(keys(first)).toEqual([1, 2, 3]);
  const more = keyItems(first, ["x", "a", "b", "c"]);
  expect(keys(more)).toEqual([4, 1, 2, 3]);
  const changed = keyItems(first, ["a", "B", "c"]);
  expect(keys(changed)).toEqual([1, 2, 3]);
  expect(keys(keyItems(first, ["c", "a"]))).toEqual([3, 1]);
});

test("no two rows ever share a key", () => {
  const items = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 8 });
  fc.assert(
    fc.property(fc.array(items, { minLength: 1, maxLength: 6 }), (steps) => {
      let rows = keyItems([], []);
      for (const step of steps) {
        rows = keyItems(rows, step);
        expect(new Set(keys(rows)).size).toBe(step.length);
        expect(rows.map(({ item }) => item)).toEqual(step);
      }
    }),
  );
});
