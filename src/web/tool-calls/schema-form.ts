import type { InputHTMLAttributes } from "react";
import { shownText, type ToolAnswer } from "../../client/index.ts";
import { isSameName, titleOf } from "./titles.ts";
import { isRecord } from "./value-layout.ts";

export type Json = Extract<ToolAnswer, { result: unknown }>["result"];

export type Option = { key: string; label: string; hint?: string; value: Json };

/** The content of a field while it is filled in: a text, a tick, or the keys of options. */
export type Draft = string | boolean | readonly string[];

/** The content of a form, by the keys of its fields. */
export type Drafts = Readonly<Record<string, Draft>>;

type Checked = { value: Json | undefined } | { problem: string };

type FieldKind = {
  kind: "text" | "number" | "yes-no" | "date" | "one-of" | "some-of" | "lines" | "json";
  /** Its content before anybody has touched it. */
  initial: Draft;
  /** Those that it offers. Any other field but a yes-no is written. */
  options?: Option[];
  /** Whether its text takes several lines. */
  isLong?: boolean;
  /** More about the element that it is written in. */
  input?: InputHTMLAttributes<HTMLElement>;
  /** The value of a text without spaces around it, or its problem in words for the person. */
  read?(text: string): Checked;
  /** The same for the chosen options. */
  pick?(options: Option[]): Checked;
};

/** A field of a form. `path` is the place of its value in the result; it is empty for the result itself. */
export type FormField = FieldKind & { path: string[]; label: string; hint?: string; isRequired: boolean };

type Schema = Record<string, unknown>;

const maxFields = 60;
const maxDepth = 4;

const textAt = (schema: Schema, key: string): string | undefined => {
  const value = schema[key];
  return typeof value === "string" && value !== "" ? value : undefined;
};

const hintOf = (schema: Schema): { hint?: string } => {
  const hint = textAt(schema, "description");
  return hint === undefined ? {} : { hint: shownText(hint) };
};

const problem = (words: string): Checked => ({ problem: words });

/** Checks a number, or how many of a `unit` there are, against the limits of a schema. */
const sizeProblem = (size: number, min: unknown, max: unknown, unit = ""): Checked | null => {
  const count = (limit: number): string => (unit === "" ? `${limit}` : `${limit} ${unit}${limit === 1 ? "" : "s"}`);
  if (typeof min === "number" && size < min) return problem(`At least ${count(min)}, please.`);
  if (typeof max === "number" && size > max) return problem(`At most ${count(max)}, please.`);
  return null;
};

const textOf = (value: unknown): string =>
  isRecord(value) || Array.isArray(value) ? JSON.stringify(value) : String(value);

const optionOf = (index: number, label: string, value: unknown): Option => ({
  ...{ key: String(index), label: shownText(label), value: value as Json },
});

/** The values that an `enum`, or a `oneOf` of constants with titles, allows; null for any other schema. */
const optionsOf = (schema: Schema): Option[] | null => {
  if (Array.isArray(schema.enum) && schema.enum.length > 0) {
    return schema.enum.map((value, index) => optionOf(index, textOf(value), value));
  }
  const cases = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(cases) || !cases.every((one) => isRecord(one) && Object.hasOwn(one, "const"))) return null;
  return cases.map((one: Schema, index) => {
    const value = textOf(one.const);
    const title = textAt(one, "title") ?? value;
    // A title may say another thing than what its option answers.
    const label = isSameName(title, value) ? title : `${title} (${value})`;
    return { ...optionOf(index, label, one.const), ...hintOf(one) };
  });
};

const dateInputs = new Map<unknown, string>([
  ["date", "date"],
  ["date-time", "datetime-local"],
  ["time", "time"],
]);

/** A nullable type counts as that type: a field that is left empty is left out of the result. */
const typeOf = ({ type }: Schema): unknown => (Array.isArray(type) ? type.find((one) => one !== "null") : type);

/** A default as its field shows it; "" where it has characters that nobody would see are sent. */
const offered = (text: string): string => (shownText(text) === text ? text : "");

/** A field that is written, with the schema's default in it. One line of a phone shows 15 of the widest letters. */
const written = ({ default: value = "" }: Schema, field: Omit<FieldKind, "initial">): FieldKind => {
  const initial = offered(typeof value === "string" ? value : JSON.stringify(value));
  return { ...field, initial, isLong: field.isLong || /[\r\n\t]|.{16}/s.test(initial) };
};

/** The default of a date as its field shows it; "" where that would stay empty, and nobody would see what is sent. */
const shownDate = (format: unknown, given: unknown): string => {
  if (typeof given !== "string") return "";
  if (format === "time") return /^([01]\d|2[0-3])(:[0-5]\d){1,2}$/.test(given) ? given : "";
  // No field shows the year 0.
  const at = /^(?!0000)\d{4}-\d\d-\d\d/.test(given) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(at)) return "";
  if (format === "date") return new Date(at).toISOString().slice(0, 10) === given ? given : "";
  const own = new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
  return /^(?!0000)\d/.test(own) ? own : "";
};

