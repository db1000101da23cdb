import type { Json } from "../../protocol/block.ts";
import type { BlockOperation } from "../../protocol/block-operation.ts";
import type { BlockSchema, PlainSchema } from "../../protocol/block-schema.ts";

/**
 * The value of a block after an edit, shown until the server's answer comes. Operations whose result only the server
 * knows (a patch, an undo) leave the value as it is.
 */
export const applyEdit = (schema: BlockSchema, value: Json, operations: readonly BlockOperation[]): Json =>
  operations.reduce((held, operation) => applied(schema, held, operation), value);

const applied = (schema: BlockSchema, value: Json, operation: BlockOperation): Json => {
  if (schema.type !== "composite") return inPlain(schema, value, operation);
  const section = schema.sections.find(({ name }) => name === operation.section);
  if (!section) return value;
  const sections = fieldsOf(value);
  return { ...sections, [section.name]: inPlain(section.schema, sections[section.name] ?? null, operation) };
};

const inPlain = (schema: PlainSchema, value: Json, operation: BlockOperation): Json => {
  switch (schema.type) {
    case "text":
      return inText(typeof value === "string" ? value : "", operation);
    case "map":
      return inMap(fieldsOf(value), operation);
    case "list": {
      const items = inItems(itemsOf(value), operation);
      return schema.maxItems === undefined ? items : items.slice(-schema.maxItems);
    }
    case "log":
      return operation.op === "append_log_entry" ? [...itemsOf(value), entryOf(operation.entry)] : value;
  }
};

const inText = (text: string, operation: BlockOperation): string => {
  if (operation.op === "set_text") return operation.text;
  return operation.op === "append_text" ? text + operation.text : text;
};

const inMap = (fields: Record<string, Json>, operation: BlockOperation): Json => {
  switch (operation.op) {
    case "set_field": {
      const { [operation.field]: _, ...others } = fields;
      return operation.value === null ? others : { ...fields, [operation.field]: operation.value };
    }
    case "increment": {
      const held = fields[operation.field];
      return { ...fields, [operation.field]: (typeof held === "number" ? held : 0) + operation.by };
    }
    case "append_to_list":
      return { ...fields, [operation.field]: [...itemsOf(fields[operation.field]), operation.value] };
    case "remove_from_list": {
      const { field, index } = operation;
      return index === undefined ? fields : { ...fields, [field]: itemsOf(fields[field]).toSpliced(index, 1) };
    }
    default:
      return fields;
  }
};

const inItems = (items: Json[], operation: BlockOperation): Json[] => {
  switch (operation.op) {
    case "push_item":
      return [...items, operation.item];
    case "insert_item":
      return items.toSpliced(operation.index, 0, operation.item);
    case "set_item":
      return operation.index < items.length ? items.with(operation.index, operation.item) : items;
    case "delete_item":
      return items.toSpliced(operation.index, 1);
    case "move_item": {
      const [item] = items.slice(operation.from);
      return item === undefined ? items : items.toSpliced(operation.from, 1).toSpliced(operation.to, 0, item);
    }
    default:
      return items;
  }
};

const entryOf = (entry: string | Record<string, Json>): Json =>
  typeof entry === "string" ? { message: entry } : entry;

const noItems: Json[] = [];

/** The items of a list; none for any other value. */
export const itemsOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : noItems);

/** The fields of an object; none for any other value. */
export const fieldsOf = (value: Json | undefined): Record<string, Json> =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

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
