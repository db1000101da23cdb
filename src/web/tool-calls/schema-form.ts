import type { Json, Option } from "./answer-result.ts";
import { titleOf } from "./titles.ts";
import { isRecord } from "./value-layout.ts";

/** A field of a form; `path` is where its value stands in the result, empty for the result itself. */
export type FormField = {
  path: string[];
  label: string;
  hint?: string;
  isRequired: boolean;
  /** What it holds before anybody has touched it. */
  initial: Draft;
} & FieldKind;

/** What a field holds while it is filled in: a text, a tick, or the keys of options. */
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

const limits = (schema: Schema, min: string, max: string): Limits => ({
  ...(typeof schema[min] === "number" ? { min: schema[min] } : {}),
  ...(typeof schema[max] === "number" ? { max: schema[max] } : {}),
});

const label = (value: unknown): string =>
  isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);

/** The values that an `enum`, or a `oneOf` of constants with titles, allows; null where it is neither. */
const optionsOf = (schema: Schema): Option[] | null => {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.map((value, index) => ({ key: String(index), label: label(value), value: value as Json }));
  }
  const cases = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(cases) || !cases.every((one) => isRecord(one) && Object.hasOwn(one, "const"))) return null;
  return cases.map((one: Schema, index) => ({
    key: String(index),
    label: textAt(one, "title") ?? label(one.const),
    value: one.const as Json,
    ...(textAt(one, "description") ? { hint: textAt(one, "description") ?? "" } : {}),
  }));
};

const dateInputs = { date: "date", "date-time": "datetime-local", time: "time" } as const;

/** A type beside null is that type: what is left empty is left out. */
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
  const hint = textAt(schema, "description");
  const common = { path, label: labels.join(" · ") || "Answer", isRequired, ...(hint === undefined ? {} : { hint }) };
  return [{ ...common, ...kind, initial: initialOf(kind, schema.default) }];
};

/** The fields that a JSON Schema asks for, in its order. A schema that is no object's is one field. */
export const fieldsOf = (schema: unknown): FormField[] =>
  fieldsAt(isRecord(schema) ? schema : {}, { path: [], labels: [], isRequired: true, depth: maxDepth }).slice(
    0,
    maxFields,
  );

export const keyOf = ({ path }: FormField): string => path.join(".");
