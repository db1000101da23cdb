import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/**
 * `docs/measured.md` holds a section for each command that measures, and the command writes it. A section is a heading,
 * words that a person wrote, and one table. A row is known by its case and its figure.
 */
export type MeasuredRow = {
  case: string;
  figure: string;
  value: string;
  /** The value of the baseline in the same run. */
  baseline?: string;
  ratio?: string;
};

/** `before` keeps what an older commit measured, beside what is measured `now`. */
export type MeasuredColumn = "before" | "now";

type Line = Record<"case" | "figure" | "before" | "now" | "baseline" | "ratio", string>;

const file = join(resolve(import.meta.dirname, ".."), "docs/measured.md");
const columns = ["case", "figure", "before", "now", "baseline", "ratio"] as const;
const none = "–";

/** Writes what a command measured into its section of `docs/measured.md`. */
export const recordMeasured = (section: string, rows: MeasuredRow[], column: MeasuredColumn = "now"): void =>
  writeFileSync(file, withMeasured(readFileSync(file, "utf8"), section, rows, column));

/**
 * The document with these rows in one column of a section's table. A row that was not measured this time stays only
 * while the other column has it.
 */
export const withMeasured = (
  document: string,
  section: string,
  rows: MeasuredRow[],
  column: MeasuredColumn,
): string => {
  const parts = document.trimEnd().split(/\n+(?=## )/);
  const heading = `## ${section}`;
  const found = parts.findIndex((part) => part.split("\n", 1)[0] === heading);
  const at = found < 0 ? parts.length : found;
  const lines = (parts[at] ?? heading).split("\n");
  const words = lines
    .filter((line) => !line.startsWith("|"))
    .join("\n")
    .trimEnd();
  const measured = merge(
    lines
      .filter((line) => line.startsWith("|"))
      .slice(2)
      .map(parseLine),
    rows,
    column,
  );
  parts[at] = `${words}\n\n${table(measured)}`;
  return `${parts.join("\n\n")}\n`;
};

const merge = (known: Line[], rows: MeasuredRow[], column: MeasuredColumn): Line[] => {
  const other = column === "now" ? "before" : "now";
  const isSame = (line: Line, row: MeasuredRow): boolean =>
    line.case === cell(row.case) &&
    withoutBound(line.figure) === withoutBound(cell(row.figure)) &&
    unitOf(line[other] === none ? line[column] : line[other]) === unitOf(row.value);
  const left = known.filter((line) => line[other] !== none && !rows.some((row) => isSame(line, row)));
  const measured = rows.map((row): Line => {
    const before = known.find((line) => isSame(line, row));
    const rival = column === "now" || !before ? row : before;
    const shown = { baseline: cell(rival.baseline ?? ""), ratio: cell(rival.ratio ?? "") };
    const values = { before: none, now: none, [other]: before?.[other] ?? none, [column]: cell(row.value) };
    return { case: cell(row.case), figure: cell(row.figure), ...values, ...shown };
  });
  return [...measured, ...left.map((line) => ({ ...line, [column]: none }))];
};

/** A bound may change, and the figure is still the same. */
const withoutBound = (figure: string): string => figure.replace(/(, |^)at (most|least) .*/, "");

/** Such as "rows written" of "30 rows written": a bench may count two things under one name. */
const unitOf = (value: string): string => / [a-z ]+$/i.exec(value)?.[0] ?? "";

const cell = (text: string): string => text.replaceAll("|", "/").replace(/\s+/g, " ").trim();

const parseLine = (line: string): Line => {
  const [, ...cells] = line.split("|").map((text) => text.trim());
  const [name = "", figure = "", before = none, now = none, baseline = "", ratio = ""] = cells;
  return { case: name, figure, before, now, baseline, ratio };
};

const table = (lines: Line[]): string =>
  [
    columns.join(" | "),
    columns.map(() => "---").join(" | "),
    ...lines.map((line) => columns.map((name) => line[name]).join(" | ")),
  ]
    .map((line) => `| ${line} |`)
    .join("\n");
