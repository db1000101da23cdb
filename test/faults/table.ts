import type { FaultPoint } from "../../src/shared/fault.ts";

/** What the test hands to `scripts/faults.ts`, which prints it. */
declare module "vitest" {
  interface TaskMeta {
    faultTable?: RenderedTable;
  }
}
export type RenderedTable = { text: string };

/** What a crash at a point came to in a scenario. One that is missing was not run. */
export type Cell = "–" | "ok" | "FAIL";

/** Fault points × scenarios, as text: a row for each point, a column for each scenario, named below. */
export const renderTable = (
  points: readonly FaultPoint[],
  scenarios: string[],
  cells: ReadonlyMap<string, ReadonlyMap<FaultPoint, Cell>>,
): string => {
  const nameWidth = Math.max(...points.map(({ length }) => length));
  const columns = scenarios.map((name, index) => {
    const column = points.map((point) => cells.get(name)?.get(point) ?? "·");
    const texts = [String(index + 1), ...column];
    const width = Math.max(...texts.map(({ length }) => length));
    return texts.map((text) => text.padEnd(width));
  });
  const rows = ["", ...points].map((point, row) => {
    const texts = columns.map((column) => column[row] ?? "");
    return `${point.padEnd(nameWidth)}  ${texts.join(" ")}`.trimEnd();
  });
  return [
    ...rows,
    ...scenarios.map((name, index) => `${String(index + 1).padStart(nameWidth)}  ${name}`),
    "ok: after the crash all came as without it, or as is stated for it; –: not reached; ·: not run",
  ].join("\n");
};
