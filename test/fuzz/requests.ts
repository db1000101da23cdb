import fc from "fast-check";
import { apiDocument, isForOperator, type Operation, operations } from "../routes/operations.ts";
import { fromSchema } from "./from-schema.ts";
import { broken, hostileJson, hostileText, type Json, mutated } from "./hostile.ts";

/** Requests to every operation of the API's own document, from valid ones to nonsense. Ids are marks of a stage. */
export type FuzzedRequest = {
  operation: string;
  method: string;
  path: string;
  bearer: string;
  headers: Record<string, string>;
  /** `bytes` as Latin-1, where the body is no text. */
  body?: { text: string; how: "plain" | "chunked" | "latin1" | "utf16" };
};

const pathMarks: Record<string, string[]> = {
  agentId: ["@agent0@", "@agent0@", "@agent1@"],
  entityId: ["@ent0@", "@ent1@", "@ent2@", "@agent1@"],
  spaceId: ["@spc0@", "@spc0@", "@spc1@"],
  keyId: ["@key0@"],
  erasureId: ["@ent0@", "@ent2@", "@spc1@", "@wsp@"],
  runId: ["@run0@"],
  eventId: ["@evt0@"],
  messageId: ["@msg0@", "@msg1@"],
  hookId: ["@hook0@", "@hook1@", "@hook2@"],
  toolCallId: ["@asked0@", "@tc0@", "@approval0@"],
};
const foreignMarks = ["@otherEnt@", "@otherSpc@", "@otherMsg@", "@never@", "@neverEnt@", "@wsp@", "@msg0@", "@agent0@"];
const namesInPaths = ["a-name", "b_2", "x".repeat(64), "x".repeat(65), "__proto__", "constructor"];

const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());
const rawPart = fc.oneof(
  fc.constantFrom(
    "%",
    "%ff",
    "%00",
    "%2F",
    "..",
    ".",
    "a b",
    "%E0%A4%A",
    "x;y",
    "*",
    "%ud800",
    "@asked0@%00",
    "@spc0@x",
  ),
  hostileText.map(encoded),
);

const pathPart = (name: string): fc.Arbitrary<string> => {
  const marks = pathMarks[name];
  return fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...(marks ?? namesInPaths)) },
    { weight: 2, arbitrary: fc.constantFrom(...foreignMarks) },
    { weight: 1, arbitrary: rawPart },
  );
};

const queryValue = fc.oneof(
  fc.constantFrom(
    "1",
    "100",
    "0",
    "-1",
    "1e3",
    "0x10",
    " 5",
    "5 ",
    "",
    "999999999999999999",
    "waiting",
    "agent",
    "%",
    "%FF",
  ),
  hostileText.map(encoded),
);

const headerText = fc.oneof(
  fc.constantFrom("key-1", "key-2", "key-3", "", "x".repeat(255), "x".repeat(256), "a b", "__proto__"),
  fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 40 }),
);

const contentType = fc.oneof(
  { weight: 12, arbitrary: fc.constant("application/json") },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      "application/json; charset=utf-16",
      "APPLICATION/JSON",
      "text/json",
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data",
      "multipart/form-data; boundary=x",
      "application/vnd.api+json",
      "application/json, text/html",
      ";",
      "",
    ),
  },
);

const otherHeaders = fc.dictionary(
  fc.constantFrom(
    "x-secret-key",
    "accept",
    "content-encoding",
    "last-event-id",
    "x-colloquy-principal",
    "origin",
    "access-control-request-method",
    "range",
    "if-match",
    "x-forwarded-for",
    "cookie",
  ),
  headerText,
  { maxKeys: 2 },
);

const idempotencyKey = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  { weight: 2, arbitrary: fc.constantFrom("key-1", "key-2", "key-3") },
  { weight: 1, arbitrary: headerText },
);

const actingAs = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(undefined, "@ent0@") },
  {
    weight: 1,
    arbitrary: fc.oneof(fc.constantFrom("@agent0@", "@ent2@", "@otherEnt@", "@neverEnt@", "@spc0@"), headerText),
  },
);

