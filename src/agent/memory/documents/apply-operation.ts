import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import type { PlainSchema } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { type Cell, declaredSections, type Held, type Item, type Part } from "./cells.ts";
import { editText } from "./edit-text.ts";
import { requireSystem, rules, type Writer } from "./permission.ts";
import type { Splice } from "./text-changes.ts";
import {
  checkEntry,
  checkField,
  checkItem,
  checkLength,
  counted,
  noSuchField,
  noSuchSection,
  refusedEdit,
} from "./values.ts";

/** An edit that is being made, on behalf of somebody. */
export type Editing = {
  writer: Writer;
  label: string;
  /** A key that no item of the document has. */
  newKey: () => number;
};

/** The one cell that an operation changes. Throws where there is none, or where the writer may not change it. */
export const cellFor = (parts: Part[], operation: ContentOperation, writer: Writer): Cell => {
  const { op, section } = operation;
  const sections = declaredSections(parts);
  const names = sections.map(({ name }) => name);
  if (section === undefined && names.length > 0) {
    throw refusedEdit(`${op} needs a section of this composite block: ${names.join(", ")}`);
  }
  const part = parts.find(({ name }) => name === section);
  if (!part) throw noSuchSection(section ?? "", sections);
  if (part.readOnly) requireSystem(writer, `Section '${section}'`);
  const { type } = part.schema;
  if (rules[op].on !== type) {
    const taken = Object.entries(rules).filter(([, { on }]) => on === type);
    throw refusedEdit(`${op} does not apply to a ${type}; it takes ${taken.map(([name]) => name).join(", ")}`);
  }
  const name = "field" in operation ? operation.field : "";
  const cell = part.cells.find(({ field }) => field.name === name);
  if (!cell) {
    const fields = part.cells.map(({ field }) => field);
    throw noSuchField(name, fields);
  }
  if (cell.readOnly) requireSystem(writer, `Field '${name}'`);
  const wanted = rules[op].field;
  if (wanted !== undefined && cell.field.type !== wanted) {
    throw refusedEdit(`${op} takes a ${wanted} field; '${name}' is a ${cell.field.type}`);
  }
  return cell;
};

/** Sets a map's field; `null` clears it. Throws where the field does not take the value. */
export const setField = ({ field, empty }: Cell, now: Held, value: Json, newKey: () => number): Held => {
  if (value === null) {
    if (field.required) throw refusedEdit(`Field '${field.name}' is required`);
    return empty;
  }
  checkField(field, value);
  if (field.type === "counter") return counted(field.name, Number(value));
  if (!Array.isArray(value)) return JSON.stringify(value);
  checkLength("list", value.length);
  // An item that stays keeps its key: a merge must not take it for a new one.
  const known = Array.isArray(now) ? [...now] : [];
  return value.map((item) => {
    const json = JSON.stringify(item);
    const place = known.findIndex((each) => each.json === json);
    return (place < 0 ? undefined : known.splice(place, 1)[0]) ?? { key: newKey(), json };
  });
};

/** An item as a list or log keeps it. Throws where it breaks the schema. */
export const newItem = (schema: PlainSchema, value: Json, { writer, newKey }: Editing, key?: number): Item => {
  const json = (kept: Json): Item => ({ key: key ?? newKey(), json: JSON.stringify(kept) });
  if (schema.type === "list") return json(checkItem(schema.itemSchema, value));
  return json(schema.type === "log" ? checkEntry(schema, value, writer) : value);
};

/** Applies an operation to a cell's content; `message` tells in words what it did. */
export const changeOf = (
  cell: Cell,
  now: Held,
  operation: ContentOperation,
  editing: Editing,
): { next: Held; message: string; splices?: Splice[] } => {
  const { label, newKey } = editing;
  const { name } = cell.field;
  const items = Array.isArray(now) ? now : [];
  const within = (index: number, length = items.length): number => {
    if (index < length) return index;
    throw refusedEdit(`Index ${index} out of bounds (len=${items.length})`);
  };
  const itemOf = (value: Json, key?: number): Item => newItem(cell.schema, value, editing, key);
  switch (operation.op) {
    case "set_text":
    case "append_text":
    case "replace_text":
    case "edit_range":
    case "patch":
      return editText(typeof now === "string" ? now : "", operation, label);
    case "set_field": {
      const done = operation.value === null ? "Cleared" : "Set";
      return { next: setField(cell, now, operation.value, newKey), message: `${done} '${name}' of block '${label}'` };
    }
    case "increment": {
      const next = counted(name, Number(now) + operation.by);
      return { next, message: `Incremented '${name}' of block '${label}' by ${operation.by}: it is ${next}` };
    }
    case "append_to_list":
      return { next: [...items, itemOf(operation.value)], message: `Appended to '${name}' of block '${label}'` };
    case "append_log_entry":
      return { next: [...items, itemOf(operation.entry)], message: `Appended an entry to block '${label}'` };
    case "push_item":
    case "insert_item": {
      const index = within(operation.op === "push_item" ? items.length : operation.index, items.length + 1);
      const next = items.toSpliced(index, 0, itemOf(operation.item));
      return { next, message: `Inserted item ${index} into block '${label}'` };
    }
    case "set_item": {
      const index = within(operation.index);
      const next = items.with(index, itemOf(operation.item, items[index]?.key));
      return { next, message: `Set item ${index} of block '${label}'` };
    }
    case "delete_item": {
      const index = within(operation.index);
      return { next: items.toSpliced(index, 1), message: `Deleted item ${index} of block '${label}'` };
    }
    case "remove_from_list": {
      const { value } = operation;
      const index = operation.index ?? items.findIndex(({ json }) => sameJson(JSON.parse(json), value));
      if (index < 0) throw refusedEdit(`'${name}' does not hold that value: load the block, and give its index`);
      const next = items.toSpliced(within(index), 1);
      return { next, message: `Removed item ${index} from '${name}' of block '${label}'` };
    }
    case "move_item": {
      const [from, to] = [within(operation.from), within(operation.to)];
      const next = items.toSpliced(from, 1).toSpliced(to, 0, ...items.slice(from, from + 1));
      return { next, message: `Moved item ${from} of block '${label}' to ${to}` };
    }
  }
};
