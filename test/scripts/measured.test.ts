import { expect, it } from "vitest";
import { withMeasured } from "../../scripts/measured.ts";

const row = (name: string, value: string) => ({ case: name, figure: "p50", value, baseline: "2 ms", ratio: "0.5" });

const head = "# Measured\n\nWords.\n";
const table = (...lines: string[]): string =>
  ["| case | figure | before | now | baseline | ratio |", "| --- | --- | --- | --- | --- | --- |", ...lines].join("\n");

it("adds a section for a command that measured nothing yet", () => {
  const first = withMeasured(head, "cost", [row("a post", "1 ms")], "now");
  expect(first).toBe(`# Measured\n\nWords.\n\n## cost\n\n${table("| a post | p50 | – | 1 ms | 2 ms | 0.5 |")}\n`);
  expect(withMeasured(first, "cost", [row("a post", "1 ms")], "now")).toBe(first);
});

it("keeps the other column, the section's words and the other sections", () => {
  const before = withMeasured(
    `${head}\n## cost\n\nWhy.\n\n## sleep\n\nZzz.\n`,
    "cost",
    [row("a post", "3 ms")],
    "before",
  );
  const both = withMeasured(before, "cost", [row("a post", "1 ms")], "now");
  const line = "| a post | p50 | 3 ms | 1 ms | 2 ms | 0.5 |";
  expect(both).toBe(`${head}\n## cost\n\nWhy.\n\n${table(line)}\n\n## sleep\n\nZzz.\n`);
});

it("drops a row that has no value in either column", () => {
  const old = withMeasured(head, "cost", [row("gone", "9 ms"), row("kept", "3 ms")], "now");
  const withBefore = withMeasured(old, "cost", [row("kept", "4 ms")], "before");
  const next = withMeasured(withBefore, "cost", [row("new", "1 ms")], "now");
  expect(next).toContain("| new | p50 | – | 1 ms |");
  expect(next).toContain("| kept | p50 | 4 ms | – |");
  expect(next).not.toContain("gone");
});

it("knows a figure again whose bound has changed", () => {
  const old = withMeasured(head, "cost", [{ case: "a post", figure: "p50", value: "3 ms" }], "before");
  const text = withMeasured(old, "cost", [{ case: "a post", figure: "p50, at most 2 times", value: "1 ms" }], "now");
  expect(text).toContain("| a post | p50, at most 2 times | 3 ms | 1 ms |");
});

it("keeps two figures of one name apart by their units", () => {
  const rows = [row("a post", "4 requests"), row("a post", "30 rows written")];
  const text = withMeasured(withMeasured(head, "cost", rows, "before"), "cost", rows, "now");
  expect(text).toContain("| 4 requests | 4 requests |");
  expect(text).toContain("| 30 rows written | 30 rows written |");
});

it("writes no cell that would break the table", () => {
  const text = withMeasured(head, "cost", [row("a | b\nc", "1 ms")], "now");
  expect(text).toContain("| a / b c | p50 |");
  expect(withMeasured(text, "cost", [row("a | b\nc", "1 ms")], "now")).toBe(text);
});
