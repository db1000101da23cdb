import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation, OperationResult } from "../../../protocol/block-operation.ts";
import { type BlockSchema, type Field, maxListItems } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { counterCell, fieldCell, itemsCell, pathOf, spliceText, storedItem } from "./cells.ts";
import { editText } from "./edit-text.ts";
import { entryFields, isOn, type OperationOn, operations, type Part, partsOf, type SchemaOf } from "./parts.ts";
import { checkPermission, requireSystem, type Writer } from "./permission.ts";
import {
  checkField,
  checkFields,
  checkItem,
  countedTooFar,
  isObject,
  maxCount,
  noSuchField,
  outOfBounds,
  refusedEdit,
  tooManyItems,
} from "./values.ts";

/** A document that is being changed, on behalf of somebody. */
export type Editing = {
  doc: LoroDoc;
  writer: Writer;
  label: string;
  /** A key that no item of the document has. */
  newKey: () => number;
};

/** The part of the block that an operation is about. */
const partFor = (schema: BlockSchema, { section: name, op }: ContentOperation, writer: Writer): Part => {
  const parts = partsOf(schema);
  if (schema.type === "composite" && name === undefined) {
    const names = parts.map((part) => part.name).join(", ");
    throw refusedEdit(`${op} needs a section of this composite block: ${names}`);
  }
  const part = parts.find((each) => each.name === name);
  if (!part) throw noSuchField(name ?? "");
  if (part.readOnly) requireSystem(writer, `Section '${name}'`);
  return part;
};

const requireType = ({ name, type }: Field, wanted: Field["type"], op: string): void => {
  if (type !== wanted) throw refusedEdit(`${op} takes a ${wanted} field; '${name}' is a ${type}`);
};

const setField = ({ doc, newKey }: Editing, prefix: string, field: Field, value: Json): void => {
  const { name, type } = field;
  const cell = fieldCell(prefix, field);
  if (value === null) {
    if (field.required) throw refusedEdit(`Field '${name}' is required`);
    cell.write(doc, cell.empty);
    return;
  }
  checkField(field, value);
  if (!Array.isArray(value)) {
    cell.write(doc, type === "counter" ? value : JSON.stringify(value));
    return;
  }
  if (value.length > maxListItems) throw tooManyItems(value.length, maxListItems, "maxListItems");
  const items = itemsCell(pathOf(prefix, "items", name));
  // An item that stays keeps its key: a merge must not take it for a new one.
  const known = items.read(doc);
  const next = value.map((item) => {
    const json = JSON.stringify(item);
    const place = known.findIndex((each) => each.json === json);
    return (place < 0 ? undefined : known.splice(place, 1)[0]) ?? { key: newKey(), json };
  });
  items.write(doc, next);
};

const editField = (
  editing: Editing,
  { fields }: SchemaOf<"map">,
  prefix: string,
  operation: OperationOn<"map">,
): string => {
  const { doc, newKey, label, writer } = editing;
  const { field: name, op } = operation;
  const field = fields.find((each) => each.name === name);
  if (!field) throw noSuchField(name);
  if (field.readOnly) requireSystem(writer, `Field '${name}'`);
  const list = doc.getMovableList(pathOf(prefix, "items", name));
  switch (op) {
    case "set_field":
      setField(editing, prefix, field, operation.value);
      return operation.value === null ? `Cleared '${name}' of block '${label}'` : `Set '${name}' of block '${label}'`;
    case "increment": {
      requireType(field, "counter", op);
      const path = pathOf(prefix, "counter", name);
      const counter = counterCell(path);
      if (!(Math.abs(counter.read(doc) + operation.by) <= maxCount)) throw countedTooFar(name);
      doc.getCounter(path).increment(operation.by);
      return `Incremented '${name}' of block '${label}' by ${operation.by}: it is ${counter.read(doc)}`;
    }
    case "append_to_list":
      requireType(field, "list", op);
      list.push(storedItem({ key: newKey(), json: JSON.stringify(operation.value) }));
      return `Appended to '${name}' of block '${label}'`;
    case "remove_from_list": {
      requireType(field, "list", op);
      const items = itemsCell(pathOf(prefix, "items", name)).read(doc);
      const { index, value } = operation;
      const place = index ?? items.findIndex(({ json }) => sameJson(JSON.parse(json), value));
      if (place < 0) throw refusedEdit(`'${name}' does not hold ${JSON.stringify(value)}`);
      if (place >= items.length) throw outOfBounds(place, items.length);
      list.delete(place, 1);
      return `Removed item ${place} from '${name}' of block '${label}'`;
    }
  }
};

