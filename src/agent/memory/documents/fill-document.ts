import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import { type BlockSchema, maxListItems, maxLogEntries, type PlainSchema } from "../../../protocol/block-schema.ts";
import { schemaProblems } from "../../../shared/check-json-schema.ts";
import { contentOf, itemsOf, prefixOf, textOf } from "./cells.ts";
import { checkSize, keepBounds, sizeOf } from "./check-content.ts";
import { checkField, checkFields } from "./check-value.ts";
import { setField } from "./edit-fields.ts";
import { editItems, pushEntry } from "./edit-items.ts";
import { isObject, ownField } from "./in-words.ts";
import type { Editing } from "./permission.ts";
import { noSuchField, refusedEdit, tooManyItems } from "./refused-edit.ts";
import { spliceText } from "./write-cells.ts";

const wrongContent = (schema: PlainSchema | BlockSchema, what: string) =>
  refusedEdit(`The content of a ${schema.type} block is ${what}`);

const fillPlain = (editing: Editing, schema: PlainSchema, prefix: string, content: Json | undefined): void => {
  const { doc } = editing;
  switch (schema.type) {
    case "text":
      if (content === undefined) return;
      if (typeof content !== "string") throw wrongContent(schema, "a text");
      spliceText(doc, textOf(prefix), [{ at: 0, remove: 0, insert: content }]);
      return;
    case "map": {
      const given =
        content === undefined
          ? Object.fromEntries(
              schema.fields.flatMap(({ name, default: value }) => (value === undefined ? [] : [[name, value]])),
            )
          : checkFields(schema.fields, content, "The content of a map block");
      for (const field of schema.fields) {
        const value = ownField(given, field.name);
        if (value !== undefined) setField(editing, prefix, field, value);
      }
      return;
    }
    case "list":
      if (content === undefined) return;
      if (!Array.isArray(content)) throw wrongContent(schema, "a list of items");
      if (content.length > maxListItems) throw tooManyItems(content.length, maxListItems, "maxListItems");
      for (const item of content) editItems(editing, itemsOf(prefix), { op: "push_item", item }, schema);
      return;
    case "log":
      if (content === undefined) return;
      if (!Array.isArray(content)) throw wrongContent(schema, "a list of entries");
      if (content.length > maxLogEntries) throw tooManyItems(content.length, maxLogEntries, "maxLogEntries");
      for (const entry of content) pushEntry(editing, itemsOf(prefix), schema, entry);
  }
};

/** Puts into an empty document what its block is created with: the content, or the defaults of its fields. */
export const fillDocument = (
  doc: LoroDoc,
  {
    schema,
    content,
    charLimit,
    label,
    now,
  }: { schema: BlockSchema; content?: Json; charLimit: number; label: string; now: string },
): { value: Json; size: number } => {
  let keys = 0;
  const newKey = (): number => {
    keys += 1;
    return keys;
  };
  const editing: Editing = { doc, writer: { kind: "system", now }, label, newKey };
  if (schema.type === "composite") {
    if (content !== undefined && !isObject(content)) throw wrongContent(schema, "an object of sections");
    const unknown = Object.keys(content ?? {}).find(
      (name) => !schema.sections.some((section) => section.name === name),
    );
    if (unknown !== undefined) throw noSuchField(unknown);
    for (const { name, schema: part } of schema.sections)
      fillPlain(editing, part, prefixOf(name), ownField(content, name));
  } else fillPlain(editing, schema, "", content);
  keepBounds(doc, schema);
  const value = contentOf(doc, schema);
  const size = sizeOf(schema, value);
  checkSize(size, charLimit, () => 0);
  return { value, size };
};

/** Throws what is wrong within a schema: defaults that are not of their fields' types, schemas of items that cannot be applied. */
export const checkBlockSchema = (schema: BlockSchema): void => {
  const parts = schema.type === "composite" ? schema.sections.map((section) => section.schema) : [schema];
  for (const part of parts) {
    if (
      part.type === "list" &&
      part.itemSchema !== undefined &&
      !["map", "text"].includes(String(part.itemSchema.type))
    ) {
      const [problem] = schemaProblems(part.itemSchema, { ofObject: false });
      if (problem) throw refusedEdit(`itemSchema ${problem.path}: ${problem.message}`);
    }
    if (part.type !== "map") continue;
    for (const field of part.fields) {
      if (field.default !== undefined && field.default !== null) checkField(field, field.default);
    }
  }
};
