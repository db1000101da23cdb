import type { Json } from "../../../protocol/block.ts";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import type { BlockSchema, Field, PlainSchema } from "../../../protocol/block-schema.ts";
import { ownField } from "./in-words.ts";

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

/** The operations that each kind of part takes. */
export const taken = {
  text: ["set_text", "append_text", "replace_text", "edit_range", "patch"],
  map: ["set_field", "append_to_list", "remove_from_list", "increment"],
  list: ["push_item", "insert_item", "set_item", "delete_item", "move_item"],
  log: ["append_log_entry"],
} as const satisfies Record<Kind, readonly ContentOperation["op"][]>;

export type OperationOn<Type extends Kind> = Extract<ContentOperation, { op: (typeof taken)[Type][number] }>;

export const isOn = <Type extends Kind>(type: Type, operation: ContentOperation): operation is OperationOn<Type> =>
  (taken[type] as readonly string[]).includes(operation.op);
