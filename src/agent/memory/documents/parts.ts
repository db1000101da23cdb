import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import type { BlockSchema, Field, PlainSchema } from "../../../protocol/block-schema.ts";
import { ownField } from "./values.ts";

type Kind = PlainSchema["type"];
export type SchemaOf<Type extends Kind> = Extract<PlainSchema, { type: Type }>;

/** A section of a composite, or the whole of any other block. The names of its containers begin with `prefix`. */
export type Part = { name: string | undefined; schema: PlainSchema; readOnly: boolean; prefix: string };

export const partsOf = (schema: BlockSchema): Part[] =>
  schema.type === "composite"
    ? schema.sections.map(({ readOnly = false, ...section }) => ({ ...section, readOnly, prefix: `${section.name}:` }))
    : [{ name: undefined, schema, readOnly: false, prefix: "" }];

/** A part's value within the value of its block. */
export const valueOfPart = ({ name }: Part, value: Json | undefined): Json | undefined =>
  name === undefined ? value : ownField(value, name);

/** The fields of a log's entries; a name alone stands for a text. */
export const entryFields = (schema: SchemaOf<"log">): Field[] =>
  schema.entryFields.map((field) => (typeof field === "string" ? { name: field, type: "text" } : field));

/** The kind of part that an operation is about, and the right that it needs. */
export const operations = {
  set_text: { on: "text", right: "Overwrite" },
  append_text: { on: "text", right: "Append" },
  replace_text: { on: "text", right: "Overwrite" },
  edit_range: { on: "text", right: "Overwrite" },
  patch: { on: "text", right: "Overwrite" },
  set_field: { on: "map", right: "Overwrite" },
  append_to_list: { on: "map", right: "Append" },
  remove_from_list: { on: "map", right: "Delete" },
  increment: { on: "map", right: "Overwrite" },
  push_item: { on: "list", right: "Append" },
  insert_item: { on: "list", right: "Append" },
  set_item: { on: "list", right: "Overwrite" },
  delete_item: { on: "list", right: "Delete" },
  move_item: { on: "list", right: "Overwrite" },
  append_log_entry: { on: "log", right: "Append" },
} as const satisfies Record<ContentOperation["op"], { on: Kind; right: "Append" | "Overwrite" | "Delete" }>;

type NameOn<Type extends Kind> = {
  [Name in keyof typeof operations]: (typeof operations)[Name]["on"] extends Type ? Name : never;
}[keyof typeof operations];

export type OperationOn<Type extends Kind> = Extract<ContentOperation, { op: NameOn<Type> }>;

export const isOn = <Type extends Kind>(type: Type, operation: ContentOperation): operation is OperationOn<Type> =>
  operations[operation.op].on === type;
