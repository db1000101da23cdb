import type { ShownField } from "../../protocol/tool-call.ts";
import { countInvisible, escapeInvisible } from "../../shared/invisible.ts";
import { maxShownFields } from "../bounds.ts";

/**
 * What people must see before they approve a call: its tool, where it goes, and every value of its input. Nothing is left out,
 * whatever the input's fields are called. Where there are too many to list, they stand together as JSON. Pure.
 */

/** How deep an input is listed field by field, and how long a path may be to be continued. */
const listedDepth = 8;
const listedPathCharacters = 200;

const plainKey = /^[A-Za-z_][\w-]*$/;

const pathOf = (path: string, key: string): string =>
  plainKey.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;

const fieldOf = (path: string, text: string): ShownField => ({
  path: escapeInvisible(path),
  text: escapeInvisible(text),
  hidden: countInvisible(path) + countInvisible(text),
});

const fieldsIn = (path: string, value: unknown, depth: number): ShownField[] => {
  if (typeof value === "string") return [fieldOf(path, value)];
  const isEnd = depth === 0 || path.length > listedPathCharacters || typeof value !== "object" || value === null;
  const parts = isEnd ? [] : Object.entries(value);
  if (isEnd || parts.length === 0) return [fieldOf(path, JSON.stringify(value) ?? "null")];
  return parts.flatMap(([key, part]) =>
    fieldsIn(Array.isArray(value) ? `${path}[${key}]` : pathOf(path, key), part, depth - 1),
  );
};

/** In the input's order. The first depth that gives few enough fields is taken. */
const inputFields = (input: unknown): ShownField[] => {
  for (const depth of [listedDepth, 1]) {
    const fields = fieldsIn("input", input, depth);
    if (fields.length <= maxShownFields) return fields;
  }
  return fieldsIn("input", input, 0);
};

export const shownFields = (name: string, target: string | undefined, input: unknown): ShownField[] => [
  fieldOf("tool", name),
  ...(target === undefined ? [] : [fieldOf("target", target)]),
  ...inputFields(input),
];
