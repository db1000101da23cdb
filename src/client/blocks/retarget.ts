import type { Json } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import { fieldsOf, itemsOf } from "./apply-edit.ts";

/**
 * An edit that was made on what no version holds (upon another edit that was not stored yet) is made again on what the
 * block holds now: what it says of an item's place follows the item.
 */

type Items = { items: Json[]; index: number };

/** The item that an operation is about, by its place in the list that it changes; undefined where it is about none. */
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

/** The item that an operation was made on. */
export const seenBy = (value: Json, operation: BlockOperation): Json | undefined => {
  const place = placeIn(value, operation);
  return place?.items[place.index];
};

const moved = (operation: BlockOperation, index: number): BlockOperation =>
  operation.op === "move_item"
    ? { ...operation, from: index }
    : { ...operation, ...("index" in operation ? { index } : {}) };

/** The same operation upon `value`; undefined where the item that it was made on is not there any more. */
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
