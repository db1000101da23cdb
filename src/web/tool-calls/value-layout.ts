import { full } from "../look/time.ts";
import { titleOf } from "./titles.ts";

/** How a value of JSON is laid out for a reader: fields, tables and texts, never JSON. */
export type Laid =
  | { kind: "nothing" }
  | { kind: "text"; text: string; isLong: boolean }
  | { kind: "number"; text: string }
  | { kind: "link"; href: string }
  | { kind: "list"; items: Laid[]; more: number }
  | { kind: "table"; columns: string[]; rows: Laid[][]; more: number }
  | { kind: "fields"; fields: LaidField[]; more: number };

export type LaidField = { key: string; label: string; value: Laid };

const maxDepth = 6;
const maxItems = 50;
const maxColumns = 8;
const longCharacters = 320;
const longLines = 5;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/;

const text = (value: string): Laid => {
  if (value.trim() === "") return { kind: "nothing" };
  if (/^https?:\/\/\S+$/i.test(value) && URL.canParse(value)) return { kind: "link", href: value };
  if (isoTime.test(value) && !Number.isNaN(Date.parse(value)))
    return { kind: "text", text: full(value), isLong: false };
  const isLong = value.length > longCharacters || value.split("\n").length > longLines;
  return { kind: "text", text: value, isLong };
};

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null;

/** The columns of a list of flat records; null where it is none. */
const columnsOf = (items: readonly unknown[]): string[] | null => {
  if (items.length < 2 || !items.every((item) => isRecord(item) && Object.values(item).every(isScalar))) return null;
  const columns = [...new Set(items.flatMap((item) => (isRecord(item) ? Object.keys(item) : [])))];
  return columns.length > 0 && columns.length <= maxColumns ? columns : null;
};

const list = (items: readonly unknown[], depth: number): Laid => {
  if (items.length === 0) return { kind: "nothing" };
  const shown = items.slice(0, maxItems);
  const more = items.length - shown.length;
  const columns = columnsOf(shown);
  if (!columns) return { kind: "list", items: shown.map((item) => lay(item, depth - 1)), more };
  const rows = shown.map((item) =>
    columns.map((key) => (isRecord(item) && Object.hasOwn(item, key) ? lay(item[key], depth - 1) : lay(null, 1))),
  );
  return { kind: "table", columns: columns.map(titleOf), rows, more };
};

/** Lays out any value of JSON, within bounds: `more` counts what is left out. */
export const lay = (value: unknown, depth = maxDepth): Laid => {
  if (value === null || value === undefined) return { kind: "nothing" };
  if (typeof value === "string") return text(value);
  if (typeof value === "boolean") return { kind: "text", text: value ? "yes" : "no", isLong: false };
  if (typeof value === "number") return { kind: "number", text: number.format(value) };
  if (depth <= 0) return text(JSON.stringify(value));
  if (Array.isArray(value)) return list(value, depth);
  return isRecord(value) ? fields(value, depth) : { kind: "nothing" };
};

const fields = (value: Record<string, unknown>, depth: number): Laid => {
  const entries = Object.entries(value);
  const shown = entries.slice(0, maxItems);
  if (shown.length === 0) return { kind: "nothing" };
  return {
    kind: "fields",
    fields: shown.map(([key, one]) => ({ key, label: titleOf(key), value: lay(one, depth - 1) })),
    more: entries.length - shown.length,
  };
};
