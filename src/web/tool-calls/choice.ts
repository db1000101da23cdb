import { shownText } from "../../client/index.ts";
import type { Json, Option } from "./schema-form.ts";
import { isSameName, titleOf } from "./titles.ts";
import { isRecord } from "./value-layout.ts";

export type Choice = { options: Option[]; isMultiple: boolean };

const first = (value: Record<string, unknown>, keys: readonly string[]): string | undefined =>
  keys
    .map((key) => value[key])
    .filter((found) => typeof found === "string" || typeof found === "number")
    .map(String)
    .find((text) => text.trim() !== "");

const optionOf = (value: unknown, index: number): Option | null => {
  const key = String(index);
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") {
    return { key, label: shownText(String(value)), value };
  }
  if (!isRecord(value)) return null;
  const label = first(value, ["label", "title", "name", "text", "value", "id"]);
  const chosen = first(value, ["value", "id", "label", "title", "name", "text"]);
  const described = first(value, ["description", "hint", "details"]);
  if (label === undefined || chosen === undefined) return null;
  // The agent writes label and value. A person must see the value where the label says something else.
  const answers = isSameName(chosen, label) ? undefined : `answers “${chosen}”`;
  const told = new Set<unknown>([label, described, chosen]);
  const others = Object.entries(value)
    .filter(([, each]) => !told.has(typeof each === "number" ? String(each) : each))
    .map(([name, each]) => `${titleOf(name)}: ${typeof each === "string" ? each : JSON.stringify(each)}`);
  const hint = shownText([described, answers, ...others].filter(Boolean).join(" · "));
  return { key, label: shownText(label), value: chosen, ...(hint !== "" && { hint }) };
};

const maxOptions = 50;

/** A schema with more than one property asks for more than a choice. */
const takesChoice = (schema: unknown): boolean =>
  !isRecord(schema) || !isRecord(schema.properties) || Object.keys(schema.properties).length <= 1;

/** The choice that a call offers in its `input.options`, where its answer takes one; null for none. */
export const choiceOf = (input: unknown, schema?: unknown): Choice | null => {
  if (!isRecord(input) || !Array.isArray(input.options) || !takesChoice(schema)) return null;
  if (input.options.length > maxOptions) return null;
  const options = input.options.map(optionOf);
  const usable = options.filter((option) => option !== null);
  if (usable.length === 0 || usable.length < options.length) return null;
  return { options: usable, isMultiple: input.multiple === true };
};

const asked = (input: unknown): string =>
  (isRecord(input) && first(input, ["question", "message", "prompt", "text", "title"])) || "";

/** The question that a call asks, in the words of its input. */
export const questionOf = (input: unknown): string | null => shownText(asked(input)) || null;

/** The fields of a call that neither its question nor its form shows. */
export const besideQuestion = (input: unknown, schema: unknown): Record<string, unknown> => {
  if (!isRecord(input)) return {};
  const isChoice = choiceOf(input, schema) !== null;
  const isInForm = (key: string, value: unknown): boolean =>
    isChoice
      ? key === "options" || (key === "multiple" && typeof value === "boolean")
      : key === "schema" && schema === undefined && isRecord(value);
  const question = asked(input);
  return Object.fromEntries(
    Object.entries(input).filter(([key, value]) => !isInForm(key, value) && value !== question),
  );
};

/** A choice as the call's schema wants it: bare, in the schema's only property, or else as `{choice}` or `{choices}`. */
export const choiceResult = (schema: unknown, { isMultiple }: Choice, chosen: Json[]): Json => {
  const value = isMultiple ? chosen : (chosen[0] ?? null);
  if (isRecord(schema)) {
    if (isRecord(schema.properties)) {
      const names = Object.keys(schema.properties);
      if (names.length === 1 && names[0] !== undefined) return { [names[0]]: value };
    } else if (schema.type !== undefined && schema.type !== "object") return value;
    else if (schema.enum !== undefined || schema.oneOf !== undefined) return value;
  }
  return isMultiple ? { choices: value } : { choice: value };
};
