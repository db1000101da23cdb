import type { ToolAnswer } from "../../client/index.ts";
import { titleOf } from "./titles.ts";
import { isRecord } from "./value-layout.ts";

export type Json = Extract<ToolAnswer, { result: unknown }>["result"];

export type Option = { key: string; label: string; hint?: string; value: Json };

/** A field of a form. `path` is the place of its value in the result; it is empty for the result itself. */
export type FormField = {
  path: string[];
  label: string;
  hint?: string;
  isRequired: boolean;
  /** Its content before anybody has touched it. */
  initial: Draft;
} & FieldKind;

/** The content of a field while it is filled in: a text, a tick, or the keys of options. */
export type Draft = string | boolean | readonly string[];

type Limits = { min?: number; max?: number };

export type FieldKind =
  | ({ kind: "text"; input: "text" | "email" | "url"; isLong: boolean } & Limits)
  | ({ kind: "number"; isInteger: boolean } & Limits)
  | { kind: "yes-no" }
  | { kind: "date"; input: "date" | "datetime-local" | "time" }
  | { kind: "one-of"; options: Option[] }
  | ({ kind: "some-of"; options: Option[] } & Limits)
  | ({ kind: "lines" } & Limits)
  | { kind: "json" };

type Schema = Record<string, unknown>;

const maxFields = 60;
const maxDepth = 4;

const textAt = (schema: Schema, key: string): string | undefined => {
  const value = schema[key];
  return typeof value === "string" && value !== "" ? value : undefined;
};

const hintOf = (schema: Schema): { hint?: string } => {
  const hint = textAt(schema, "description");
  return hint === undefined ? {} : { hint };
};

const limits = (schema: Schema, min: string, max: string): Limits => ({
  ...(typeof schema[min] === "number" ? { min: schema[min] } : {}),
  ...(typeof schema[max] === "number" ? { max: schema[max] } : {}),
});

const textOf = (value: unknown): string =>
  isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);

/** The values that an `enum`, or a `oneOf` of constants with titles, allows; null for any other schema. */
const optionsOf = (schema: Schema): Option[] | null => {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.map((value, index) => ({ key: String(index), label: textOf(value), value: value as Json }));
  }
  const cases = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(cases) || !cases.every((one) => isRecord(one) && Object.hasOwn(one, "const"))) return null;
  return cases.map((one: Schema, index) => ({
    key: String(index),
    label: textAt(one, "title") ?? textOf(one.const),
    value: one.const as Json,
    ...hintOf(one),
  }));
};

const dateInputs = { date: "date", "date-time": "datetime-local", time: "time" } as const;

/** A nullable type counts as that type: a field that is left empty is left out of the result. */
const typeOf = ({ type }: Schema): unknown => (Array.isArray(type) ? type.find((one) => one !== "null") : type);

const textKind = (schema: Schema): FieldKind => {
  const format = textAt(schema, "format") ?? "";
  if (format in dateInputs) return { kind: "date", input: dateInputs[format as keyof typeof dateInputs] };
  const input = format === "email" ? "email" : format === "uri" ? "url" : "text";
  const size = limits(schema, "minLength", "maxLength");
  const isLong = (size.max ?? 0) > 200 || format === "textarea";
  return { kind: "text", input, isLong, ...size };
};

const kindOf = (schema: Schema): FieldKind => {
  const options = optionsOf(schema);
  if (options) return { kind: "one-of", options };
  switch (typeOf(schema)) {
    case "boolean":
      return { kind: "yes-no" };
    case "number":
    case "integer":
      return { kind: "number", isInteger: typeOf(schema) === "integer", ...limits(schema, "minimum", "maximum") };
    case "array": {
      const items = isRecord(schema.items) ? schema.items : {};
      const some = optionsOf(items);
      const size = limits(schema, "minItems", "maxItems");
      if (some) return { kind: "some-of", options: some, ...size };
      return typeOf(items) === "string" ? { kind: "lines", ...size } : { kind: "json" };
    }
    case "string":
      return textKind(schema);
    default:
      return typeOf(schema) === undefined && !isRecord(schema.properties) ? textKind(schema) : { kind: "json" };
  }
};

const initialOf = (kind: FieldKind, value: unknown): Draft => {
  if (kind.kind === "yes-no") return value === true;
  if (kind.kind === "one-of") return kind.options.find((option) => option.value === value)?.key ?? "";
  if (kind.kind === "some-of") {
    const chosen: unknown[] = Array.isArray(value) ? value : [];
    return kind.options.filter((option) => chosen.includes(option.value)).map(({ key }) => key);
  }
  if (kind.kind === "lines") return Array.isArray(value) ? value.join("\n") : "";
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
};

type Place = { path: string[]; labels: string[]; isRequired: boolean; depth: number };

const fieldsAt = (schema: Schema, { path, labels, isRequired, depth }: Place): FormField[] => {
  if (isRecord(schema.properties) && depth > 0) {
    const required: unknown[] = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(schema.properties).flatMap(([name, property]) => {
      const inner = isRecord(property) ? property : {};
      const place = {
        path: [...path, name],
        labels: [...labels, textAt(inner, "title") ?? titleOf(name)],
        isRequired: isRequired && required.includes(name),
        depth: depth - 1,
      };
      return fieldsAt(inner, place);
    });
  }
  const kind = kindOf(schema);
  const label = labels.join(" · ") || "Answer";
  return [{ path, label, isRequired, ...hintOf(schema), ...kind, initial: initialOf(kind, schema.default) }];
};

