import { z } from "zod";
import { idPattern } from "../protocol/ids.ts";
import { Problem } from "../protocol/problem.ts";
import { type ErrorCode, errorKind } from "../shared/errors.ts";
import { accessDocs, isGuarded } from "./access.ts";
import { ApiSchemas, type Json, type JsonObject } from "./api-schemas.ts";
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
    bearerFormat: "sk_<workspaceId>_<secret>",
    description: "A workspace's secret key. It acts as an entity with `X-Entity-Id: ent_…`.",
  },
  secretKeyHeader: { type: "apiKey", in: "header", name: "x-secret-key", description: "The same secret key" },
  entityToken: { type: "http", scheme: "bearer", bearerFormat: "JWT", description: "A token of POST /v1/tokens" },
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
  { name: "Entities", description: "Who takes part: people, services, and agents." },
  { name: "Agents", description: "Participants that think by themselves. An agent's id is its entity id." },
  { name: "Inbox", description: "What came to an agent and waits, or was given up." },
  { name: "Webhooks", description: "How other systems reach an agent: signed, told apart, each delivery once." },
  { name: "Runs", description: "What an agent did with it, to the exact input of each step." },
  { name: "Blocks", description: "Documents that an agent keeps, shares, and edits with people." },
  { name: "Mind", description: "What an agent keeps: memories, goals and archival entries." },
  { name: "Search", description: "Finding again what was said, done and kept." },
  { name: "Plans", description: "When an agent wakes by itself: once, or again and again." },
  { name: "Spaces", description: "Shared timelines and their members." },
  { name: "Messages", description: "What was said, and how far it was read." },
  { name: "Tool calls", description: "What agents ask of people and of servers." },
  { name: "Stream", description: "A space, live." },
  { name: "Deployment", description: "About this deployment itself." },
];

/** The OpenAPI 3.1 document, made from the definitions that route and validate. zod writes the schemas. */
export type ApiParameter = { name: string; in: string; required: boolean; description: string; schema: Json };
export type ApiContent = { [mediaType: string]: { schema: Json } };
export type ApiResponse = { description: string; headers?: Json; content?: ApiContent };
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
  responses: Record<string, ApiResponse>;
};
export type ApiDocument = {
  openapi: "3.1.0";
  info: typeof apiDescription;
  servers: { url: string }[];
  tags: typeof tags;
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: JsonObject; securitySchemes: typeof securitySchemes };
};

const ObjectSchema = z.looseObject({
  properties: z.record(z.string(), z.record(z.string(), z.json())).default({}),
  required: z.array(z.string()).default([]),
});

/** All schemas are added first and finished after: only then is it known which component names are taken twice. */
type Unfinished<T> = () => T;

const parametersIn = (schemas: ApiSchemas, place: string, schema?: z.ZodType): Unfinished<ApiParameter[]> => {
  if (!schema) return () => [];
  const added = schemas.add(schema, "input");
  return () => {
    const { properties, required } = ObjectSchema.parse(schemas.finish(added));
    return Object.entries(properties).map(([name, { description, example, ...rest }]) => ({
      name,
      in: place,
      required: place === "path" || required.includes(name),
      description: typeof description === "string" ? description : "",
      schema: rest,
      ...(example === undefined ? {} : { example }),
    }));
  };
};

type Content = Record<string, { schema: z.ZodType }>;

const contentOf = (schemas: ApiSchemas, content: Content, direction: "input" | "output"): Unfinished<ApiContent> => {
  const added = Object.entries(content).map(([type, { schema }]) => [type, schemas.add(schema, direction)] as const);
  return () => Object.fromEntries(added.map(([type, schema]) => [type, { schema: schemas.finish(schema) }]));
};

const json = (schema: z.ZodType): Content => ({ "application/json": { schema } });

/** The problems of every guarded route. */
const guardedProblems: ErrorCode[] = [
  "unauthorized",
  "token_expired",
  "forbidden",
  "acting_entity_required",
  "rate_limited",
  "internal",
  "unavailable",
];
const bodyProblems: ErrorCode[] = ["invalid_json", "invalid_request", "payload_too_large"];
const repeatProblems: ErrorCode[] = ["idempotency_mismatch", "idempotency_in_progress"];

const retryAfter = { description: "When to try again, in seconds", schema: { type: "integer" as const } };

type Answer = { description: string; headers?: Json; content?: Content };

/** The problems of a route, by their status. */
const problemsOf = ({ access, problems = [], body, ownBody, idempotent }: Route): Record<number, Answer> => {
  if (access === "public") return {};
  const hasBody = body !== undefined || (ownBody !== undefined && isGuarded(access));
  const codes = new Set([
    ...problems,
    ...(hasBody ? bodyProblems : []),
    ...(idempotent ? repeatProblems : []),
    ...guardedProblems,
  ]);
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

const operationId = (method: string, path: string): string =>
  method + path.replace(/^\/v1/, "").replaceAll(/[^A-Za-z]+([A-Za-z]?)/g, (_, letter: string) => letter.toUpperCase());

/** The entity that a secret key acts as. It is read with the credentials, so no route's schema names it. */
const actingEntity: ApiParameter = {
  name: "x-entity-id",
  in: "header",
  required: false,
  description: "The entity that a secret key acts as",
  schema: { type: "string", pattern: idPattern("ent").source },
};

const operation = (schemas: ApiSchemas, route: Route): Unfinished<ApiOperation> => {
  const { tag, summary, description, ownBody } = route;
  const { who, security } = accessDocs[route.access];
  const hasParams = Object.keys(route.params.shape).length > 0;
  const parameters = [
    parametersIn(schemas, "path", hasParams ? route.params : undefined),
    parametersIn(schemas, "query", route.query),
    parametersIn(schemas, "header", route.headers),
  ];
  const content = ownBody ?? (route.body && json(route.body));
  const body = content && contentOf(schemas, content, "input");
  const responses = Object.entries(answersOf(route)).map(
    ([status, { content: held, ...answer }]) => [status, answer, held && contentOf(schemas, held, "output")] as const,
  );
  return () => ({
    operationId: operationId(route.method.toLowerCase(), route.path),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security,
    "x-who": who,
    parameters: [
      ...parameters.flatMap((finish) => finish()),
      ...(security.some((scheme) => "secretKey" in scheme) ? [actingEntity] : []),
    ],
    ...(body ? { requestBody: { required: true, content: body() } } : {}),
    responses: Object.fromEntries(
      responses.map(([status, answer, held]) => [status, { ...answer, ...(held ? { content: held() } : {}) }]),
    ),
  });
};

export const documentApi = (routes: Route[]): ApiDocument => {
  const schemas = new ApiSchemas();
  const operations = routes.map((route) => ({ ...route, finish: operation(schemas, route) }));
  const paths: ApiDocument["paths"] = {};
  for (const { path, method, finish } of operations) {
    paths[path] = { ...paths[path], [method.toLowerCase()]: finish() };
  }
  return {
    openapi: "3.1.0",
    info: apiDescription,
    servers: [{ url: "/" }],
    tags,
    paths,
    components: { schemas: schemas.components(), securitySchemes },
  };
};
