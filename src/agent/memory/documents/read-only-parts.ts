import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema } from "../../../protocol/block-schema.ts";
import { ownField } from "./own-field.ts";

const ofPlain = (schema: PlainSchema, value: Json | undefined): [string, Json | undefined][] =>
  schema.type === "map"
    ? schema.fields.flatMap(({ name, readOnly }) => (readOnly ? [[name, ownField(value, name)]] : []))
    : [];

/** What of a value agents may not change, by section and field. */
export const readOnlyParts = (schema: BlockSchema, value: Json): Record<string, Json | undefined> => {
  if (schema.type !== "composite") return Object.fromEntries(ofPlain(schema, value));
  const parts = schema.sections.flatMap(({ name, schema: of, readOnly }): [string, Json | undefined][] => {
    const held = ownField(value, name);
    return readOnly ? [[name, held]] : ofPlain(of, held).map(([field, inner]) => [`${name}:${field}`, inner]);
  });
  return Object.fromEntries(parts);
};