const bearer = (operation: Operation): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 10, arbitrary: fc.constant(isForOperator(operation) ? "operator" : "key") },
    { weight: 3, arbitrary: fc.constantFrom("mona", "boss") },
    { weight: 1, arbitrary: fc.constantFrom("stranger", "otherKey", "foreigner", "operator", "none") },
  );

const how = fc.oneof(
  { weight: 12, arbitrary: fc.constant("plain" as const) },
  { weight: 1, arbitrary: fc.constantFrom("chunked" as const, "latin1" as const, "utf16" as const) },
);

const bodyOf = (operation: Operation): fc.Arbitrary<FuzzedRequest["body"]> => {
  const content = operation.requestBody?.content["application/json"];
  const schema: fc.Arbitrary<Json> = content ? fromSchema(content.schema, apiDocument.components.schemas) : hostileJson;
  const text = fc.oneof(
    { weight: 9, arbitrary: schema.map((value) => JSON.stringify(value)) },
    { weight: 6, arbitrary: mutated(schema).map((value) => JSON.stringify(value)) },
    { weight: 2, arbitrary: broken(schema) },
    { weight: 1, arbitrary: hostileJson.map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: hostileText },
  );
  const body = fc.record({ text, how });
  return operation.requestBody
    ? body
    : fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: body });
};

const requestOf = (operation: Operation): fc.Arbitrary<FuzzedRequest> => {
  const names = operation.path.match(/\{[^}]+\}/g) ?? [];
  const queries = operation.parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name);
  return fc
    .record({
      parts: fc.tuple(...names.map((name) => pathPart(name.slice(1, -1)))),
      query: fc.array(fc.tuple(fc.constantFrom(...queries, "cursor", "limit", "token", "__proto__"), queryValue), {
        maxLength: queries.length > 0 ? 2 : 1,
      }),
      asked: fc.boolean(),
      bearer: bearer(operation),
      as: actingAs,
      idempotencyKey,
      type: contentType,
      other: fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: otherHeaders }),
      body: bodyOf(operation),
    })
    .map(({ parts, query, asked, as, idempotencyKey: key, type, other, body, ...rest }) => {
      const given: string[] = [...parts];
      const path = operation.path.replaceAll(/\{[^}]+\}/g, () => given.shift() ?? "");
      const search = asked && query.length > 0 ? `?${query.map(([name, value]) => `${name}=${value}`).join("&")}` : "";
      return {
        operation: operation.name,
        method: operation.method,
        path: path + search,
        ...rest,
        headers: {
          ...other,
          ...(as === undefined ? {} : { "x-entity-id": as }),
          ...(key === undefined ? {} : { "idempotency-key": key }),
          ...(body === undefined || type === "" ? {} : { "content-type": type }),
          ...(operation.path.endsWith("/stream") ? { upgrade: "websocket" } : {}),
        },
        ...(body === undefined ? {} : { body }),
      };
    });
};

/** Webhook deliveries have their own inputs. */
const asked = operations.filter(({ path }) => path !== "/v1/hooks/{hookId}");
/**
 * Operations that take much input are asked more often than those that take an id. Those that answer everybody the
 * same, or that leave nothing to ask next, are asked seldom.
 */
const weightOf = ({ method, path, requestBody, security }: Operation): number => {
  if (
    security.length === 0 ||
    path === "/v1/erasures" ||
    (method === "DELETE" && /(agents|spaces|entities)\/\{\w+\}$/.test(path))
  )
    return 1;
  if (!requestBody) return 8;
  return /agents$|\{agentId\}$|plans|hooks|spaces$|\{spaceId\}$/.test(path) ? 50 : 25;
};

const request: fc.Arbitrary<FuzzedRequest> = fc.oneof(
  ...asked.map((operation) => ({ weight: weightOf(operation), arbitrary: requestOf(operation) })),
);

export const requestsOf = (seed: number, count: number): FuzzedRequest[] =>
  fc.sample(request, { seed, numRuns: count });

/** One to every operation that there is, however seldom it is asked else. */
export const oneOfEach = (seed: number): FuzzedRequest[] =>
  asked.flatMap((operation) => fc.sample(requestOf(operation), { seed, numRuns: 1 }));
