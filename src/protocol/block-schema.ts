import * as z from "zod";
import { Label, strictComponent } from "./text.ts";

/** The structure of a block's document. It decides which operations the block takes and how it is rendered. */

/** Characters of one block's content at most, and where nothing is said. */
export const maxBlockCharacters = 200_000;
export const defaultBlockCharacters = 5000;
/** Items of one list and entries of one log. */
export const maxListItems = 1000;
export const maxLogEntries = 5000;

/** Text that keeps its meaning in a document: well-formed, no longer than the largest block. */
export const BlockText = z
  .string()
  .refine((text) => text.length <= maxBlockCharacters, {
    error: `must have at most ${maxBlockCharacters} characters (maxBlockCharacters)`,
    params: { code: "text_too_long" },
  })
  .refine((text) => text.isWellFormed(), "must be well-formed Unicode");

const FieldName = Label.refine((name) => name !== "__proto__", "must be another name");
const Description = z.string().max(1000);

/** Refuses a list in which two have the same name. */
const unique = <List extends z.ZodType<(string | { name: string })[]>>(list: List, what: string): List =>
  list.refine(
    (items) => new Set(items.map((item) => (typeof item === "string" ? item : item.name))).size === items.length,
    `must not name a ${what} twice`,
  );

/** The part of a text that is shown; lines count from 1. */
export const Viewport = strictComponent("Viewport", {
  startLine: z.int().min(0).max(1_000_000),
  displayLines: z.int().min(1).max(10_000),
});
export type Viewport = z.infer<typeof Viewport>;

const TextSchema = z.strictObject({ type: z.literal("text"), viewport: Viewport.optional() });

const FieldType = z.enum(["text", "number", "boolean", "list", "counter", "timestamp"]);
export type FieldType = z.infer<typeof FieldType>;

const Field = z.strictObject({
  name: FieldName,
  type: FieldType.default("text"),
  description: Description.optional(),
  required: z.boolean().optional(),
  default: z.json().optional(),
  /** Agents and people of a space may not change it, whatever the block's permission. */
  readOnly: z.boolean().optional(),
});
export type Field = z.infer<typeof Field>;

const MapSchema = z.strictObject({
  type: z.literal("map"),
  fields: unique(z.array(Field).max(64), "field"),
});

/** The schema of a list's items: texts, objects with these fields, or a JSON Schema 2020-12. */
const ItemSchema = z.union([
  z.strictObject({ type: z.literal("text") }),
  MapSchema,
  z
    .record(z.string(), z.json())
    .refine(({ type }) => type !== "text" && type !== "map", "does not have the fields of its type"),
]);
export type ItemSchema = z.infer<typeof ItemSchema>;

const ListSchema = z.strictObject({
  type: z.literal("list"),
  itemSchema: ItemSchema.optional(),
  /** Over it the oldest item goes. */
  maxItems: z.int().min(1).max(maxListItems).optional(),
});

const runtimeFields = ["timestamp", "agent"];
const EntryName = FieldName.refine((name) => !runtimeFields.includes(name), "is a field that the runtime adds");
const EntryField = z.union([EntryName, Field.omit({ default: true, readOnly: true }).extend({ name: EntryName })]);

const LogSchema = z.strictObject({
  type: z.literal("log"),
  /** The number of newest entries that are shown; all are kept. */
  displayLimit: z.int().min(1).max(maxLogEntries).default(20),
  entryFields: unique(z.array(EntryField).min(1).max(32), "field").default(["message"]),
});

export const PlainSchema = z.discriminatedUnion("type", [TextSchema, MapSchema, ListSchema, LogSchema]);
export type PlainSchema = z.infer<typeof PlainSchema>;

const Section = z.strictObject({
  name: FieldName,
  schema: PlainSchema,
  description: Description.optional(),
  /** Agents and people of a space may not change it, whatever the block's permission. */
  readOnly: z.boolean().optional(),
});

const CompositeSchema = z.strictObject({
  type: z.literal("composite"),
  sections: unique(z.array(Section).min(1).max(32), "section"),
});

export const BlockSchema = z
  .discriminatedUnion("type", [TextSchema, MapSchema, ListSchema, LogSchema, CompositeSchema])
  .meta({ id: "BlockSchema" });
export type BlockSchema = z.infer<typeof BlockSchema>;
