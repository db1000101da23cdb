import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyEdit } from "../../../src/client/blocks/apply-edit.ts";
import { retarget, seenBy } from "../../../src/client/blocks/retarget.ts";
import type { Json } from "../../../src/protocol/block.ts";
import type { BlockOperation } from "../../../src/protocol/block-operation.ts";

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
