import * as z from "zod";
import type { CallOptions } from "../models/language-model.ts";

/** A tool as it is declared to the model: the rules use no other. */
export type ToolView = { name: string; description: string; properties: PropertyView[] };

export type PropertyView = {
  name: string;
  type: "string" | "number" | "boolean" | "other";
  /** Texts that alone are allowed; empty where any is. */
  allowed: string[];
  required: boolean;
};

const Property = z.object({ type: z.string().optional(), enum: z.array(z.unknown()).default([]) }).catch({ enum: [] });
const ObjectSchema = z
  .object({ properties: z.record(z.string(), Property).default({}), required: z.array(z.string()).default([]) })
  .catch({ properties: {}, required: [] });

const typeOf = (type: string | undefined): PropertyView["type"] => {
  if (type === "integer" || type === "number") return "number";
  return type === "string" || type === "boolean" ? type : "other";
};

const propertiesOf = (schema: unknown): PropertyView[] => {
  const { properties, required } = ObjectSchema.parse(schema);
  return Object.entries(properties).map(([name, { type, enum: values }]) => ({
    name,
    type: typeOf(type),
    allowed: values.filter((value) => typeof value === "string"),
    required: required.includes(name),
  }));
};

/** The tools that a call of the model declares. */
export const toolsOf = (declared: CallOptions["tools"] = []): ToolView[] =>
  declared.map((tool) =>
    tool.type === "function"
      ? { name: tool.name, description: tool.description ?? "", properties: propertiesOf(tool.inputSchema) }
      : { name: tool.name, description: "", properties: [] },
  );

/** A name's words, in lower case: those of `fetchWeather` and of `fetch_weather` are the same. */
export const wordsOfName = (name: string): string[] =>
  name
    .replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
