import { titleOf } from "./titles.ts";

/** Reads JSON values for a reader: what is empty, what is a table, what is the same. */

/** Bounds of a list that is shown as a table of its records, and of a table that a call draws. */
const maxRecordColumns = 8;
const maxColumns = 30;
const maxRows = 500;

/** For numbers as people read them. */
export const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

const longCharacters = 320;
const longLines = 5;

/** Whether a text is folded. */
export const isLong = (text: string): boolean =>
  text.length > longCharacters || text.split(/[\n\r\u2028\u2029]/).length > longLines;

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Whether a value says nothing: null, a blank text, an empty list or object. */
export const isNothing = (value: unknown): boolean => {
  if (typeof value === "string") return value.trim() === "";
  if (typeof value === "object" && value !== null) return Object.keys(value).length === 0;
  return typeof value !== "number" && typeof value !== "boolean";
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

export type Table = {
  title: string;
  columns: { label: string; isNumeric: boolean }[];
  rows: unknown[][];
  more: number;
};

/** The table that shows a list of flat records; null for any other list. */
export const recordTable = (items: readonly unknown[]): Omit<Table, "more"> | null => {
  const isFlat = (item: unknown): boolean =>
    isRecord(item) && Object.values(item).every((value) => typeof value !== "object" || value === null);
  const keys = keysOf(items);
  if (items.length < 2 || keys.length === 0 || keys.length > maxRecordColumns || !items.every(isFlat)) return null;
  const rows = items.map((item) => keys.map((key, index) => cellOf(item, key, index)));
  return { title: "", columns: keys.map((key) => ({ label: titleOf(key), isNumeric: false })), rows };
};

const keysOf = (items: readonly unknown[]): string[] => [
  ...new Set(items.flatMap((item) => (isRecord(item) ? Object.keys(item) : []))),
];

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
  if (given.length > 0) return given;
  const found = keysOf(rows).map((key) => ({ key, label: titleOf(key) }));
  if (found.length > 0) return found;
  const widest = Math.max(0, ...rows.map((row) => (Array.isArray(row) ? row.length : 0)));
  return Array.from({ length: widest }, (_, index) => ({ key: String(index), label: String(index + 1) }));
};

const cellOf = (row: unknown, key: string, index: number): unknown => {
  if (Array.isArray(row)) return row[index];
  if (!isRecord(row)) return index === 0 ? row : null;
  return Object.hasOwn(row, key) ? row[key] : null;
};

/** The table that a call's input describes, with `rows` of lists or of records; null for any other input. */
export const tableOf = (input: unknown): Table | null => {
  if (!isRecord(input) || !Array.isArray(input.rows)) return null;
  const given: unknown[] = input.rows.slice(0, maxRows);
  const columns = columnsOf(input.columns, given).slice(0, maxColumns);
  if (columns.length === 0) return null;
  const rows = given.map((row) => columns.map(({ key }, index) => cellOf(row, key, index)));
  const isNumeric = (index: number): boolean =>
    rows.length > 0 && rows.every((row) => typeof row[index] === "number" || isNothing(row[index]));
  return {
    title: typeof input.title === "string" ? input.title : "",
    columns: columns.map(({ label }, index) => ({ label, isNumeric: isNumeric(index) })),
    rows,
    more: input.rows.length - rows.length,
  };
};
