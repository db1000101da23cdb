import type { BlockSchema, Field, ItemSchema, PlainSchema } from "../../../protocol/block-schema.ts";
import { excerpt, plain, quote, quoteJson } from "../../../shared/quote.ts";
import { maxShownFields } from "../../bounds.ts";

/**
 * What a block's schema declares, in words: for prompts and for errors. Names and descriptions come from whoever made the
 * block, so they stand on one line, quoted where they are more than plain words (S2).
 */
export type DeclaredField = Pick<Field, "name" | "description" | "required" | "readOnly"> & {
  type: string;
  /** In place of the type: what a JSON schema takes by values or by other schemas, as `choicesOf` words it. */
  choices?: string | undefined;
};

const nameCharacters = 64;
const descriptionCharacters = 100;
const choiceCharacters = 40;
const mostChoices = 8;
const combinators = ["anyOf", "oneOf", "allOf", "not", "if", "$ref"];

/** The fields of a log's entries; a name alone stands for a text. */
export const entryFields = (schema: { entryFields: (string | Field)[] }): Field[] =>
  schema.entryFields.map((field) => (typeof field === "string" ? { name: field, type: "text" } : field));

const typeOf = (schema: unknown): string => {
  const type = typeof schema === "object" && schema !== null && "type" in schema ? schema.type : undefined;
  if (typeof type === "string") return type;
  return Array.isArray(type) ? type.join(" or ") : "any value";
};

const choice = (value: unknown): string => {
  if (typeof value === "string") return quote(excerpt(value, choiceCharacters));
  const json = quoteJson(value);
  return json.length <= choiceCharacters ? json : quote(excerpt(json, choiceCharacters));
};

const choicesOf = (schema: unknown): string | undefined => {
  const rules = new Map<string, unknown>(typeof schema === "object" && schema !== null ? Object.entries(schema) : []);
  const values = rules.has("const") ? [rules.get("const")] : rules.get("enum");
  if (Array.isArray(values)) {
    const more = values.length > mostChoices ? [`${values.length - mostChoices} more`] : [];
    return `one of ${[...values.slice(0, mostChoices).map(choice), ...more].join(", ")}`;
  }
  const isCombined = !rules.has("type") && combinators.some((name) => rules.has(name));
  return isCombined ? "by its schema: block_load with schema: true shows it" : undefined;
};

const textIn = (schema: unknown, name: string): string | undefined => {
  const entries = typeof schema === "object" && schema !== null ? new Map(Object.entries(schema)) : new Map();
  const text: unknown = entries.get(name);
  return typeof text === "string" ? text : undefined;
};

/** The fields of a list's items; undefined where these are no objects of declared fields. */
export const itemFields = (schema: ItemSchema | undefined): DeclaredField[] | undefined => {
  if (schema === undefined) return undefined;
  if (schema.type === "map" && Array.isArray(schema.fields)) return schema.fields as Field[];
  if (!("properties" in schema)) return undefined;
  const { properties, required } = schema;
  if (typeof properties !== "object" || properties === null) return undefined;
  return Object.entries(properties).map(([name, property]) => ({
    ...{ name, type: typeOf(property), description: textIn(property, "description") },
    choices: choicesOf(property),
    ...{ required: Array.isArray(required) && required.includes(name) },
  }));
};

/** A field's name with what it holds. */
export const fieldFacts = ({ name, type, choices, required, readOnly }: DeclaredField): string => {
  const facts = [choices ?? plain(type), ...(required ? ["required"] : []), ...(readOnly ? ["read-only"] : [])];
  return `${plain(excerpt(name, nameCharacters))} (${facts.join(", ")})`;
};

/** The same with what it is for. */
const described = (field: DeclaredField): string => {
  const { description = "" } = field;
  return `${fieldFacts(field)}${description === "" ? "" : `: ${plain(excerpt(description, descriptionCharacters))}`}`;
};

const plainLine = (schema: PlainSchema, all: (fields: DeclaredField[]) => string): string | undefined => {
  switch (schema.type) {
    case "text":
      return undefined;
    case "map":
      return `fields: ${all(schema.fields)}`;
    case "log":
      return `entry fields: ${all(entryFields(schema))}`;
    case "list": {
      const fields = itemFields(schema.itemSchema);
      if (fields) return `item fields: ${all(fields)}`;
      return `items: ${choicesOf(schema.itemSchema) ?? plain(typeOf(schema.itemSchema))}`;
    }
  }
};

/** The lines that say what a block may hold; none for a text. Those of `maxShownFields` fields at most. */
export const fieldLines = (schema: BlockSchema): string[] => {
  let left = maxShownFields;
  const all = (fields: DeclaredField[]): string => {
    const shown = fields.slice(0, left);
    left -= shown.length;
    const more = fields.length - shown.length;
    return [...shown.map(described), ...(more === 0 ? [] : [`${more} more`])].join(" · ") || "none";
  };
  if (schema.type !== "composite") return [plainLine(schema, all) ?? []].flat();
  return schema.sections.map(({ schema: part, ...section }) => {
    const line = plainLine(part, all);
    return `section ${described({ ...section, type: part.type })}${line === undefined ? "" : ` — ${line}`}`;
  });
};
