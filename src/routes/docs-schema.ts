import { html } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";
import { z } from "zod";
import type { Json } from "./api-schemas.ts";

/** JSON Schemas as a person reads them: what kind of thing, within which bounds, with which fields. */
export type Html = HtmlEscapedString | Promise<HtmlEscapedString>;

const Schema = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  const: z.json().optional(),
  enum: z.array(z.json()).optional(),
  items: z.json().optional(),
  properties: z.record(z.string(), z.json()).optional(),
  required: z.array(z.string()).default([]),
  additionalProperties: z.json().optional(),
  anyOf: z.array(z.json()).optional(),
  oneOf: z.array(z.json()).optional(),
  format: z.string().optional(),
  pattern: z.string().optional(),
  default: z.json().optional(),
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  minLength: z.number().optional(),
  maxLength: z.number().optional(),
  maxItems: z.number().optional(),
});
type Schema = z.infer<typeof Schema>;

const componentPath = "#/components/schemas/";
export const anchorOf = (component: string): string => `schema-${component}`;

const joined = (parts: Html[], separator: string): Html[] =>
  parts.flatMap((part, index) => (index === 0 ? [part] : [html`${separator}`, part]));

const choicesOf = (schema: Schema): Json[] => schema.anyOf ?? schema.oneOf ?? [];

const isMap = (schema: Schema): boolean =>
  typeof schema.additionalProperties === "object" && schema.properties === undefined;

/** The kind of a value in a few words; components are links. */
export const kindOf = (json: Json): Html => {
  const schema = Schema.parse(json);
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(componentPath.length);
    return html`<a href="#${anchorOf(name)}">${name}</a>`;
  }
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum)
    return html`${joined(
      schema.enum.map((value) => html`<code>${JSON.stringify(value)}</code>`),
      " | ",
    )}`;
  const choices = choicesOf(schema);
  if (choices.length > 0) return html`${joined(choices.map(kindOf), " | ")}`;
  if (schema.items !== undefined) return html`array of ${kindOf(schema.items)}`;
  if (isMap(schema)) return html`map of ${kindOf(schema.additionalProperties ?? {})}`;
  if (schema.type === undefined) return html`any JSON`;
  return html`${[schema.type].flat().join(" | ")}${schema.format ? ` (${schema.format})` : ""}`;
};

const range = (low: number | undefined, high: number | undefined, unit: string): string[] => {
  const shownHigh = high !== undefined && high < Number.MAX_SAFE_INTEGER ? high : undefined;
  const shownLow = low !== undefined && low > -Number.MAX_SAFE_INTEGER ? low : undefined;
  if (shownLow === undefined && shownHigh === undefined) return [];
  return [`${shownLow ?? "…"}–${shownHigh ?? "…"}${unit}`];
};

const boundsOf = (schema: Schema): string =>
  [
    ...range(schema.minimum, schema.maximum, ""),
    ...range(schema.minLength, schema.maxLength, " characters"),
    ...range(undefined, schema.maxItems, " items"),
    ...(schema.pattern === undefined || schema.pattern.length > 60 ? [] : [schema.pattern]),
    ...(schema.default === undefined ? [] : [`default ${JSON.stringify(schema.default)}`]),
  ].join(" · ");

const field = (name: string, json: Json, isRequired: boolean): Html => {
  const schema = Schema.parse(json);
  const bounds = boundsOf(schema);
  return html`<li>
    <code class="name">${name}</code>${isRequired ? html`<span class="required" title="required">*</span>` : ""}
    <span class="kind">${kindOf(json)}</span>${bounds ? html` <span class="bounds">${bounds}</span>` : ""}
    ${schema.description ? html`<p>${schema.description}</p>` : ""} ${fieldsOf(json)}
  </li>`;
};

/** The fields of an object, or of each of the objects that it may be; nothing for what has none. */
export const fieldsOf = (json: Json): Html => {
  const schema = Schema.parse(json);
  if (schema.properties) {
    const fields = Object.entries(schema.properties);
    return html`<ul class="fields">
      ${fields.map(([name, held]) => field(name, held, schema.required.includes(name)))}
    </ul>`;
  }
  if (schema.items !== undefined) return fieldsOf(schema.items);
  const choices = choicesOf(schema).filter((choice) => Schema.parse(choice).$ref === undefined);
  if (choices.length === 0) return html``;
  return html`${choices.map((choice) => fieldsOf(choice))}`;
};
