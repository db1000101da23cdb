import { titleOf } from "./titles.ts";
import { isRecord, type Laid, lay } from "./value-layout.ts";

export type Table = { title: string; columns: { label: string; isNumeric: boolean }[]; rows: Laid[][]; more: number };

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

/** Columns as they are named, or else as the rows have them. */
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

/** The table that a call's input describes: `rows` as lists or as records. Null where it describes none. */
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
