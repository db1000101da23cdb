import type { Field, PlainSchema } from "../../../protocol/block-schema.ts";

/** The fields of a log's entries; a name alone stands for a text. */
export const entryFields = (schema: Extract<PlainSchema, { type: "log" }>): Field[] =>
  schema.entryFields.map((field) => (typeof field === "string" ? { name: field, type: "text" } : field));
