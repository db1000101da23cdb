import * as z from "zod";
import { idPattern } from "../protocol/ids.ts";
import { type ErrorCode, errorKind, Problem } from "../shared/errors.ts";
import { accesses, isGuarded, scopesOf } from "./access.ts";
import { MindQuery } from "./mind-query.ts";
import type { Route } from "./route.ts";

/** The parts of the OpenAPI document that belong to no route. */
const apiDescription = {
  title: "Colloquy",
  version: "1",
  description:
    "Spaces that people and AI agents share. Errors are RFC 9457 problem documents with a `code` of a closed list; lists answer `{items, nextCursor}`; every POST that creates takes `Idempotency-Key`. Pages of any origin may call it; a body nests at most 64 levels.",
};

const securitySchemes = {
  operatorKey: { type: "http", scheme: "bearer", description: "The operator's ADMIN_KEY" },
  secretKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "sk_<workspaceId>_<the key id's own part>_<secret>",
    description: "A workspace's secret key. It acts as an entity with `X-Entity-Id: ent_…`.",
  },
  secretKeyHeader: { type: "apiKey", in: "header", name: "x-secret-key", description: "The same secret key" },
  entityToken: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A token of POST /v1/tokens" },
  guestToken: {
    ...{ type: "http", scheme: "bearer", bearerFormat: "JWT" },
    description: "A guest agent's token of POST /v1/tokens: for its own runs alone",
  },
  sessionCookie: {
    type: "apiKey",
    in: "cookie",
    name: "colloquy_session",
    description: "A browser's session (POST /v1/session), from its own origin; `__Host-colloquy_session` over https",
  },
  queryToken: {
    type: "apiKey",
    in: "query",
    name: "token",
    description: "For browsers, which cannot set headers here",
  },
} as const;

const tags = [
  { name: "Workspace", description: "A tenant: entities, spaces, agents, keys and secrets that belong together." },
  { name: "Keys and secrets", description: "What opens the workspace, and what its models and tools may use." },
  { name: "Endpoints", description: "How other systems are told what happens: outgoing webhooks." },
  { name: "Entities", description: "Who takes part: people, services, and agents." },
  { name: "Sessions", description: "How a person signs in to the page: a link, once, then a cookie." },
  { name: "Agents", description: "Participants that think by themselves. An agent's id is its entity id." },
  { name: "Inbox", description: "What came to an agent and waits, or was given up." },
  { name: "Webhooks", description: "How other systems reach an agent: signed, told apart, each delivery once." },
  { name: "Runs", description: "What an agent did with it, to the exact input of each step." },
  { name: "Guests", description: "Agents whose thinking a program from outside does: it claims their runs." },
  { name: "Blocks", description: "Documents that an agent keeps, shares, and edits with people." },
  { name: "Memory state", description: "What an agent keeps: memories, goals and archival entries." },
  { name: "Search", description: "Finding again what was said, done and kept." },
  { name: "Plans", description: "When an agent wakes by itself: once, or again and again." },
  { name: "Spaces", description: "Shared timelines and their members." },
  { name: "Messages", description: "What was said, and how far it was read." },
  { name: "Tool calls", description: "What agents ask of people and of servers." },
  { name: "Me", description: "What a person is alerted to, and the devices that are told by Web Push." },
  { name: "Stream", description: "A space, live." },
  { name: "MCP", description: "For assistants that speak the Model Context Protocol." },
  { name: "Operator", description: "What who runs the deployment may do to its workspaces, and see of them." },
  { name: "Deployment", description: "About this deployment itself." },
];

/** The OpenAPI 3.1 document, made from the definitions that route and validate. zod writes the schemas. */
export type JsonSchema = z.core.JSONSchema.JSONSchema;
export type ApiParameter = { name: string; in: string; required: boolean; description: string; schema: JsonSchema };
type ApiContent = { [mediaType: string]: { schema: JsonSchema } };
type ApiHeaders = Record<string, { description: string; schema: JsonSchema }>;
export type ApiOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  /** The callers in words: schemes do not tell an admin from another entity. */
  "x-who": string;
  parameters: ApiParameter[];
  requestBody?: { required: boolean; content: ApiContent };
  responses: Record<string, { description: string; headers?: ApiHeaders; content?: ApiContent }>;
};
export type ApiDocument = {
  openapi: "3.1.0";
  info: typeof apiDescription;
  servers: { url: string }[];
  tags: typeof tags;
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: Record<string, JsonSchema>; securitySchemes: typeof securitySchemes };
};