/** The fields that a JSON Schema asks for, in its order. A schema of no object is one field. */
export const fieldsOf = (schema: unknown): FormField[] =>
  fieldsAt(isRecord(schema) ? schema : {}, { path: [], labels: [], isRequired: true, depth: maxDepth }).slice(
    0,
    maxFields,
  );

export const keyOf = ({ path }: FormField): string => path.join(".");

/** The content of a form, by the keys of its fields. */
export type Drafts = Readonly<Record<string, Draft>>;

type Checked = { value: Json | undefined } | { problem: string };

const problem = (words: string): Checked => ({ problem: words });
const missing = problem("Please fill this in.");

/** Checks a number, or how many of a `unit` there are, against its limits. */
const checkSize = (size: number, { min, max }: Limits, unit = ""): Checked | null => {
  const count = (limit: number): string => (unit === "" ? `${limit}` : `${limit} ${unit}${limit === 1 ? "" : "s"}`);
  if (min !== undefined && size < min) return problem(`At least ${count(min)}, please.`);
  if (max !== undefined && size > max) return problem(`At most ${count(max)}, please.`);
  return null;
};

const checkNumber = (text: string, field: Extract<FormField, { kind: "number" }>): Checked => {
  const value = Number(text);
  if (!Number.isFinite(value)) return problem("Please enter a number.");
  if (field.isInteger && !Number.isInteger(value)) return problem("Please enter a whole number.");
  return checkSize(value, field) ?? { value };
};

/** The space checks a pattern, not the page: a pattern from a call could block the page for ever. */
const checkText = (text: string, field: Extract<FormField, { kind: "text" }>): Checked => {
  const size = checkSize([...text].length, field, "character");
  if (size) return size;
  if (field.input === "email" && !/^\S+@\S+\.\S+$/.test(text)) return problem("Please enter an e-mail address.");
  if (field.input === "url" && !URL.canParse(text)) return problem("Please enter an address such as https://…");
  return { value: text };
};

/** A date has no zone. A time of a day is sent with the zone of the person. */
const dateValue = (text: string, input: Extract<FormField, { kind: "date" }>["input"]): string =>
  input === "datetime-local" ? new Date(text).toISOString() : text;

const parseJson = (text: string): Checked => {
  try {
    return { value: JSON.parse(text) as Json };
  } catch {
    return problem("Please enter JSON.");
  }
};

const checkWritten = (field: FormField, text: string): Checked => {
  const trimmed = text.trim();
  if (trimmed === "") return field.isRequired ? missing : { value: undefined };
  switch (field.kind) {
    case "number":
      return checkNumber(trimmed, field);
    case "text":
      return checkText(trimmed, field);
    case "date":
      return { value: dateValue(trimmed, field.input) };
    case "one-of":
      return { value: field.options.find(({ key }) => key === text)?.value };
    case "lines": {
      const lines = text.split("\n").map((line) => line.trim());
      const filled = lines.filter((line) => line !== "");
      return checkSize(filled.length, field, "line") ?? { value: filled };
    }
    default:
      return parseJson(trimmed);
  }
};

const check = (field: FormField, draft: Draft): Checked => {
  if (typeof draft === "boolean") return { value: draft };
  if (typeof draft === "string") return checkWritten(field, draft);
  if (field.kind !== "some-of") return { value: undefined };
  if (draft.length === 0 && !field.isRequired && !field.min) return { value: undefined };
  const chosen = field.options.filter(({ key }) => draft.includes(key)).map(({ value }) => value);
  return checkSize(chosen.length, field, "choice") ?? { value: chosen };
};

type JsonObject = { [name: string]: Json };

/** The object with a value at a path. Missing objects on the way are made. */
const withValue = (into: JsonObject, [name, ...rest]: string[], value: Json): JsonObject => {
  if (name === undefined) return into;
  const inner = Object.hasOwn(into, name) ? into[name] : undefined;
  const next = rest.length === 0 ? value : withValue(isRecord(inner) ? inner : {}, rest, value);
  return Object.fromEntries([...Object.entries(into).filter(([key]) => key !== name), [name, next]]);
};

export type FormResult = { result: Json } | { problems: Record<string, string> };

/** The result of a filled form, or its problems by the keys of its fields, in words for the person. */
export const formResult = (fields: readonly FormField[], drafts: Drafts): FormResult => {
  const problems: Record<string, string> = {};
  let result: JsonObject = {};
  let bare: Json = null;
  for (const field of fields) {
    const checked = check(field, drafts[keyOf(field)] ?? field.initial);
    if ("problem" in checked) problems[keyOf(field)] = checked.problem;
    else if (checked.value !== undefined && field.path.length === 0) bare = checked.value;
    else if (checked.value !== undefined) result = withValue(result, field.path, checked.value);
  }
  if (Object.keys(problems).length > 0) return { problems };
  return { result: fields.some(({ path }) => path.length === 0) ? bare : result };
};
