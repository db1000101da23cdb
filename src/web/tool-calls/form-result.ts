import type { Json } from "./answer-result.ts";
import { type Draft, type FormField, keyOf } from "./schema-form.ts";

/** A form as it is filled in, by the keys of its fields. */
export type Drafts = Readonly<Record<string, Draft>>;

type Checked = { value: Json | undefined } | { problem: string };

const problem = (words: string): Checked => ({ problem: words });
const missing = problem("Please fill this in.");

const count = (size: number, unit: string): string => `${size} ${unit}${size === 1 ? "" : "s"}`;

const checkSize = (size: number, { min, max }: { min?: number; max?: number }, unit: string): Checked | null => {
  if (min !== undefined && size < min) return problem(`At least ${count(min, unit)}, please.`);
  if (max !== undefined && size > max) return problem(`At most ${count(max, unit)}, please.`);
  return null;
};

const checkNumber = (text: string, field: Extract<FormField, { kind: "number" }>): Checked => {
  const value = Number(text);
  if (!Number.isFinite(value)) return problem("Please enter a number.");
  if (field.isInteger && !Number.isInteger(value)) return problem("Please enter a whole number.");
  if (field.min !== undefined && value < field.min) return problem(`At least ${field.min}, please.`);
  if (field.max !== undefined && value > field.max) return problem(`At most ${field.max}, please.`);
  return { value };
};

/** A pattern is left to the space: one that came with a call could hold up the page for ever. */
const checkText = (text: string, field: Extract<FormField, { kind: "text" }>): Checked => {
  const size = checkSize([...text].length, field, "character");
  if (size) return size;
  if (field.input === "email" && !/^\S+@\S+\.\S+$/.test(text)) return problem("Please enter an e-mail address.");
  if (field.input === "url" && !URL.canParse(text)) return problem("Please enter an address such as https://…");
  return { value: text };
};

/** A date is a date wherever one is; a time of a day is told with the zone that the person is in. */
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

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The object with a value at a path, the objects on the way made where they are missing. */
const withValue = (into: JsonObject, [name, ...rest]: string[], value: Json): JsonObject => {
  if (name === undefined) return into;
  const inner = Object.hasOwn(into, name) ? into[name] : undefined;
  const next = rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value);
  return Object.fromEntries([...Object.entries(into).filter(([key]) => key !== name), [name, next]]);
};

export type FormResult = { result: Json } | { problems: Record<string, string> };

/** What a filled form says, or by the keys of its fields what is wrong with it, in words for whoever fills it in. */
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
