import type { ToolView } from "../tool-view.ts";
import { answer, type Rule } from "../turn.ts";
import { itemsIn, valueIn, withoutEnd } from "../words-as-data.ts";
import { callTool, toolNamed } from "./use-tool.ts";

/** What is shown and asks nobody: "chart sales: Jan 3, Feb: 5", "table name, age: Ann, 7; Bob, 9". */
const begins = String.raw`^\s*(?:(?:show|draw|make|give)\s+(?:(?:me|us)\s+)?(?:an?|the)\s+)?`;
const chartPattern = new RegExp(String.raw`${begins}(?:(bar|line|pie)\s+)?chart\b\s*(?:of\b|for\b|:)?\s*(.*)$`, "is");
const tablePattern = new RegExp(String.raw`${begins}table\b\s*(?:of\b|with\b|:)?\s*(.*)$`, "is");

const titled = (title: string): { title?: string } => {
  const bare = title.replace(/[\s,:]+$/, "").trim();
  return bare === "" ? {} : { title: bare.charAt(0).toUpperCase() + bare.slice(1) };
};

const pair = /([^,;:=\n]+?)\s*[:=]\s*([+-]?\d+(?:\.\d+)?)(?![\w.]*\w)/g;

type Point = { label: string; value: number };

/** Figures in the form that the tool declares. */
const figuresFor = ({ properties }: ToolView, data: Point[]): Record<string, unknown> => {
  const has = (name: string): boolean => properties.some((property) => property.name === name);
  if (has("data") || !(has("series") || has("values"))) return { data };
  const values = data.map(({ value }) => value);
  return { labels: data.map(({ label }) => label), ...(has("series") ? { series: [{ values }] } : { values }) };
};

export const chart: Rule = {
  forAgents: true,
  match: (turn) => {
    const [, type = "bar", text] = chartPattern.exec(turn.request) ?? [];
    if (text === undefined) return undefined;
    const tool = toolNamed(turn, "chart");
    if (!tool) return answer(turn, "I cannot draw charts: I have no tool for it.", "no tool for charts");
    const pairs = [...text.matchAll(pair)];
    const [first] = pairs;
    if (!first) return answer(turn, 'I need names with numbers: "chart visits: Monday: 3, Tuesday: 5".', "no figures");
    const data = pairs.map(([, label = "", value]) => ({ label: label.trim(), value: Number(value) }));
    const title = titled(text.slice(0, first.index));
    const input = { type: type.toLowerCase(), ...title, ...figuresFor(tool, data) };
    return callTool(
      turn,
      { toolName: tool.name, input },
      `Here is the chart${title.title ? ` "${title.title}"` : ""}.`,
    );
  },
};

export const table: Rule = {
  forAgents: true,
  match: (turn) => {
    const text = tablePattern.exec(turn.request)?.[1];
    if (text === undefined) return undefined;
    const tool = toolNamed(turn, "table");
    if (!tool) return answer(turn, "I cannot draw tables: I have no tool for it.", "no tool for tables");
    const [, head, body] = /^([^:;\n]+):\s*(.+)$/s.exec(withoutEnd(text)) ?? [];
    if (head === undefined || body === undefined) {
      return answer(turn, 'I need columns and rows: "table name, age: Ann, 7; Bob, 9".', "no rows");
    }
    const rows = body
      .split(/\s*[;\n]\s*/)
      .filter((row) => row.trim() !== "")
      .map((row) => row.split(",").map(valueIn));
    return callTool(turn, { toolName: tool.name, input: { columns: itemsIn(head), rows } }, "Here is the table.");
  },
};
