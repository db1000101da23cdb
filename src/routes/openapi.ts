import type { OpenAPIHono, RouteConfig } from "@hono/zod-openapi";
import { z } from "zod";
import { idPattern } from "../protocol/ids.ts";
import { apiDescription, securitySchemes, tags } from "./api-description.ts";
import { ApiSchemas, type Json, type JsonObject } from "./api-schemas.ts";
import type { House } from "./house.ts";

/**
 * The OpenAPI 3.1 document, made from the very definitions that route and validate. zod itself writes the schemas:
 * what is documented is what is parsed.
 */
export type ApiParameter = { name: string; in: string; required: boolean; description: string; schema: Json };
export type ApiContent = { [mediaType: string]: { schema: Json } };
export type ApiResponse = { description: string; headers?: Json; content?: ApiContent };
export type ApiOperation = {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  security: Record<string, string[]>[];
  /** Who may call it, in words: schemes do not tell an admin from another entity. */
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

const Who = z.string();

const isZod = (schema: unknown): schema is z.ZodType => schema instanceof z.ZodType;

/** All schemas are added first and finished after: only then is it known which component names are taken twice. */
type Unfinished<T> = () => T;

const parametersIn = (schemas: ApiSchemas, place: string, schema: unknown): Unfinished<ApiParameter[]> => {
  if (!isZod(schema)) return () => [];
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

const contentOf = (
  schemas: ApiSchemas,
  content: object | undefined,
  direction: "input" | "output",
): Unfinished<ApiContent> => {
  const added = Object.entries(content ?? {}).map(([mediaType, { schema }]) => ({
    mediaType,
    schema: isZod(schema) ? schemas.add(schema, direction) : undefined,
  }));
  return () =>
    Object.fromEntries(
      added.map(({ mediaType, schema }) => [mediaType, { schema: schema ? schemas.finish(schema) : {} }]),
    );
};

const operationId = (method: string, path: string): string =>
  method + path.replace(/^\/v1/, "").replaceAll(/[^A-Za-z]+([A-Za-z]?)/g, (_, letter: string) => letter.toUpperCase());

/** Which entity a secret key acts as. It is read with the credentials, so no route's schema names it. */
const actingEntity: ApiParameter = {
  name: "x-entity-id",
  in: "header",
  required: false,
  description: "The entity that a secret key acts as",
  schema: { type: "string", pattern: idPattern("ent").source },
};

const operation = (schemas: ApiSchemas, route: RouteConfig): Unfinished<ApiOperation> => {
  const { request } = route;
  const parameters = [
    parametersIn(schemas, "path", request?.params),
    parametersIn(schemas, "query", request?.query),
    parametersIn(schemas, "header", request?.headers),
  ];
  const body = request?.body ? contentOf(schemas, request.body.content, "input") : undefined;
  const responses = Object.entries(route.responses).map(([status, response]) => ({
    status,
    description: "description" in response ? (response.description ?? "") : "",
    headers: "headers" in response ? z.json().parse(response.headers) : undefined,
    content: "content" in response ? contentOf(schemas, response.content, "output") : undefined,
  }));
  return () => ({
    operationId: operationId(route.method, route.path),
    tags: route.tags ?? [],
    summary: route.summary ?? "",
    ...(route.description === undefined ? {} : { description: route.description }),
    security: (route.security ?? []).map((scheme) => ({ ...scheme })),
    "x-who": Who.parse(route["x-who"]),
    parameters: [
      ...parameters.flatMap((finish) => finish()),
      ...((route.security ?? []).some((scheme) => "secretKey" in scheme) ? [actingEntity] : []),
    ],
    ...(body ? { requestBody: { required: true, content: body() } } : {}),
    responses: Object.fromEntries(
      responses.map(({ status, description, headers, content }) => [
        status,
        { description, ...(headers === undefined ? {} : { headers }), ...(content ? { content: content() } : {}) },
      ]),
    ),
  });
};

export const documentApi = (app: OpenAPIHono<House>): ApiDocument => {
  const schemas = new ApiSchemas();
  const routes = app.openAPIRegistry.definitions.flatMap((one) => (one.type === "route" ? [one.route] : []));
  const operations = routes.map((route) => ({ ...route, finish: operation(schemas, route) }));
  const paths: ApiDocument["paths"] = {};
  for (const { path, method, finish } of operations) paths[path] = { ...paths[path], [method]: finish() };
  return {
    openapi: "3.1.0",
    info: apiDescription,
    servers: [{ url: "/" }],
    tags,
    paths,
    components: { schemas: schemas.components(), securitySchemes },
  };
};
