import { full } from "../look/time.tsx";
import { titleOf } from "./titles.ts";

/** A JSON value laid out for a reader: as fields, tables and texts, never as JSON. */
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
const maxRecordColumns = 8;
const longCharacters = 320;
const longLines = 5;
/** For numbers as people read them. */
export const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

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

/** The columns of a list of flat records; null for any other list. */
const recordColumns = (items: readonly unknown[]): string[] | null => {
  if (items.length < 2 || !items.every((item) => isRecord(item) && Object.values(item).every(isScalar))) return null;
  const columns = [...new Set(items.flatMap((item) => (isRecord(item) ? Object.keys(item) : [])))];
  return columns.length > 0 && columns.length <= maxRecordColumns ? columns : null;
};

const list = (items: readonly unknown[], depth: number): Laid => {
  if (items.length === 0) return { kind: "nothing" };
  const shown = items.slice(0, maxItems);
  const more = items.length - shown.length;
  const columns = recordColumns(shown);
  if (!columns) return { kind: "list", items: shown.map((item) => lay(item, depth - 1)), more };
  const rows = shown.map((item) =>
    columns.map((key) => (isRecord(item) && Object.hasOwn(item, key) ? lay(item[key], depth - 1) : lay(null, 1))),
  );
  return { kind: "table", columns: columns.map(titleOf), rows, more };
};

/** Lays out any JSON value, within bounds: `more` counts the items that are left out. */
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

/** Whether two JSON values are equal, whatever the order of their keys. */
export const isSameValue = (one: unknown, other: unknown): boolean => {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => isSameValue(item, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return one === other;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && isSameValue(one[key], other[key]))
  );
};

export type Table = { title: string; columns: { label: string; isNumeric: boolean }[]; rows: Laid[][]; more: number };

/** Bounds of a table that a call draws. */
const maxColumns = 30;
const maxRows = 500;

type Column = { key: string; label: string };

const columnOf = (value: unknown): Column | null => {
  if (typeof value === "string" || typeof value === "number")
    return { key: String(value), label: titleOf(String(value)) };
  if (!isRecord(value)) return null;
  const key = value.key ?? value.name ?? value.id ?? value.label ?? value.title;
  const label = value.label ?? value.title ?? value.name;
  if (typeof key !== "string") return null;
  return { key, label: typeof label === "string" ? label : titleOf(key) };
};

/** The columns that the input names, or else those that the rows have. */
const columnsOf = (named: unknown, rows: readonly unknown[]): Column[] => {
  const list: unknown[] = Array.isArray(named) ? named : [];
  const given = list.map(columnOf).filter((column) => column !== null);
  if (given.length > 0) return given.slice(0, maxColumns);
  const keys = [...new Set(rows.flatMap((row) => (isRecord(row) ? Object.keys(row) : [])))];
  const widest = Math.max(0, ...rows.map((row) => (Array.isArray(row) ? row.length : 0)));
  const found = keys.length > 0 ? keys.map((key) => ({ key, label: titleOf(key) })) : [];
  const numbered = Array.from({ length: widest }, (_, index) => ({ key: String(index), label: String(index + 1) }));
  return (found.length > 0 ? found : numbered).slice(0, maxColumns);
};

const cellOf = (row: unknown, { key }: Column, index: number): unknown => {
  if (Array.isArray(row)) return row[index];
  if (!isRecord(row)) return index === 0 ? row : null;
  return Object.hasOwn(row, key) ? row[key] : null;
};

/** The table that a call's input describes, with `rows` of lists or of records; null for any other input. */
export const tableOf = (input: unknown): Table | null => {
  if (!isRecord(input) || !Array.isArray(input.rows)) return null;
  const rows: unknown[] = input.rows.slice(0, maxRows);
  const columns = columnsOf(input.columns, rows);
  if (columns.length === 0) return null;
  const cells = rows.map((row) => columns.map((column, index) => lay(cellOf(row, column, index), 3)));
  const isNumeric = (index: number): boolean =>
    cells.length > 0 && cells.every((row) => row[index]?.kind === "number" || row[index]?.kind === "nothing");
  return {
    title: typeof input.title === "string" ? input.title : "",
    columns: columns.map(({ label }, index) => ({ label, isNumeric: isNumeric(index) })),
    rows: cells,
    more: input.rows.length - rows.length,
  };
};
