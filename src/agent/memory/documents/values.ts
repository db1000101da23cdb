import * as z from "zod";
import type { Json } from "../../../protocol/block.ts";
import { type Field, type ItemSchema, maxListItems, maxLogEntries } from "../../../protocol/block-schema.ts";
import { Label } from "../../../protocol/text.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { schemaIssues } from "../../../shared/json-schema.ts";
import { maxShownFields } from "../../bounds.ts";
import { type DeclaredField, entryFields, fieldFacts, itemFields } from "./declared-fields.ts";
import type { Writer } from "./permission.ts";

/** Values of blocks: how they are quoted, checked, and refused. */

/** An edit that does not apply to the block as it is. */
export const refusedEdit = (detail: string): ColloquyError => new ColloquyError("edit_refused", detail);

/** Throws where a list or log would be longer than any may be. */
export const checkLength = (type: string, length: number): void => {
  const [most, bound] = type === "log" ? [maxLogEntries, "maxLogEntries"] : [maxListItems, "maxListItems"];
  if (length > most) {
    throw new ColloquyError("limit_reached", `${length} are more than ${most} (${bound}): delete some first`);
  }
};

/** Which fields there are, or which sections. */
const thereAre = (declared: DeclaredField[], what: "fields" | "sections" = "fields"): string => {
  const left = declared.length - maxShownFields;
  const names = declared.slice(0, maxShownFields).map(fieldFacts);
  return `The ${what} are: ${[...names, ...(left > 0 ? [`and ${left} more`] : [])].join(", ") || "none"}`;
};

const notFound = (name: string, there: string): ColloquyError =>
  refusedEdit(`Field not found${Label.safeParse(name).success ? `: ${name}` : ""}. ${there}`);

/** A field that is not declared. Of what was given, only a name that a field may have is repeated. */
export const noSuchField = (name: string, declared: DeclaredField[]): ColloquyError =>
  notFound(name, thereAre(declared));

/** The same of a section of a composite. */
export const noSuchSection = (name: string, declared: DeclaredField[]): ColloquyError => {
  const there = declared.length > 0 ? thereAre(declared, "sections") : "The block has no sections: leave section out";
  return notFound(name, there);
};

/** Lines as an editor counts them: what a last line break ends is no line. */
export const linesOf = (text: string): string[] => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

/** A text as messages quote it: what is long is cut. */
export const quoted = (text: string, longest = 200): string => {
  if (text.length <= longest) return text;
  const cut = text.slice(0, longest);
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
const maxCount = Number.MAX_SAFE_INTEGER;

/** To nine decimals: fractions add up with an error in their last digits, which depends on the order. Never -0. */
export const rounded = (count: number): number => Number(count.toFixed(9)) || 0;

/** A counter's new sum. Throws where it is too large. */
export const counted = (name: string, count: number): number => {
  if (Math.abs(count) <= maxCount) return rounded(count);
  throw refusedEdit(`Field '${name}' cannot count that far: set it to a smaller number`);
};

const time = z.union([z.iso.datetime({ offset: true, local: true }), z.iso.date()]);
const values: Record<Field["type"], [what: string, type: z.ZodType]> = {
  text: ["a text", z.string()],
  number: ["a number", z.number()],
  boolean: ["true or false", z.boolean()],
  list: ["a list", z.array(z.unknown())],
  counter: [`a number of at most ${maxCount} (maxCount)`, z.number().min(-maxCount).max(maxCount)],
  timestamp: ["an ISO 8601 time, such as 2026-02-18T15:07:00Z", time],
};

/** Names the kind of a value, in place of the value, which may be a secret. */
const kindOf = (value: Json): string => {
  if (typeof value === "string") return "a text";
  if (typeof value === "number") return "a number";
  if (typeof value === "boolean") return "true or false";
  if (Array.isArray(value)) return "a list";
  return value === null ? "null" : "an object";
};

/** Throws where the value is not of the field's type. */
export const checkField = ({ name, type }: Field, value: Json): void => {
  const [what, Value] = values[type];
  if (Value.safeParse(value).success) return;
  const kind = kindOf(value);
  const isLike = what.startsWith(kind) || (type === "timestamp" && kind === "a text");
  throw refusedEdit(`Field '${name}' takes ${what}${isLike ? "" : `, not ${kind}`}`);
};

/** An object of declared fields only, with the defaults of those that it leaves out. The runtime
 * sets its fields. */
export const checkFields = (
  declared: Field[],
  value: Json,
  what: string,
  runtimeFields: Field[] = [],
): Record<string, Json> => {
  if (!isObject(value)) {
    throw refusedEdit(`${what} must be an object of fields, not ${kindOf(value)}. ${thereAre(declared)}`);
  }
  const fields = [...runtimeFields, ...declared];
  const unknown = Object.keys(value).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw noSuchField(unknown, declared);
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
    if (typeof item !== "string") throw refusedEdit(`An item must be a text, not ${kindOf(item)}`);
    return item;
  }
  const [issue] = schemaIssues(schema, item);
  if (issue) {
    const fields = itemFields(schema);
    const there = fields ? `. ${thereAre(fields)}` : "";
    throw refusedEdit(`The item breaks its schema: ${issue.path || "it"}: ${issue.message.replace(/\.$/, "")}${there}`);
  }
  return item;
};

const stamps: Field[] = [
  { name: "timestamp", type: "timestamp" },
  { name: "agent", type: "text" },
];

/** A log's entry as it is kept: with when it was made and by whom. Nobody but the system says that it was another. */
export const checkEntry = (schema: Parameters<typeof entryFields>[0], entry: Json, writer: Writer): Json => {
  const fields = entryFields(schema);
  const given: Json = typeof entry === "string" ? { [fields[0]?.name ?? "message"]: entry } : entry;
  if (!isObject(given)) throw refusedEdit(`An entry must be a text, or an object of fields. ${thereAre(fields)}`);
  const timestamp = given.timestamp ?? writer.now;
  const agent = writer.kind === "system" ? (given.agent ?? null) : writer.name;
  return checkFields(fields, { ...given, timestamp, agent }, "An entry", stamps);
};
