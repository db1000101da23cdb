import { describe, expect, test } from "vitest";
import { itemFrom, shapeOf, withWords } from "../../../src/web/blocks/item-shape.ts";

describe("an item of a list", () => {
  test("has words, a done state and other fields", () => {
    expect(shapeOf("milk")).toMatchObject({ words: "milk", isDone: undefined, rest: [] });
    expect(shapeOf({ who: "Sara", text: "milk", done: true, count: 2 })).toEqual({
      wordsIn: "text",
      words: "milk",
      isDone: true,
      rest: [
        ["who", "Sara"],
        ["count", 2],
      ],
    });
    expect(shapeOf({ count: 2, of: [1, true] })).toMatchObject({ wordsIn: undefined, words: "count: 2, of: 1, yes" });
    expect(shapeOf(null)).toMatchObject({ words: "", wordsIn: undefined });
  });

  test("keeps its other fields when its words change", () => {
    expect(withWords({ title: "milk", done: false }, "oat milk")).toEqual({ title: "oat milk", done: false });
    expect(withWords("milk", "oat milk")).toBe("oat milk");
  });

  test("is made from words by the schema, else in the form of the last item", () => {
    const list = { type: "list" } as const;
    expect(itemFrom("tea", list, [])).toBe("tea");
    expect(itemFrom("tea", list, [{ text: "milk", done: true }])).toEqual({ text: "tea", done: false });
    expect(itemFrom("tea", list, [{ count: 1 }])).toBeUndefined();
    const fields = [
      { name: "name", type: "text" as const },
      { name: "done", type: "boolean" as const },
    ];
    expect(itemFrom("tea", { ...list, itemSchema: { type: "map", fields } }, [])).toEqual({ name: "tea", done: false });
    const properties = { title: { type: "string" }, done: { type: "boolean" } };
    expect(itemFrom("tea", { ...list, itemSchema: { type: "object", properties } }, [])).toEqual({
      title: "tea",
      done: false,
    });
    expect(itemFrom("7", { ...list, itemSchema: { type: "object", properties: { n: { type: "number" } } } }, [])).toBe(
      undefined,
    );
  });
});