const editItems = (
  { doc, newKey, label }: Editing,
  { itemSchema }: SchemaOf<"list">,
  path: string,
  operation: OperationOn<"list">,
): string => {
  const list = doc.getMovableList(path);
  const { length } = list;
  const within = (index: number, most: number): void => {
    if (index >= most) throw outOfBounds(index, length);
  };
  const stored = (item: Json, key: number) => storedItem({ key, json: JSON.stringify(checkItem(itemSchema, item)) });
  switch (operation.op) {
    case "push_item":
    case "insert_item": {
      const index = operation.op === "push_item" ? length : operation.index;
      within(index, length + 1);
      list.insert(index, stored(operation.item, newKey()));
      return `Inserted item ${index} into block '${label}'`;
    }
    case "set_item": {
      const { index, item } = operation;
      within(index, length);
      list.set(index, stored(item, itemsCell(path).read(doc)[index]?.key ?? newKey()));
      return `Set item ${index} of block '${label}'`;
    }
    case "delete_item":
      within(operation.index, length);
      list.delete(operation.index, 1);
      return `Deleted item ${operation.index} of block '${label}'`;
    case "move_item": {
      const { from, to } = operation;
      within(from, length);
      within(to, length);
      if (from !== to) list.move(from, to);
      return `Moved item ${from} of block '${label}' to ${to}`;
    }
  }
};

/** Appends to a log, with when and by whom. Nobody but the system says that it was another. */
const appendEntry = (
  { doc, newKey, label, writer }: Editing,
  schema: SchemaOf<"log">,
  path: string,
  { entry }: OperationOn<"log">,
): string => {
  const fields = entryFields(schema);
  const given: Json = typeof entry === "string" ? { [fields[0]?.name ?? "message"]: entry } : entry;
  if (!isObject(given)) throw refusedEdit("An entry must be an object");
  const { timestamp, agent, ...rest } = given;
  const own = checkFields(fields, rest, "An entry");
  const stamps = checkFields(
    [
      { name: "timestamp", type: "timestamp" },
      { name: "agent", type: "text" },
    ],
    { timestamp: timestamp ?? writer.now, agent: writer.kind === "system" ? (agent ?? null) : writer.name },
    "An entry",
  );
  doc.getMovableList(path).push(storedItem({ key: newKey(), json: JSON.stringify({ ...stamps, ...own }) }));
  return `Appended an entry to block '${label}'`;
};

/** Changes one part of a document. Answers what it did, in words. */
export const editPart = (editing: Editing, { schema, prefix }: Part, operation: ContentOperation): string => {
  const { doc, label } = editing;
  if (schema.type === "text" && isOn("text", operation)) {
    const { splices, message } = editText(doc.getText(pathOf(prefix, "text")).toString(), operation, label);
    spliceText(doc, pathOf(prefix, "text"), splices);
    return message;
  }
  if (schema.type === "map" && isOn("map", operation)) return editField(editing, schema, prefix, operation);
  if (schema.type === "list" && isOn("list", operation))
    return editItems(editing, schema, pathOf(prefix, "items"), operation);
  if (schema.type === "log" && isOn("log", operation))
    return appendEntry(editing, schema, pathOf(prefix, "items"), operation);
  const taken = Object.entries(operations).filter(([, { on }]) => on === schema.type);
  const names = taken.map(([name]) => name).join(", ");
  throw refusedEdit(`${operation.op} does not apply to a ${schema.type}; it takes ${names}`);
};

/** Makes one change. Throws what refuses it; the document may then be changed in part, and is not to be kept. */
export const applyOperation = (editing: Editing, schema: BlockSchema, operation: ContentOperation): OperationResult => {
  checkPermission(operation.op, editing.writer);
  const part = partFor(schema, operation, editing.writer);
  return { op: operation.op, message: editPart(editing, part, operation) };
};