/** The space checks a pattern, not the page: a pattern from a call could block the page for ever. */
const textKind = (schema: Schema): FieldKind => {
  const { format, minLength, maxLength } = schema;
  const date = dateInputs.get(format);
  if (date) {
    // A date has no zone. A time of a day is sent with the zone of the person.
    const zoned = (text: string): string => (format === "date-time" ? new Date(text).toISOString() : text);
    const initial = shownDate(format, schema.default);
    return { kind: "date", initial, input: { type: date }, read: (text) => ({ value: zoned(text) }) };
  }
  const type = format === "email" ? "email" : format === "uri" ? "url" : "text";
  const isLong = (typeof maxLength === "number" && maxLength > 200) || format === "textarea";
  const read = (text: string): Checked => {
    const size = sizeProblem([...text].length, minLength, maxLength, "character");
    if (size) return size;
    if (type === "email" && !/^\S+@\S+\.\S+$/.test(text)) return problem("Please enter an e-mail address.");
    if (type === "url" && !URL.canParse(text)) return problem("Please enter an address such as https://…");
    return { value: text };
  };
  return written(schema, { kind: "text", isLong, input: { dir: "auto", ...(isLong ? {} : { type }) }, read });
};

const numberKind = (schema: Schema): FieldKind => {
  const isInteger = typeOf(schema) === "integer";
  const read = (text: string): Checked => {
    const value = Number(text);
    if (!Number.isFinite(value)) return problem("Please enter a number.");
    if (isInteger && !Number.isInteger(value)) return problem("Please enter a whole number.");
    return sizeProblem(value, schema.minimum, schema.maximum) ?? { value };
  };
  return written(schema, { kind: "number", input: { inputMode: isInteger ? "numeric" : "decimal" }, read });
};

const jsonKind = (schema: Schema): FieldKind => {
  const read = (text: string): Checked => {
    try {
      return { value: JSON.parse(text) as Json };
    } catch {
      return problem("Please enter JSON.");
    }
  };
  return written(schema, {
    kind: "json",
    isLong: true,
    input: { spellCheck: false, style: { fontFamily: "var(--mono)" } },
    read,
  });
};

const arrayKind = (schema: Schema, isRequired: boolean): FieldKind => {
  const { minItems, maxItems } = schema;
  const items = isRecord(schema.items) ? schema.items : {};
  const given: unknown[] = Array.isArray(schema.default) ? schema.default : [];
  const options = optionsOf(items);
  if (options) {
    const initial = options.filter(({ value }) => given.includes(value)).map(({ key }) => key);
    const pick = (chosen: Option[]): Checked => {
      if (chosen.length === 0 && !isRequired && !minItems) return { value: undefined };
      const value = chosen.map((option) => option.value);
      return sizeProblem(value.length, minItems, maxItems, "choice") ?? { value };
    };
    return { kind: "some-of", options, initial, pick };
  }
  if (typeOf(items) !== "string") return jsonKind(schema);
  const read = (text: string): Checked => {
    const lines = text.split("\n").map((line) => line.trim());
    const value = lines.filter((line) => line !== "");
    return sizeProblem(value.length, minItems, maxItems, "line") ?? { value };
  };
  const input = { placeholder: "One on each line" };
  return {
    kind: "lines",
    isLong: true,
    input,
    initial: offered(given.filter((each) => typeof each === "string").join("\n")),
    read,
  };
};

const kindOf = (schema: Schema, isRequired: boolean): FieldKind => {
  const options = optionsOf(schema);
  if (options) {
    const initial = options.find(({ value }) => value === schema.default)?.key ?? "";
    return { kind: "one-of", options, initial, pick: ([chosen]) => ({ value: chosen?.value }) };
  }
  const type = typeOf(schema);
  if (type === "boolean") return { kind: "yes-no", initial: schema.default === true };
  if (type === "number" || type === "integer") return numberKind(schema);
  if (type === "array") return arrayKind(schema, isRequired);
  return type === "string" || (type === undefined && !isRecord(schema.properties))
    ? textKind(schema)
    : jsonKind(schema);
};

type Place = { path: string[]; labels: string[]; isRequired: boolean };

const fieldsAt = (schema: Schema, { path, labels, isRequired }: Place): FormField[] => {
  if (!isRecord(schema.properties) || path.length === maxDepth) {
    const label = shownText(labels.join(" · ")) || "Answer";
    return [{ path, label, isRequired, ...hintOf(schema), ...kindOf(schema, isRequired) }];
  }
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties).flatMap(([name, property]) => {
    const inner = isRecord(property) ? property : {};
    return fieldsAt(inner, {
      path: [...path, name],
      labels: [...labels, textAt(inner, "title") ?? titleOf(name)],
      isRequired: isRequired && required.includes(name),
    });
  });
};

/** The fields that a JSON Schema asks for, in its order. A schema of no object is one field. */
export const fieldsOf = (schema: unknown): FormField[] =>
  fieldsAt(isRecord(schema) ? schema : {}, { path: [], labels: [], isRequired: true }).slice(0, maxFields);

export const keyOf = ({ path }: FormField): string => path.join(".");

const check = ({ options = [], isRequired, read, pick }: FormField, draft: Draft): Checked => {
  if (typeof draft === "boolean") return { value: draft };
  const text = typeof draft === "string" ? draft.trim() : null;
  if (text === "") return isRequired ? problem("Please fill this in.") : { value: undefined };
  if (text !== null && read) return read(text);
  return pick?.(options.filter(({ key }) => [draft].flat().includes(key))) ?? { value: undefined };
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
