import { describe, expect, test } from "vitest";
import { applyEdit } from "../../../src/client/blocks/apply-edit.ts";
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

describe("what an edit will make of a block", () => {
  test.each<[string, BlockSchema, Json, BlockOperation, Json]>([
    ["a text anew", { type: "text" }, "a", { op: "set_text", text: "b" }, "b"],
    ["more text", { type: "text" }, "a", { op: "append_text", text: "b" }, "ab"],
    ["what only the server knows", { type: "text" }, "a", { op: "undo" }, "a"],
    ["a field", map, { a: 1 }, { op: "set_field", field: "b", value: true }, { a: 1, b: true }],
    ["a field cleared", map, { a: 1, b: 2 }, { op: "set_field", field: "a", value: null }, { b: 2 }],
    ["a counter", map, {}, { op: "increment", field: "n", by: 2 }, { n: 2 }],
    ["a field's item", map, { l: ["a"] }, { op: "append_to_list", field: "l", value: "b" }, { l: ["a", "b"] }],
    ["a field's item taken", map, { l: ["a", "b"] }, { op: "remove_from_list", field: "l", index: 0 }, { l: ["b"] }],
    ["an item", { type: "list" }, ["a"], { op: "push_item", item: "b" }, ["a", "b"]],
    ["an item too many", { type: "list", maxItems: 2 }, ["a", "b"], { op: "push_item", item: "c" }, ["b", "c"]],
    ["an item between", { type: "list" }, ["a", "c"], { op: "insert_item", index: 1, item: "b" }, ["a", "b", "c"]],
    ["an item changed", { type: "list" }, ["a", "c"], { op: "set_item", index: 1, item: "b" }, ["a", "b"]],
    ["an item that is not there", { type: "list" }, ["a"], { op: "set_item", index: 4, item: "b" }, ["a"]],
    ["an item gone", { type: "list" }, ["a", "b"], { op: "delete_item", index: 0 }, ["b"]],
    ["an item moved", { type: "list" }, ["a", "b", "c"], { op: "move_item", from: 0, to: 2 }, ["b", "c", "a"]],
    ["an entry", log, [], { op: "append_log_entry", entry: "a" }, [{ message: "a" }]],
    [
      "a section",
      composite,
      { notes: "x" },
      { op: "push_item", item: "a", section: "todo" },
      { notes: "x", todo: ["a"] },
    ],
    ["a section that is not there", composite, { notes: "x" }, { op: "undo", section: "nope" }, { notes: "x" }],
  ])("%s", (_, schema, before, operation, after) => {
    expect(applyEdit(schema, before, [operation])).toEqual(after);
  });
});
