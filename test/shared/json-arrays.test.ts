import { expect, test } from "vitest";
import { jsonArrays } from "../../src/shared/json-arrays.ts";

test("items become as few JSON arrays as their length allows, in their order", () => {
  const items = ["one", { two: "2,\n\"'" }, { three: ["3"] }, 4, "a long one, longer than all", 6];
  for (let maxLength = 1; maxLength < 100; maxLength += 1) {
    const arrays = jsonArrays(items, maxLength);
    const parsed = arrays.map((text) => JSON.parse(text) as unknown[]);
    expect(parsed.flat()).toEqual(items);
    for (const [index, text] of arrays.entries()) {
      const next = parsed[index + 1]?.[0];
      if (parsed[index]?.length !== 1) expect(text.length).toBeLessThanOrEqual(maxLength);
      if (next !== undefined) expect(text.length + 1 + JSON.stringify(next).length).toBeGreaterThan(maxLength);
    }
  }
  expect(jsonArrays(items, 1)).toHaveLength(items.length);
  expect(jsonArrays(items, 1000)).toEqual([JSON.stringify(items)]);
  expect(jsonArrays([], 10)).toEqual([]);
});
