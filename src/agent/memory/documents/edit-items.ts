import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import type { PlainSchema } from "../../../protocol/block-schema.ts";
import { readItems, storedItem } from "./cells.ts";
import { checkFields, checkItem } from "./check-value.ts";
import { entryFields, isObject } from "./in-words.ts";
import type { Editing } from "./permission.ts";
import { outOfBounds, refusedEdit } from "./refused-edit.ts";

export type ItemOperation = Extract<
  ContentOperation,
  { op: "push_item" | "insert_item" | "set_item" | "delete_item" | "move_item" }
>;

/** Changes a list. Answers what it did, in words. */
export const editItems = (
  { doc, newKey, label }: Editing,
  path: string,
  operation: ItemOperation,
  { itemSchema }: Extract<PlainSchema, { type: "list" }>,
): string => {
  const list = doc.getMovableList(path);
  const { length } = list;
  const within = (index: number, most: number): void => {
    if (index >= most) throw outOfBounds(index, length);
  };
  switch (operation.op) {
    case "push_item":
    case "insert_item": {
      const index = operation.op === "push_item" ? length : operation.index;
      within(index, length + 1);
      list.insert(index, storedItem({ key: newKey(), json: JSON.stringify(checkItem(itemSchema, operation.item)) }));
      return `Inserted item ${index} into block '${label}'`;
    }
    case "set_item": {
      const { index } = operation;
      within(index, length);
      const key = readItems(doc, path)[index]?.key ?? newKey();
      list.set(index, storedItem({ key, json: JSON.stringify(checkItem(itemSchema, operation.item)) }));
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
export const pushEntry = (
  { doc, newKey, label, writer }: Editing,
  path: string,
  schema: Extract<PlainSchema, { type: "log" }>,
  entry: Json,
): string => {
  const fields = entryFields(schema);
  const given = typeof entry === "string" ? { [fields[0]?.name ?? "message"]: entry } : entry;
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
  const list = doc.getMovableList(path);
  list.push(storedItem({ key: newKey(), json: JSON.stringify({ ...stamps, ...own }) }));
  return `Appended an entry to block '${label}'`;
};
