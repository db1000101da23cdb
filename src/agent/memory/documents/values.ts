import { z } from "zod";
import type { Json } from "../../../protocol/block.ts";
import { type Field, type FieldType, type ItemSchema, maxBlockCharacters } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { schemaIssues } from "../../../shared/json-schema.ts";

/** Values of blocks: how they are quoted, checked, and refused. */

/** An edit that does not apply to the block as it is. */
export const refusedEdit = (detail: string): ColloquyError => new ColloquyError("edit_refused", detail);

export const countedTooFar = (name: string): ColloquyError =>
  refusedEdit(`Field '${name}' cannot count that far: set it to a smaller number`);

/** The text would be longer than any block may be. Checked before the text is built. */
export const textTooLong = (length: number): ColloquyError =>
  new ColloquyError(
    "text_too_long",
    `The text would have ${length} characters; a block holds at most ${maxBlockCharacters} (maxBlockCharacters)`,
  );

/** The list would be longer than any list may be. Checked before the list is built. */
export const tooManyItems = (items: number, most: number, bound: string): ColloquyError =>
  new ColloquyError("limit_reached", `${items} are more than ${most} (${bound}): delete some first`);

export const outOfBounds = (index: number, length: number): ColloquyError =>
  refusedEdit(`Index ${index} out of bounds (len=${length})`);

export const noSuchField = (name: string): ColloquyError => refusedEdit(`Field not found: ${name}`);

const longestQuote = 200;

/** A text as messages quote it: what is long is cut. */
export const quoted = (text: string): string => {
  if (text.length <= longestQuote) return text;
  const cut = text.slice(0, longestQuote);
  return `${cut.isWellFormed() ? cut : cut.slice(0, -1)}…`;
};

/** A value as blocks show it: texts as they are, objects with their keys in order. */
export const inWords = (value: Json): string => {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return `[${value.map(inWords).join(", ")}]`;
  if (isObject(value)) {
    const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
    return `{${entries.map(([key, inner]) => `${key}: ${inWords(inner)}`).join(", ")}}`;
  }
  return String(value);
};

export const isObject = (value: Json | undefined): value is Record<string, Json> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A value's own field: a field may be named `constructor`. Undefined where the value is no object or lacks it. */
export const ownField = (value: Json | undefined, name: string): Json | undefined =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** A counter counts as far as whole numbers are exact. */
export const maxCount = Number.MAX_SAFE_INTEGER;

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
