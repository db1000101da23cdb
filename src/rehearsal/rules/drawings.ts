import type { ToolView } from "../tool-view.ts";
import { rule, toolNamed } from "../turn.ts";
import { capitalised, itemsIn, valueIn, withoutEnd } from "../words.ts";
import { callTool } from "./use-tool.ts";

/** Charts and tables, which ask nobody: "chart sales: Jan 3, Feb: 5", "table name, age: Ann, 7; Bob, 9". */
const begins = String.raw`^\s*(?:(?:show|draw|make|give)\s+(?:(?:me|us)\s+)?(?:an?|the)\s+)?`;
const chartPattern = new RegExp(String.raw`${begins}(?:(bar|line|pie)\s+)?chart\b\s*(?:of\b|for\b|:)?\s*(.*)$`, "is");
const tablePattern = new RegExp(String.raw`${begins}table\b\s*(?:of\b|with\b|:)?\s*(.*)$`, "is");

const titled = (title: string): { title?: string } => {
  const bare = title.replace(/[\s,:]+$/, "").trim();
  return bare === "" ? {} : { title: capitalised(bare) };
};

const pair = /([^,;:=\n]+?)\s*[:=]\s*([+-]?\d+(?:\.\d+)?)(?![\w.]*\w)/g;

type Point = { label: string; value: number };

const pointsIn = (text: string): Point[] =>
  [...text.matchAll(pair)].map(([, label = "", value]) => ({ label: label.trim(), value: Number(value) }));

/** Figures in the form that the tool declares. */
const figuresFor = ({ properties }: ToolView, data: Point[]): Record<string, unknown> => {
  const has = (name: string): boolean => properties.some((property) => property.name === name);
  if (has("data") || !(has("series") || has("values"))) return { data };
  const values = data.map(({ value }) => value);
  return { labels: data.map(({ label }) => label), ...(has("series") ? { series: [{ values }] } : { values }) };
};

export const chart = rule(chartPattern, (turn, type, text = "") => {
  const tool = toolNamed(turn, "chart");
  if (!tool) return ["I cannot draw charts: I have no tool for it.", "no tool for charts"];
  const data = pointsIn(text);
  if (data.length === 0) return ['I need names with numbers: "chart visits: Monday: 3, Tuesday: 5".', "no figures"];
  const title = titled(text.slice(0, text.search(pair)));
  const input = { type: type?.toLowerCase() || "bar", ...title, ...figuresFor(tool, data) };
  const said = `Here is the chart${title.title ? ` "${title.title}"` : ""}.`;
  return callTool(turn, { toolName: tool.name, input }, said);
});

export const table = rule(tablePattern, (turn, text = "") => {
  const tool = toolNamed(turn, "table");
  if (!tool) return ["I cannot draw tables: I have no tool for it.", "no tool for tables"];
  const [, head, body] = /^([^:;\n]+):\s*(.+)$/s.exec(withoutEnd(text)) ?? [];
  if (head === undefined || body === undefined) {
    return ['I need columns and rows: "table name, age: Ann, 7; Bob, 9".', "no rows"];
  }
  const filled = body.split(/\s*[;\n]\s*/).filter((row) => row.trim() !== "");
  const input = { columns: itemsIn(head), rows: filled.map((row) => row.split(",").map(valueIn)) };
  return callTool(turn, { toolName: tool.name, input }, "Here is the table.");
});

export const explain = rule(/\bexplain\b.*\b(?:figures|numbers)\b/is, (turn) => {
  const points = pointsIn(turn.request).toSorted((one, other) => one.value - other.value);
  const [least, most] = [points[0], points.at(-1)];
  if (!least || !most) {
    const text = 'Which ones? Give me names with numbers: "explain these figures: Monday: 3, Tuesday: 5".';
    return [turn.tone.dress(text), "asked for figures"];
  }
  const total = points.reduce((sum, { value }) => sum + value, 0);
  const mean = Number((total / points.length).toFixed(2));
  const range = `the least ${least.label} (${least.value}), the most ${most.label} (${most.value})`;
  return [turn.tone.dress(`${total} in all, ${mean} on average, ${range}.`), "explained figures"];
});
