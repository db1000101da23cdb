import { expect, test } from "vitest";
import { chartOf, labelEvery, scaleOf, share, slicesOf } from "../../../src/web/tool-calls/chart.ts";
import { tableOf } from "../../../src/web/tool-calls/value-layout.ts";

test.each([
  [{ type: "bar", labels: ["a", "b"], series: [{ name: "x", values: [1, 2] }] }, ["x"], ["a", "b"]],
  [{ type: "line", labels: [2025, 2026], series: [{ data: [1, null] }] }, ["Series 1"], ["2025", "2026"]],
  [{ type: "bar", values: [1, 2, 3] }, [""], ["1", "2", "3"]],
  [{ type: "bar", labels: ["a"], series: [1, 2] }, [""], ["a", "2"]],
  [{ type: "pie", data: [{ label: "tea", value: 3 }] }, [""], ["tea"]],
])("the input $0 is a chart (%#)", (input, names, labels) => {
  const chart = chartOf(input);
  expect(chart?.series.map(({ name }) => name)).toEqual(names);
  expect(chart?.labels).toEqual(labels);
  for (const { values } of chart?.series ?? []) expect(values).toHaveLength(labels.length);
});

test.each([
  [undefined],
  [{}],
  [{ type: "radar", values: [1] }],
  [{ type: "bar", series: [] }],
  [{ type: "bar", values: ["1"] }],
  [{ type: "pie", values: [0, -2] }],
])("the input %j is no chart", (input) => {
  expect(chartOf(input)).toBeNull();
});

const scaled = (...values: (number | null)[]) => scaleOf([{ name: "", values }]);

test("a scale has round marks, and holds 0 and every value", () => {
  expect(scaled(3, 7, 9).ticks).toEqual([0, 2, 4, 6, 8, 10]);
  expect(scaled(-8, 8).ticks).toEqual([-10, -5, 0, 5, 10]);
  expect(scaled(0.1, 0.3).ticks).toEqual([0, 0.1, 0.2, 0.3]);
  expect(scaled(0, null)).toMatchObject({ low: 0 });
  expect(share(5, { low: 0, high: 10, ticks: [] })).toBe(0.5);
  for (const values of [[1e9], [1e-6], [-3], [12_345, -1]]) {
    const { low, high, ticks } = scaled(...values);
    expect(low).toBeLessThanOrEqual(Math.min(0, ...values));
    expect(high).toBeGreaterThanOrEqual(Math.max(0, ...values));
    expect(ticks.length).toBeLessThan(9);
  }
});

test("the slices of a pie make one whole; a value of 0 or less has no slice", () => {
  const slices = slicesOf([1, 0, 3, null, -2]);
  expect(slices.map(({ index, share: part }) => [index, part])).toEqual([
    [0, 0.25],
    [2, 0.75],
  ]);
  expect(slices.at(-1)?.to).toBe(1);
});

test("labels that would overlap are left out at an even interval", () => {
  expect(labelEvery(6, 600, 50)).toBe(1);
  expect(labelEvery(24, 300, 50)).toBe(4);
});

test("a table has rows of lists or records, and takes unnamed columns from the records", () => {
  const listed = tableOf({ title: "Bills", columns: ["who", { key: "sum", label: "Sum (€)" }], rows: [["Acme", 7]] });
  expect(listed).toMatchObject({
    title: "Bills",
    columns: [
      { label: "Who", isNumeric: false },
      { label: "Sum (€)", isNumeric: true },
    ],
  });
  const records = tableOf({ rows: [{ who: "Acme" }, { who: "Beta", sum: 7 }] });
  expect(records?.columns.map(({ label }) => label)).toEqual(["Who", "Sum"]);
  expect(records?.rows[0]?.[1]).toBeNull();
  expect(tableOf({ rows: [] })).toBeNull();
  expect(tableOf({ columns: ["a"] })).toBeNull();
  expect(tableOf({ columns: ["a"], rows: [["x"], "y", 7] })?.rows).toHaveLength(3);
});
