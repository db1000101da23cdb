import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyEdit, retarget, seenBy } from "../../../src/client/blocks/apply-edit.ts";
import type { Json } from "../../../src/protocol/block.ts";
import type { BlockOperation } from "../../../src/protocol/block-operation.ts";
import type { BlockSchema } from "../../../src/protocol/block-schema.ts";

const map: BlockSchema = { type: "map", fields: [] };
const log: BlockSchema = { type: "log", displayLimit: 20, entryFields: ["message"] };
const composite: BlockSchema = {
  type: "composite",
  sections: [
    { name: "notes", schema: { type: "text" } },
    { name: "todo", schema: { type: "list" } },
  ],
};

test.each<[string, BlockSchema, Json, BlockOperation, Json]>([
  ["set_text", { type: "text" }, "a", { op: "set_text", text: "b" }, "b"],
  ["append_text", { type: "text" }, "a", { op: "append_text", text: "b" }, "ab"],
  ["undo, as no change", { type: "text" }, "a", { op: "undo" }, "a"],
  ["set_field", map, { a: 1 }, { op: "set_field", field: "b", value: true }, { a: 1, b: true }],
  ["set_field to null", map, { a: 1, b: 2 }, { op: "set_field", field: "a", value: null }, { b: 2 }],
  ["increment from 0", map, {}, { op: "increment", field: "n", by: 2 }, { n: 2 }],
  ["append_to_list", map, { l: ["a"] }, { op: "append_to_list", field: "l", value: "b" }, { l: ["a", "b"] }],
  ["remove_from_list", map, { l: ["a", "b"] }, { op: "remove_from_list", field: "l", index: 0 }, { l: ["b"] }],
  ["push_item", { type: "list" }, ["a"], { op: "push_item", item: "b" }, ["a", "b"]],
  ["push_item over the limit", { type: "list", maxItems: 2 }, ["a", "b"], { op: "push_item", item: "c" }, ["b", "c"]],
  ["insert_item", { type: "list" }, ["a", "c"], { op: "insert_item", index: 1, item: "b" }, ["a", "b", "c"]],
  ["set_item", { type: "list" }, ["a", "c"], { op: "set_item", index: 1, item: "b" }, ["a", "b"]],
  ["set_item past the end", { type: "list" }, ["a"], { op: "set_item", index: 4, item: "b" }, ["a"]],
  ["delete_item", { type: "list" }, ["a", "b"], { op: "delete_item", index: 0 }, ["b"]],
  ["move_item", { type: "list" }, ["a", "b", "c"], { op: "move_item", from: 0, to: 2 }, ["b", "c", "a"]],
  ["append_log_entry", log, [], { op: "append_log_entry", entry: "a" }, [{ message: "a" }]],
  [
    "push_item in a section",
    composite,
    { notes: "x" },
    { op: "push_item", item: "a", section: "todo" },
    { notes: "x", todo: ["a"] },
  ],
  ["undo in an unknown section", composite, { notes: "x" }, { op: "undo", section: "nope" }, { notes: "x" }],
])("an edit shows the result of %s", (_, schema, before, operation, after) => {
  expect(applyEdit(schema, before, [operation])).toEqual(after);
});

describe("an edit that is applied to a newer value", () => {
  test("follows its item to the new place, in a section and in a field too", () => {
    const set: BlockOperation = { op: "set_item", index: 1, item: "rye" };
    expect(seenBy(["a", "bread"], set)).toBe("bread");
    expect(retarget(["x", "a", "y", "bread"], set, "bread")).toEqual({ ...set, index: 3 });
    const inSection: BlockOperation = { op: "move_item", from: 0, to: 1, section: "list" };
    expect(retarget({ list: ["x", "a"] }, inSection, "a")).toEqual({ ...inSection, from: 1 });
    const inField: BlockOperation = { op: "remove_from_list", field: "tags", index: 0 };
    expect(retarget({ tags: ["x", "a"] }, inField, "a")).toEqual({ ...inField, index: 1 });
  });

  test("takes the nearest of equal items, and is undefined when the item is gone", () => {
    const remove: BlockOperation = { op: "delete_item", index: 3 };
    expect(retarget(["a", "b", "a", "b", "a"], remove, "a")).toEqual({ ...remove, index: 2 });
    expect(retarget(["b"], remove, "a")).toBeUndefined();
  });

  test("stays the same when it is about no item", () => {
    const push: BlockOperation = { op: "push_item", item: "a" };
    expect(retarget([], push, seenBy([], push))).toBe(push);
  });

  test("deletes its own item, whatever was moved around it", () => {
    const items = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(items, fc.nat(), fc.array(fc.tuple(fc.nat(), fc.nat())), (before, at, moves) => {
        const index = at % before.length;
        const remove: BlockOperation = { op: "delete_item", index };
        const now = moves.reduce<Json>(
          (held, [from, to]) =>
            applyEdit({ type: "list" }, held, [
              { op: "move_item", from: from % before.length, to: to % before.length },
            ]),
          before,
        );
        const again = retarget(now, remove, before[index]);
        if (!again) throw new Error("it was there");
        const left = applyEdit({ type: "list" }, now, [again]);
        expect(left).toHaveLength(before.length - 1);
        expect(left).not.toContain(before[index]);
      }),
    );
  });
});
