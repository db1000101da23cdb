import { describe, expect, test } from "vitest";
import { type BlockState, initialBlockState, reduceBlock, shownValue } from "../../../src/client/blocks/block-state.ts";
import type { Json } from "../../../src/protocol/block.ts";
import type { BlockOperation } from "../../../src/protocol/block-operation.ts";
import { listBlock } from "./list-block.ts";

const opened = (value: Json = ["bread"]): BlockState =>
  reduceBlock(initialBlockState, { type: "welcome", cursor: 1, block: listBlock(1, value) });
const push = (item: Json): BlockOperation => ({ op: "push_item", item });
const edit = (state: BlockState, key: string, ...operations: BlockOperation[]): BlockState =>
  reduceBlock(state, { type: "local.edit", key, operations });
const sending = (state: BlockState, key: string): BlockState => reduceBlock(state, { type: "local.sending", key });
const told = (state: BlockState, version: number, value: Json, by = "agent:ent_x"): BlockState =>
  reduceBlock(state, { type: "block.changed", cursor: version, block: listBlock(version, value), by });
const stored = (state: BlockState, key: string, version: number, value: Json): BlockState =>
  reduceBlock(state, {
    type: "local.stored",
    key,
    by: "human:ent_me",
    answer: { version, value, rendered: "", results: [] },
  });

describe("the state of a block", () => {
  test("an edit shows at once and only once, though its frame comes before its answer", () => {
    const under = sending(edit(opened(), "a", push("milk")), "a");
    expect(shownValue(under)).toEqual(["bread", "milk"]);
    const frameFirst = told(under, 2, ["bread", "milk"], "human:ent_me");
    expect(shownValue(frameFirst)).toEqual(["bread", "milk"]);
    const done = stored(frameFirst, "a", 2, ["bread", "milk"]);
    expect(shownValue(done)).toEqual(["bread", "milk"]);
    expect(done).toMatchObject({ edits: [], held: [], block: { version: 2 }, changedBy: "human:ent_me" });
  });

  test("edits of others show with the answer, and an older version never replaces a newer", () => {
    const under = sending(edit(opened(), "a", push("milk")), "a");
    const later = told(told(under, 2, ["bread", "tea"]), 4, ["bread", "tea", "milk", "rice"]);
    expect(shownValue(later)).toEqual(["bread", "milk"]);
    const done = stored(later, "a", 3, ["bread", "tea", "milk"]);
    expect(shownValue(done)).toEqual(["bread", "tea", "milk", "rice"]);
    expect(shownValue(told(done, 3, ["bread", "tea", "milk"]))).toEqual(["bread", "tea", "milk", "rice"]);
  });

  test("a refused edit leaves the shown value, and keeps its text until it is discarded", () => {
    const under = sending(edit(opened(), "a", push("milk")), "a");
    const refused = reduceBlock(told(under, 2, ["tea"]), {
      type: "local.refused",
      key: "a",
      code: "forbidden",
      message: "no",
    });
    expect(shownValue(refused)).toEqual(["tea"]);
    expect(refused.edits).toMatchObject([{ operations: [push("milk")], status: { kind: "refused", message: "no" } }]);
    expect(reduceBlock(refused, { type: "local.discard", key: "a" }).edits).toEqual([]);
    expect(shownValue(reduceBlock(refused, { type: "local.retry", key: "a" }))).toEqual(["tea", "milk"]);
  });

  test("an edit on top of an unsaved edit names no version, but the item that it changes", () => {
    const two = edit(edit(opened(), "a", push("milk")), "b", { op: "set_item", index: 1, item: "oat milk" });
    expect(two.edits).toMatchObject([
      { onVersion: 1, seen: [undefined] },
      { onVersion: null, seen: ["milk"] },
    ]);
    expect(shownValue(two)).toEqual(["bread", "oat milk"]);
  });
});
