import { z } from "zod";
import type { Json } from "../../../protocol/block.ts";
import type { Field, FieldType, ItemSchema } from "../../../protocol/block-schema.ts";
import { schemaIssues } from "../../../shared/json-schema.ts";
import { maxCount } from "./cells.ts";
import { inWords, isObject, ownField } from "./in-words.ts";
import { noSuchField, refusedEdit } from "./refused-edit.ts";

const Time = z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]);

const kinds: Record<FieldType, { what: string; fits: (value: Json) => boolean }> = {
  text: { what: "a text", fits: (value) => typeof value === "string" },
  number: { what: "a number", fits: (value) => typeof value === "number" && Number.isFinite(value) },
  boolean: { what: "true or false", fits: (value) => typeof value === "boolean" },
  list: { what: "a list", fits: Array.isArray },
  counter: {
    what: `a number of at most ${maxCount} (maxCount)`,
    fits: (value) => typeof value === "number" && Math.abs(value) <= maxCount,
  },
  timestamp: { what: "an ISO 8601 time", fits: (value) => Time.safeParse(value).success },
};

const brief = (value: Json): string => {
  const words = typeof value === "string" ? JSON.stringify(value) : inWords(value);
  return words.length > 60 ? `${words.slice(0, 60)}…` : words;
};

/** Throws where the value is not of the field's type. */
export const checkField = ({ name, type }: Field, value: Json): void => {
  const { what, fits } = kinds[type];
  if (!fits(value)) throw refusedEdit(`Field '${name}' takes ${what}, not ${brief(value)}`);
};

/** An object of declared fields only, with the defaults of those that it leaves out. */
export const checkFields = (fields: Field[], value: Json, what: string): Record<string, Json> => {
  if (!isObject(value)) throw refusedEdit(`${what} must be an object of fields, not ${brief(value)}`);
  const unknown = Object.keys(value).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw noSuchField(unknown);
  const entries = fields.flatMap((field): [string, Json][] => {
    const given = ownField(value, field.name) ?? field.default;
    if (given === undefined || given === null) {
      if (field.required) throw refusedEdit(`Field '${field.name}' is required`);
      return [];
    }
    checkField(field, given);
    return [[field.name, given]];
  });
  return Object.fromEntries(entries);
};

/** The item as it is kept. Throws where it breaks the list's `itemSchema`. */
export const checkItem = (schema: ItemSchema | undefined, item: Json): Json => {
  if (schema === undefined) return item;
  if ("fields" in schema && schema.type === "map" && Array.isArray(schema.fields)) {
    return checkFields(schema.fields as Field[], item, "An item");
  }
  if (schema.type === "text") {
    if (typeof item !== "string") throw refusedEdit(`An item must be a text, not ${brief(item)}`);
    return item;
  }
  const [issue] = schemaIssues(schema, item);
  if (issue) throw refusedEdit(`The item breaks its schema: ${issue.path || "it"}: ${issue.message}`);
  return item;
};
