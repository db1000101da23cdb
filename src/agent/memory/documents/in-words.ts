import type { Json } from "../../../protocol/block.ts";

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
