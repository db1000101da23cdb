import type { Json } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import { fieldsOf, itemsOf } from "./apply-edit.ts";

/**
 * An edit on top of an unsaved edit was made on a value that no stored version has. Before it is sent, its operations
 * are moved onto the block's current value: the index of an item follows the item.
 */

type Items = { items: Json[]; index: number };

/** The list that an operation changes and the index of its item; undefined for an operation on no item. */
const placeIn = (value: Json, operation: BlockOperation): Items | undefined => {
  const part = operation.section === undefined ? value : (fieldsOf(value)[operation.section] ?? null);
  switch (operation.op) {
    case "set_item":
    case "delete_item":
      return { items: itemsOf(part), index: operation.index };
    case "move_item":
      return { items: itemsOf(part), index: operation.from };
    case "remove_from_list": {
      const { field, index } = operation;
      return index === undefined ? undefined : { items: itemsOf(fieldsOf(part)[field]), index };
    }
    default:
      return undefined;
  }
};

/** The item that an operation changes. */
export const seenBy = (value: Json, operation: BlockOperation): Json | undefined => {
  const place = placeIn(value, operation);
  return place?.items[place.index];
};

const moved = (operation: BlockOperation, index: number): BlockOperation =>
  operation.op === "move_item"
    ? { ...operation, from: index }
    : { ...operation, ...("index" in operation ? { index } : {}) };

/** The same operation on `value`; undefined if its item is gone. */
export const retarget = (
  value: Json,
  operation: BlockOperation,
  seen: Json | undefined,
): BlockOperation | undefined => {
  const place = placeIn(value, operation);
  if (!place || seen === undefined) return operation;
  const { items, index } = place;
  const text = JSON.stringify(seen);
  const same = items.flatMap((item, at) => (JSON.stringify(item) === text ? [at] : []));
  const [nearest] = same.toSorted((one, other) => Math.abs(one - index) - Math.abs(other - index));
  return nearest === undefined ? undefined : moved(operation, nearest);
};
