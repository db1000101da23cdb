import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation, OperationResult } from "../../../protocol/block-operation.ts";
import type { BlockSchema, PlainSchema } from "../../../protocol/block-schema.ts";
import { itemsOf, prefixOf, readText, textOf } from "./cells.ts";
import { editFields, type FieldOperation } from "./edit-fields.ts";
import { editItems, type ItemOperation, pushEntry } from "./edit-items.ts";
import { editText, type TextOperation } from "./edit-text.ts";
import { checkPermission, type Editing, requireSystem, type Writer } from "./permission.ts";
import { noSuchField, refusedEdit } from "./refused-edit.ts";
import { spliceText } from "./write-cells.ts";

const taken = {
  text: ["set_text", "append_text", "replace_text", "edit_range", "patch"],
  map: ["set_field", "append_to_list", "remove_from_list", "increment"],
  list: ["push_item", "insert_item", "set_item", "delete_item", "move_item"],
  log: ["append_log_entry"],
} as const satisfies Record<PlainSchema["type"], readonly ContentOperation["op"][]>;

const isTextOperation = (operation: ContentOperation): operation is TextOperation =>
  (taken.text as readonly string[]).includes(operation.op);
const isFieldOperation = (operation: ContentOperation): operation is FieldOperation =>
  (taken.map as readonly string[]).includes(operation.op);
const isItemOperation = (operation: ContentOperation): operation is ItemOperation =>
  (taken.list as readonly string[]).includes(operation.op);

/** The part of the block that an operation is about, and what its containers' names begin with. */
const partOf = (schema: BlockSchema, operation: ContentOperation, writer: Writer): [PlainSchema, string] => {
  const { section: name, op } = operation;
  if (schema.type !== "composite") {
    if (name !== undefined) throw noSuchField(name);
    return [schema, ""];
  }
  const names = schema.sections.map((section) => section.name).join(", ");
  if (name === undefined) throw refusedEdit(`${op} needs a section of this composite block: ${names}`);
  const section = schema.sections.find((each) => each.name === name);
  if (!section) throw noSuchField(name);
  if (section.readOnly) requireSystem(writer, `Section '${name}'`);
  return [section.schema, prefixOf(name)];
};

const messageOf = (editing: Editing, schema: PlainSchema, prefix: string, operation: ContentOperation): string => {
  const { doc, label } = editing;
  if (schema.type === "text" && isTextOperation(operation)) {
    const path = textOf(prefix);
    const { splices, message } = editText(readText(doc, path), operation, label);
    spliceText(doc, path, splices);
    return message;
  }
  if (schema.type === "map" && isFieldOperation(operation)) return editFields(editing, schema, prefix, operation);
  if (schema.type === "list" && isItemOperation(operation)) {
    return editItems(editing, itemsOf(prefix), operation, schema);
  }
  if (schema.type === "log" && operation.op === "append_log_entry") {
    return pushEntry(editing, itemsOf(prefix), schema, operation.entry as Json);
  }
  throw refusedEdit(`${operation.op} does not apply to a ${schema.type}; it takes ${taken[schema.type].join(", ")}`);
};

/** Makes one change. Throws what refuses it; the document may then be changed in part, and is not to be kept. */
export const applyOperation = (editing: Editing, schema: BlockSchema, operation: ContentOperation): OperationResult => {
  checkPermission(operation.op, editing.writer);
  const [part, prefix] = partOf(schema, operation, editing.writer);
  return { op: operation.op, message: messageOf(editing, part, prefix, operation) };
};
