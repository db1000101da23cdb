import * as z from "zod";
import { ColloquyError } from "../shared/errors.ts";
import { type ApiRequest, type JsonObject, jsonOf, type Tool } from "./toolset.ts";

/**
 * A tool that is one route of the API: its input is the path's parameters, the query, the headers and the fields of the
 * body, side by side. The route itself checks them.
 */
export type ApiRoute = {
  /** Its operation in the OpenAPI document. */
  operationId: string;
  method: string;
  /** Such as `/v1/spaces/{spaceId}`. */
  path: string;
  summary: string;
  description?: string;
  params: z.ZodObject;
  query?: z.ZodObject | undefined;
  headers?: z.ZodObject | undefined;
  body?: z.ZodType | undefined;
};

/** Other words for the tool than the route's own. */
type Wording = { name?: string; title?: string; description?: string };

const camelCase = (header: string): string => header.replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

/** As the OpenAPI document has it: format and bounds of a field say it all. */
export const schemaOf = (schema: z.ZodType): z.core.JSONSchema.JSONSchema => {
  const {
    $schema: _dialect,
    $defs = {},
    ...json
  } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
    },
  });
  // zod's name for a schema that refers to itself and has no id: here that is any JSON value.
  const defs = Object.entries($defs).map(([name, held]) => [name, /^__schema\d+$/.test(name) ? {} : held]);
  return defs.length === 0 ? json : { ...json, $defs: Object.fromEntries(defs) };
};

/** The fields of a body, where it is an object and not one of several. */
const fieldsOf = (body: z.core.JSONSchema.JSONSchema | undefined) =>
  body?.type === "object" && body.properties ? body : undefined;

/** The input's schema, and whether the body's fields stand in it one by one. */
const inputSchemaOf = ({ params, query, headers, body }: ApiRoute) => {
  const named = Object.entries(headers?.shape ?? {}).map(([name, schema]) => [camelCase(name), schema]);
  const own = { ...params.shape, ...query?.shape, ...Object.fromEntries(named) };
  const { properties = {}, required = [], $defs = {}, ...rest } = schemaOf(z.object(body ? { ...own, body } : own));
  const { body: held, ...others } = properties;
  const reference = typeof held === "object" ? held.$ref?.slice("#/$defs/".length) : undefined;
  const { [reference ?? ""]: referred, ...left } = $defs;
  const fields = fieldsOf(referred ?? (typeof held === "object" ? held : undefined));
  const isApart = !fields || Object.keys(fields.properties ?? {}).some((name) => Object.hasOwn(others, name));
  const defs = isApart ? $defs : left;
  const schema = {
    ...rest,
    type: "object" as const,
    properties: isApart ? properties : { ...others, ...fields.properties },
    required: isApart ? required : [...required.filter((name) => name !== "body"), ...(fields.required ?? [])],
    ...(Object.keys(defs).length > 0 && { $defs: defs }),
    additionalProperties: false,
  };
  return { schema, isApart };
};

const refused = (name: string, rule: string): ColloquyError =>
  new ColloquyError("invalid_request", `In the input: ${name} ${rule}.`, { issues: [{ path: name, message: rule }] });

/** A value in an address or a header. Only the route knows what it may be, but not each can stand there. */
const textOf = (name: string, value: unknown): string => {
  if (value === undefined) throw refused(name, "is missing");
  const text = typeof value === "number" || typeof value === "boolean" ? String(value) : value;
  if (typeof text === "string" && text.isWellFormed()) return text;
  throw refused(name, "must be a text");
};

/** One step of a path: no other text than these leads elsewhere. */
const stepOf = (name: string, value: unknown): string => {
  const text = textOf(name, value);
  if (["", ".", ".."].includes(text)) throw refused(name, "must not be empty or dots");
  return encodeURIComponent(text);
};

const headerOf = (name: string, value: unknown): string => {
  const text = textOf(name, value);
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  throw refused(name, "must be visible ASCII characters");
};

/** The request that a call is. A field that no part of the route knows goes where the route refuses it by name. */
const requestOf = (route: ApiRoute, isApart: boolean, input: JsonObject): ApiRequest => {
  const { method, params, query, body } = route;
  const headerNames = new Map(Object.keys(route.headers?.shape ?? {}).map((name) => [camelCase(name), name]));
  const sought = new URLSearchParams();
  const headers: Record<string, string> = {};
  const fields: JsonObject = {};
  for (const [name, value] of Object.entries(input)) {
    const header = headerNames.get(name);
    if (Object.hasOwn(params.shape, name)) continue;
    if (header !== undefined) headers[header] = headerOf(name, value);
    else if (body && !Object.hasOwn(query?.shape ?? {}, name) && (!isApart || name === "body")) fields[name] = value;
    else sought.set(name, textOf(name, value));
  }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => stepOf(name, input[name]));
  return {
    ...{ method, headers, path: sought.size > 0 ? `${path}?${sought}` : path },
    ...(body && { body: isApart ? (fields.body ?? {}) : fields }),
  };
};

export const routeTool = (route: ApiRoute, { name, title, description }: Wording = {}): Tool => {
  const { schema, isApart } = inputSchemaOf(route);
  const [isRead, isDeletion] = [route.method === "GET", route.method === "DELETE"];
  return {
    name: name ?? route.operationId,
    title: title ?? route.summary,
    description: description ?? [route.summary, route.description].filter((part) => part !== undefined).join(". "),
    inputSchema: schema,
    annotations: {
      readOnlyHint: isRead,
      ...(!isRead && { destructiveHint: isDeletion, idempotentHint: isDeletion || route.method === "PUT" }),
      openWorldHint: false,
    },
    call: async (input, { ask, signal }) =>
      (await jsonOf(await ask({ ...requestOf(route, isApart, input), signal }))) ?? { done: true },
  };
};
