import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import { type Field, maxListItems, type PlainSchema } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { counterOf, fieldItemsOf, fieldsOf, maxCount, readCounter, readItems } from "./cells.ts";
import { checkField } from "./check-value.ts";
import { type Editing, requireSystem } from "./permission.ts";
import { countedTooFar, noSuchField, outOfBounds, refusedEdit, tooManyItems } from "./refused-edit.ts";
import { writeCounter, writeItems } from "./write-cells.ts";

export type FieldOperation = Extract<
  ContentOperation,
  { op: "set_field" | "append_to_list" | "remove_from_list" | "increment" }
>;

const fieldOf = (fields: Field[], { field: name }: FieldOperation, { writer }: Editing): Field => {
  const field = fields.find((each) => each.name === name);
  if (!field) throw noSuchField(name);
  if (field.readOnly) requireSystem(writer, `Field '${name}'`);
  return field;
};

const requireType = ({ name, type }: Field, wanted: Field["type"], op: string): void => {
  if (type !== wanted) throw refusedEdit(`${op} takes a ${wanted} field; '${name}' is a ${type}`);
};

export const setField = (editing: Editing, prefix: string, field: Field, value: Json): void => {
  const { doc, newKey } = editing;
  const { name, type } = field;
  if (value === null) {
    if (field.required) throw refusedEdit(`Field '${name}' is required`);
    if (type === "list") writeItems(doc, fieldItemsOf(prefix, name), []);
    else if (type === "counter") writeCounter(doc, counterOf(prefix, name), 0);
    else if (doc.getMap(fieldsOf(prefix)).get(name) !== undefined) doc.getMap(fieldsOf(prefix)).delete(name);
    return;
  }
  checkField(field, value);
  if (type === "counter") writeCounter(doc, counterOf(prefix, name), Number(value));
  else if (type !== "list") doc.getMap(fieldsOf(prefix)).set(name, JSON.stringify(value));
  if (type !== "list" || !Array.isArray(value)) return;
  if (value.length > maxListItems) throw tooManyItems(value.length, maxListItems, "maxListItems");
  // An item that stays keeps its key: a merge must not take it for a new one.
  const known = readItems(doc, fieldItemsOf(prefix, name));
  const items = value.map((item) => {
    const json = JSON.stringify(item);
    const place = known.findIndex((each) => each.json === json);
    return place < 0 ? { key: newKey(), json } : { key: known.splice(place, 1)[0]?.key ?? newKey(), json };
  });
  writeItems(doc, fieldItemsOf(prefix, name), items);
};

/** Changes a map. Answers what it did, in words. */
export const editFields = (
  editing: Editing,
  { fields }: Extract<PlainSchema, { type: "map" }>,
  prefix: string,
  operation: FieldOperation,
): string => {
  const { doc, newKey, label } = editing;
  const field = fieldOf(fields, operation, editing);
  const { name } = field;
  const path = fieldItemsOf(prefix, name);
  switch (operation.op) {
    case "set_field":
      setField(editing, prefix, field, operation.value);
      return operation.value === null ? `Cleared '${name}' of block '${label}'` : `Set '${name}' of block '${label}'`;
    case "increment": {
      requireType(field, "counter", operation.op);
      const counter = counterOf(prefix, name);
      const value = readCounter(doc, counter) + operation.by;
      if (!(Math.abs(value) <= maxCount)) throw countedTooFar(name);
      doc.getCounter(counter).increment(operation.by);
      return `Incremented '${name}' of block '${label}' by ${operation.by}: it is ${readCounter(doc, counter)}`;
    }
    case "append_to_list": {
      requireType(field, "list", operation.op);
      const item = { key: newKey(), json: JSON.stringify(operation.value) };
      writeItems(doc, path, [...readItems(doc, path), item]);
      return `Appended to '${name}' of block '${label}'`;
    }
    case "remove_from_list": {
      requireType(field, "list", operation.op);
      const items = readItems(doc, path);
      const { index, value } = operation;
      const place = index ?? items.findIndex(({ json }) => sameJson(JSON.parse(json), value));
      if (place < 0) throw refusedEdit(`'${name}' does not hold ${JSON.stringify(value)}`);
      if (place >= items.length) throw outOfBounds(place, items.length);
      doc.getMovableList(path).delete(place, 1);
      return `Removed item ${place} from '${name}' of block '${label}'`;
    }
  }
};