type Direction = "input" | "output";

export const componentPath = "#/components/schemas/";

/** A copy in which every reference is another one. */
const withReferences = <Value>(value: Value, rename: (reference: string) => string): Value =>
  JSON.parse(JSON.stringify(value), (key, held) => (key === "$ref" ? rename(held) : held));

const withoutStrictness = (schema: JsonSchema | undefined): string =>
  JSON.stringify(schema, (key, value) => (key === "additionalProperties" && value === false ? undefined : value));

/**
 * The schemas of a document. A schema with `.meta({id})` becomes a component; where what is accepted and what is answered
 * differ (defaults), the answered one is `<id>Output`. Which ones do is known once all schemas were added, so until
 * then a reference is `#/input/<id>` or `#/output/<id>`.
 */
class ApiSchemas {
  readonly #definitions: Record<Direction, Map<string, JsonSchema>> = { input: new Map(), output: new Map() };

  /** A schema in place; its components are kept. */
  add(schema: z.ZodType, io: Direction): JsonSchema {
    const {
      $schema: _dialect,
      $defs,
      ...rest
    } = z.toJSONSchema(schema, {
      io,
      unrepresentable: "any",
      override: ({ jsonSchema }) => {
        // Readable over exhaustive: format and bounds say it all. And what we answer may gain fields.
        if (jsonSchema.format === "date-time" || jsonSchema.type === "integer") delete jsonSchema.pattern;
        if (io === "output" && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      },
    });
    for (const [name, definition] of Object.entries($defs ?? {})) this.#definitions[io].set(name, definition);
    return this.#directed(rest, io);
  }

  /** All components, by name. */
  components(): Record<string, JsonSchema> {
    const all = (["input", "output"] as const).flatMap((io) =>
      [...this.#definitions[io]].map(([name, { id: _id, ...schema }]) => {
        return [this.nameOf(`#/${io}/${name}`), this.#directed(schema, io)] as const;
      }),
    );
    return Object.fromEntries(all.sort(([one], [other]) => one.localeCompare(other)));
  }

  /** The component that a reference means. */
  nameOf(reference: string): string {
    const [, direction, name = ""] = reference.split("/");
    // zod's name for a schema that refers to itself and has no id: here that is any JSON value.
    if (/^__schema\d+$/.test(name)) return "JsonValue";
    const [input, output] = [this.#definitions.input.get(name), this.#definitions.output.get(name)];
    const differs = input && output && withoutStrictness(input) !== withoutStrictness(output);
    return direction === "output" && differs ? `${name}Output` : name;
  }

  #directed(schema: JsonSchema, io: Direction): JsonSchema {
    return withReferences(schema, (reference) => reference.replace("#/$defs/", `#/${io}/`));
  }
}

const parametersIn = (schemas: ApiSchemas, place: string, schema?: z.ZodType): ApiParameter[] => {
  const { properties = {}, required = [] } = schema ? schemas.add(schema, "input") : {};
  return Object.entries(properties).map(([name, property]) => {
    const { description = "", example, ...rest } = typeof property === "object" ? property : {};
    return {
      name,
      in: place,
      required: place === "path" || required.includes(name),
      description,
      schema: rest,
      ...(example === undefined ? {} : { example }),
    };
  });
};

type Content = Record<string, { schema: z.ZodType }>;

const contentOf = (schemas: ApiSchemas, content: Content, direction: Direction): ApiContent =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema }]) => [type, { schema: schemas.add(schema, direction) }]),
  );

const json = (schema: z.ZodType): Content => ({ "application/json": { schema } });

