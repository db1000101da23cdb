import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import { type BlockSchema, maxListItems, maxLogEntries, type PlainSchema } from "../../../protocol/block-schema.ts";
import { editPart } from "./apply-operation.ts";
import { contentOf } from "./cells.ts";
import { checkSize, keepBounds } from "./check-content.ts";
import { record } from "./document.ts";
import type { Commit } from "./edit-document.ts";
import { partsOf, valueOfPart } from "./parts.ts";
import type { Writer } from "./permission.ts";
import { checkFields, isObject, noSuchField, refusedEdit, tooManyItems } from "./values.ts";

const wrongContent = ({ type }: BlockSchema, what: string) => refusedEdit(`The content of a ${type} block is ${what}`);

const itemsIn = (schema: PlainSchema, content: Json, what: string, most: number, bound: string): Json[] => {
  if (!Array.isArray(content)) throw wrongContent(schema, `a list of ${what}`);
  if (content.length > most) throw tooManyItems(content.length, most, bound);
  return content;
};

/** The operations that make a part's first content: what is given, or the defaults of its fields. */
const fillingOf = (schema: PlainSchema, content: Json | undefined): ContentOperation[] => {
  if (schema.type === "map") {
    const given =
      content === undefined
        ? schema.fields.flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, value] as const]))
        : Object.entries(checkFields(schema.fields, content, "The content of a map block"));
    return given.map(([field, value]) => ({ op: "set_field", field, value }));
  }
  if (content === undefined) return [];
  switch (schema.type) {
    case "text":
      if (typeof content !== "string") throw wrongContent(schema, "a text");
      return [{ op: "append_text", text: content }];
    case "list":
      return itemsIn(schema, content, "items", maxListItems, "maxListItems").map((item) => ({ op: "push_item", item }));
    case "log":
      return itemsIn(schema, content, "entries", maxLogEntries, "maxLogEntries").map((entry) => {
        if (typeof entry !== "string" && !isObject(entry)) throw refusedEdit("An entry must be an object");
        return { op: "append_log_entry", entry };
      });
  }
};

type FirstContent = { schema: BlockSchema; content?: Json | undefined; charLimit: number; label: string; now: string };

/** Puts into an empty document what its block is created with, as its first version. Answers the content too. */
export const fillDocument = (
  doc: LoroDoc,
  { schema, content, charLimit, label, now }: FirstContent,
): { value: Json; commit: Commit } => {
  const takeChanges = record(doc);
  const writer: Writer = { kind: "system", now };
  let keys = 0;
  const newKey = (): number => {
    keys += 1;
    return keys;
  };
  const parts = partsOf(schema);
  if (schema.type === "composite" && content !== undefined) {
    if (!isObject(content)) throw wrongContent(schema, "an object of sections");
    const unknown = Object.keys(content).find((name) => !parts.some((part) => part.name === name));
    if (unknown !== undefined) throw noSuchField(unknown);
  }
  for (const part of parts) {
    for (const operation of fillingOf(part.schema, valueOfPart(part, content))) {
      editPart({ doc, writer, label, newKey }, part, operation);
    }
  }
  keepBounds(doc, schema);
  const value = contentOf(doc, schema);
  checkSize(schema, value, charLimit);
  const { update, state } = takeChanges();
  return { value, commit: { version: 1, kind: "edit", operations: [], state, update } };
};