/** The problems of every guarded route: an unknown field in the query is an `invalid_request`. */
const guardedProblems: ErrorCode[] = [
  "invalid_request",
  "unauthorized",
  "token_expired",
  "forbidden",
  "acting_entity_required",
  "signed_in",
  "rate_limited",
  "internal",
  "unavailable",
];
const bodyProblems: ErrorCode[] = ["invalid_json", "payload_too_large"];
const repeatProblems: ErrorCode[] = ["idempotency_mismatch", "idempotency_in_progress", "gone"];

const retryAfter = { description: "When to try again, in seconds", schema: { type: "integer" as const } };

type Answer = { description: string; headers?: ApiHeaders; content?: Content };

/** The problems of a route, by their status. */
const problemsOf = ({ access, problems = [], body, ownBody, idempotent }: Route): Record<number, Answer> => {
  const hasBody = body !== undefined || (ownBody !== undefined && isGuarded(access));
  const codes = new Set(
    access === "public"
      ? [...problems, "rate_limited" as const]
      : [...problems, ...(hasBody ? bodyProblems : []), ...(idempotent ? repeatProblems : []), ...guardedProblems],
  );
  return Object.fromEntries(
    [...Map.groupBy(codes, (code) => errorKind(code).status)].map(([status, all]) => [
      status,
      {
        description: all.map((code) => `\`${code}\`: ${errorKind(code).title}`).join("; "),
        ...(all.some((code) => errorKind(code).retryable) ? { headers: { "Retry-After": retryAfter } } : {}),
        content: { "application/problem+json": { schema: Problem } },
      },
    ]),
  );
};

const answersOf = (route: Route): Record<number, Answer> => {
  const { answers, status = 200, responses } = route;
  return {
    ...(answers ? { [status]: { description: answers[1], content: json(answers[0]) } } : {}),
    ...(answers || responses ? {} : { 204: { description: "Done; the answer has no body" } }),
    ...responses,
    ...problemsOf(route),
  };
};

export const operationId = (method: string, path: string): string =>
  method + path.replace(/^\/v1/, "").replaceAll(/[^A-Za-z]+([A-Za-z]?)/g, (_, letter: string) => letter.toUpperCase());

/** The entity that a caller acts as. It is read with the credentials, so no route's schema names it. */
const actingEntity: ApiParameter = {
  name: "x-entity-id",
  in: "header",
  required: false,
  description: "The entity that a secret key acts as; whose session the page takes the cookie for",
  schema: { type: "string", pattern: idPattern("ent").source },
};

const operation = (schemas: ApiSchemas, route: Route): ApiOperation => {
  const { tag, summary, description, ownBody } = route;
  const { who, security } = accesses[route.access];
  const forKeys = security.some((scheme) => "secretKey" in scheme);
  const scopes = ["full", ...scopesOf(route.method, route.scope)];
  const body = ownBody ?? (route.body && json(route.body));
  return {
    operationId: operationId(route.method.toLowerCase(), route.path),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security,
    "x-who": forKeys ? `${who}; of keys, those of scope ${scopes.join(", ")}` : who,
    parameters: [
      ...parametersIn(schemas, "path", route.params),
      ...parametersIn(schemas, "query", route.query),
      ...parametersIn(schemas, "query", route.mind && MindQuery),
      ...parametersIn(schemas, "header", route.headers),
      ...(forKeys ? [actingEntity] : []),
    ],
    ...(body ? { requestBody: { required: true, content: contentOf(schemas, body, "input") } } : {}),
    responses: Object.fromEntries(
      Object.entries(answersOf(route)).map(([status, { content, ...answer }]) => [
        status,
        { ...answer, ...(content ? { content: contentOf(schemas, content, "output") } : {}) },
      ]),
    ),
  };
};

export const documentApi = (routes: Route[]): ApiDocument => {
  const schemas = new ApiSchemas();
  const paths: ApiDocument["paths"] = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(schemas, route) };
  }
  const components = { schemas: schemas.components(), securitySchemes };
  const document = {
    openapi: "3.1.0" as const,
    info: apiDescription,
    servers: [{ url: "/" }],
    tags,
    paths,
    components,
  };
  return withReferences(document, (reference) => componentPath + schemas.nameOf(reference));
};
