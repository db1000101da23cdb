import { beforeAll, describe, expect, inject, test, vi } from "vitest";
import * as z from "zod";
import { Endpoint } from "../../src/protocol/endpoint.ts";
import type { JsonSchema } from "../../src/routes/openapi.ts";
import { initialize } from "../mcp-server/initialize.ts";
import { adminKey, type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { outsideCall, outsideCaller } from "../support/outside-call.ts";
import { question } from "../support/question.ts";
import { carriedMessage, endedRun } from "./inside-things.ts";
import { aDevice, newDevice } from "./me-rows.ts";
import { apiDocument, fill, guestBodies, guestRows, isForOperator, type Operation, operations } from "./operations.ts";

/** Real answers of every operation, held against the schemas that the document tells of them. */

/** As the document says it, but closed: an answer holds no field that is not documented. */
const closed = <Value>(schema: Value): Value =>
  JSON.parse(JSON.stringify(schema).replaceAll("#/components/schemas/", "#/$defs/"), (_, held) =>
    held?.properties && !("additionalProperties" in held) ? { ...held, additionalProperties: false } : held,
  );

const $defs = closed(apiDocument.components.schemas);
const schemaOf = (schema: JsonSchema): z.ZodType => z.fromJSONSchema({ ...closed(schema), $defs });

/** Throws where the answer is not one of those that the operation documents. */
const expectDocumented = async (operation: Operation, answer: Response): Promise<void> => {
  const documented = operation.responses[answer.status];
  const text = await answer.text();
  expect(documented, `${operation.name} answers ${answer.status}: ${text}`).toBeDefined();
  const mediaType = answer.headers.get("content-type")?.split(";")[0] ?? "";
  const content = documented?.content?.[mediaType];
  if (!documented?.content) expect(text).toBe("");
  else expect(content, `${operation.name} answers ${mediaType}`).toBeDefined();
  if (!mediaType.endsWith("json") || !content) return;
  const schema = schemaOf(content.schema);
  for (const json of mediaType.endsWith("x-ndjson") ? text.trimEnd().split("\n") : [text]) {
    const parsed = schema.safeParse(JSON.parse(json));
    expect(parsed.error?.issues ?? [], `${operation.name} ${answer.status}: ${json.slice(0, 500)}`).toEqual([]);
  }
};

let house: House;
let mona: Participant;
let omar: Participant;
let known: Record<string, string>;
let outsideCallId: string;
let signInCode: string;

beforeAll(async () => {
  house = await openHouse();
  mona = await house.person("Mona");
  omar = await house.person("Omar");
  const agentId = (await house.agent({ name: "Analyst", instructions: "Answer." })).id;
  const spaceId = (await house.space("Alpha", [mona, { id: agentId }])).id;
  const message = await house.say(spaceId, mona, "@Analyst hello", { expectsReply: true, clientKey: "c" });
  await house.say(spaceId, mona, "and again", { replyTo: message.id });
  const path = `/v1/agents/${agentId}`;
  const put = (address: string, body: unknown) => call(address, { method: "PUT", bearer: house.secretKey, body });
  const made = <Schema extends z.ZodType>(schema: Schema, address: string, body: unknown) =>
    expectOk(schema, call(address, { bearer: house.secretKey, body }));
  await put(`${path}/memories/tea`, { value: "green" });
  await put(`${path}/goals/q4`, { description: "Finish", priority: 1 });
  await put(`${path}/plans/report`, { name: "Report", instruction: "Report", runAfter: "2 hours" });
  const block = { label: "notes", type: "core", description: "What to remember", content: "Tea at four." };
  await made(z.unknown(), `${path}/blocks`, block);
  await put(`${path}/blocks/notes/spaces/${spaceId}`, {});
  const fact = { content: "Tea is green.", metadata: { sure: true } };
  const archived = await made(z.object({ id: z.string() }), `${path}/archival`, fact);
  const reader = await house.agent({ name: "Reader" });
  await put("/v1/workspace/secrets/KEY", { value: "hunter2" });
  const hook = { scheme: "header", name: "monitor", secret: hookSecret, template: "{{payload.a}}", events: ["a"] };
  const opened = await made(z.object({ hookId: z.string() }), `${path}/hooks`, hook);
  const runId = await endedRun(house, mona, agentId);
  const { link } = await made(z.object({ link: z.string() }), `/v1/entities/${mona.id}/sign-in-links`, "");
  signInCode = link.split("#sign-in=")[1] ?? "";
  outsideCallId = (await outsideCall(house, await outsideCaller(house))).toolCallId;
  const erasureId = (await house.person("Erased")).id;
  await made(z.unknown(), "/v1/erasures", { kind: "person", id: erasureId });
  const endpoint = { url: `${inject("remote")}/echo/answers`, types: ["audit.*"] };
  const told = await made(z.object({ endpoint: Endpoint }), "/v1/workspace/endpoints", endpoint);
  const created = await made(z.object({ key: z.object({ id: z.string() }) }), "/v1/workspace/keys", {});
  known = {
    workspaceId: (await openHouse()).workspaceId,
    agentId,
    spaceId,
    runId,
    messageId: message.id,
    keyId: created.key.id,
    endpointId: told.endpoint.id,
    deviceId: await newDevice(house.secretKey, mona.id),
    entityId: mona.id,
    erasureId,
    toolCallId: await question(house.workspaceId, spaceId, agentId),
    eventId: ids.mintOwned("evt", agentId),
    hookId: opened.hookId,
    key: "tea",
    goalId: "q4",
    planId: "report",
    name: "KEY",
    label: "notes",
    archivalId: archived.id,
    otherAgentId: reader.id,
  };
}, 60_000);

const hookSecret = "a-secret-of-the-sender";
const extraHeaders: Record<string, Record<string, string>> = {
  "POST /v1/hooks/{hookId}": { "x-webhook-secret": hookSecret },
};

const bodies: Record<string, () => unknown> = {
  "POST /v1/workspaces": () => ({ name: "New" }),
  "PATCH /v1/workspace": () => ({ name: "House" }),
  "PATCH /v1/workspace/keys/{keyId}": () => ({ name: "CI" }),
  "POST /v1/workspace/endpoints": () => ({
    ...{ url: "https://receiver.example/hook", types: ["space.*"], spaceIds: [known.spaceId], description: "Desk" },
  }),
  "PATCH /v1/workspace/endpoints/{endpointId}": () => ({ enabled: false }),
  "POST /v1/workspace/endpoints/{endpointId}/redeliver": () => ({ from: "2026-02-18T15:06:55.000Z" }),
  "PUT /v1/workspace/auth": () => ({
    jwks: { keys: [{ kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" }] },
    issuer: "https://issuer.example",
    audience: "colloquy",
  }),
  "POST /v1/operator/workspaces/{workspaceId}/suspend": () => ({ reason: "unpaid" }),
  "PUT /v1/workspace/secrets/{name}": () => ({ value: "x" }),
  "POST /v1/erasures": () => ({ kind: "person", id: known.erasureId }),
  "POST /v1/entities": () => ({ type: "service", name: "Jira", role: "admin", externalId: "j-1" }),
  "PATCH /v1/entities/{entityId}": () => ({ name: "Mona" }),
  "POST /v1/tokens": () => ({ entityId: mona.id }),
  "POST /v1/session": () => ({ code: signInCode }),
  "POST /v1/agents": () => ({ name: "Other", model: { provider: "workers-ai", name: "@cf/x", temperature: 1 } }),
  "POST /v1/imports": () => ({
    format: "colloquy.agent",
    version: 1,
    exportedAt: "2026-02-18T15:06:55.000Z",
    agent: { id: ids.mint("ent"), config: { name: "Imported" }, left: { hooks: 2 } },
  }),
  "PATCH /v1/agents/{agentId}": () => ({ limits: { maxSteps: 3 } }),
  "POST /v1/agents/{agentId}/trigger": () => ({ serviceName: "jira", payload: { a: [1, null] } }),
  "POST /v1/agents/{agentId}/hooks": () => ({ scheme: "standard", name: "billing" }),
  "PATCH /v1/agents/{agentId}/hooks/{hookId}": () => ({ events: null }),
  // The hook's old secret is valid for a while: the delivery after it is taken.
  "POST /v1/agents/{agentId}/hooks/{hookId}/rotate": () => ({}),
  "POST /v1/hooks/{hookId}": () => ({ a: 1 }),
  "PUT /v1/agents/{agentId}/memories/{key}": () => ({ value: "green" }),
  "PUT /v1/agents/{agentId}/goals/{goalId}": () => ({ description: "Finish" }),
  "PUT /v1/agents/{agentId}/plans/{planId}": () => ({ name: "Report", instruction: "Report", cron: "0 9 * * *" }),
  "POST /v1/agents/{agentId}/blocks": () => ({
    label: "todo",
    type: "working",
    pinned: true,
    schema: { type: "list", maxItems: 3 },
    content: ["Call Sara"],
  }),
  "PATCH /v1/agents/{agentId}/blocks/{label}": () => ({
    permission: "Append",
    viewport: { startLine: 1, displayLines: 2 },
  }),
  "POST /v1/agents/{agentId}/blocks/{label}/operations": () => ({
    operations: [{ op: "append_text", text: " Or five." }],
  }),
  "PUT /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}": () => ({ permission: "ReadWrite" }),
  "PUT /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}": () => ({ permission: "Admin" }),
  "POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations": () => ({
    operations: [{ op: "append_text", text: " Or six." }],
  }),
  "POST /v1/agents/{agentId}/archival": () => ({ content: "Tea was black." }),
  "POST /v1/spaces": () => ({ name: "New", members: [{ entityId: mona.id }] }),
  "PATCH /v1/spaces/{spaceId}": () => ({ wakePolicy: "addressed" }),
  "POST /v1/spaces/{spaceId}/members": () => ({ entityId: mona.id }),
  "POST /v1/spaces/{spaceId}/messages": () => ({ text: "hello" }),
  "PATCH /v1/spaces/{spaceId}/messages/{messageId}": () => ({ text: "@Analyst good morning" }),
  "POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result": () => ({ result: { color: "red" } }),
  "POST /v1/tool-calls/{toolCallId}/claim": () => ({ holder: "desk" }),
  "POST /v1/tool-calls/{toolCallId}/result": () => ({ result: { name: "Seven" } }),
  "PATCH /v1/me/settings": () => ({ spaces: { [known.spaceId ?? ""]: { muted: true } } }),
  "POST /v1/me/devices": () => ({ name: "Phone", ...aDevice() }),
  "POST /mcp": initialize,
  "POST /v1/spaces/{spaceId}/read": () => ({ messageId: known.messageId }),
};

/**
 * Deletions come after all other operations, the inner before the outer, and who acts is deleted last. A workspace is
 * resumed once it is suspended, and deleted while it is; a sign-out ends codes that others use.
 */
const isLast = /\/(?:sign-out|suspend)$/;
const lateness = ({ method, path }: Operation): number => {
  if (method === "DELETE") return 2 + 1 / path.length + Number(path.startsWith("/v1/entities"));
  return Number(isLast.test(path));
};
const inOrder = operations.toSorted((one, other) => lateness(one) - lateness(other));
const ordinary = inOrder.filter(({ path }) => !path.endsWith("/stream") && !path.endsWith("/events"));
/** No dead event can be retried or discarded, the run is over, no agent said the message, the space has no router. */
const origin = "GET /v1/spaces/{spaceId}/messages/{messageId}/origin";
const routing = "GET /v1/spaces/{spaceId}/messages/{messageId}/routing";
const refusals = [
  "POST /v1/agents/{agentId}/inbox/{eventId}/retry",
  "DELETE /v1/agents/{agentId}/inbox/{eventId}",
  "POST /v1/agents/{agentId}/runs/{runId}/cancel",
  ...Object.keys(guestRows(() => ({}))),
  origin,
  routing,
];

const ask = (operation: Operation, options: Call = {}): Promise<Response> => {
  const isOperator = isForOperator(operation);
  const body = bodies[operation.name]?.() ?? guestBodies[operation.name];
  const outside = operation.path.startsWith("/v1/tool-calls/") ? { toolCallId: outsideCallId } : {};
  const takes = (name: string): boolean => operation.parameters.some((one) => one.in === "query" && one.name === name);
  const query = takes("q") ? "?q=tea" : takes("callId") ? `?messageId=${known.messageId}` : "";
  return call(`${fill(operation.path, { ...known, ...outside })}${query}`, {
    method: operation.method,
    ...(isOperator ? { bearer: adminKey } : { bearer: house.secretKey, as: mona.id }),
    ...(body === undefined ? {} : { body }),
    ...(extraHeaders[operation.name] ? { headers: extraHeaders[operation.name] } : {}),
    ...options,
  });
};

test("the check finds an undocumented field and a missing one", () => {
  const workspace = { id: ids.mint("wsp"), name: "House", createdAt: "2026-02-18T15:06:55.000Z" };
  const schema = schemaOf({ $ref: "#/components/schemas/Workspace" });
  expect(schema.safeParse(workspace).success).toBe(true);
  expect(schema.safeParse({ ...workspace, keyHash: "x" }).success).toBe(false);
  expect(schema.safeParse({ ...workspace, name: undefined }).success).toBe(false);
});

describe("an answer is as the document says, field by field", () => {
  test.each(ordinary)("$name", async (operation) => {
    const answer = await ask(operation);
    expect(answer.ok).toBe(!refusals.includes(operation.name));
    await expectDocumented(operation, answer);
  });
});

describe("[S4] a refusal is as the document says", () => {
  test.each(operations.filter(({ security }) => security.length > 0))("$name", async (operation) => {
    const path = fill(operation.path, { ...known, agentId: ids.mint("ent"), spaceId: ids.mint("spc") });
    const isOperator = isForOperator(operation);
    const right = isOperator ? { bearer: adminKey } : { bearer: house.secretKey, as: omar.id };
    const send = (options: Call) => call(path, { method: operation.method, ...options });
    await expectDocumented(operation, await send({}));
    await expectDocumented(operation, await send(isOperator ? { bearer: house.secretKey } : { bearer: adminKey }));
    if (/\{(agent|space)Id\}/.test(path) || operation.requestBody) {
      await expectDocumented(operation, await send({ ...right, ...(operation.requestBody ? { body: "{" } : {}) }));
    }
    if (operation.requestBody) await expectDocumented(operation, await send({ ...right, body: { unknown: 1 } }));
    await expectDocumented(
      operation,
      await send({ ...right, as: "ent_nobody", ...(isOperator && operation.requestBody ? { body: 1 } : {}) }),
    );
  });
});

test("what an agent carried, and the message that it answers to, are as documented", async () => {
  const desk = await openHouse();
  const ann = await desk.person("Ann");
  const scout = await desk.agent({ name: "Scout" });
  const path = await carriedMessage(desk, ann, scout.id, [ann]);
  for (const name of [origin, "GET /v1/spaces/{spaceId}/messages", "GET /v1/agents/{agentId}/runs"]) {
    const operation = operations.find((each) => each.name === name);
    if (!operation) throw new Error("the document holds no such operation");
    const address = fill(operation.path, { ...path, agentId: scout.id });
    const answer = await call(address, { bearer: desk.secretKey });
    expect(answer.status).toBe(200);
    await expectDocumented(operation, answer);
  }
});

test("a router and its decision are as documented", async () => {
  const model = { provider: "rehearsal", deltasPerSecond: 0 };
  const settings = { wakePolicy: "addressed", router: { model, instructions: "Rarely." } };
  const desk = await openHouse();
  const [ann, bob] = [await desk.person("Ann"), await desk.person("Bob")];
  const scout = await desk.agent({ name: "Scout", description: "Knows the weather" });
  const space = await desk.space("Desk", [ann, bob, scout], settings);
  const { id: messageId } = await desk.say(space.id, ann, "how is the weather?");
  const operation = operations.find(({ name }) => name === routing);
  const described = operations.find(({ name }) => name === "GET /v1/spaces/{spaceId}");
  if (!operation || !described) throw new Error("the document holds no such operation");
  const path = { spaceId: space.id, messageId };
  const options = { bearer: ann.token };
  const decided = await vi.waitFor(async () => {
    const answer = await call(fill(operation.path, path), options);
    expect(await answer.clone().text()).not.toContain("pending");
    return answer;
  });
  await expectDocumented(operation, decided.clone());
  expect(await decided.json()).toMatchObject({ routing: { messageId, outcome: "woke", agents: [scout.id] } });
  await expectDocumented(described, await call(fill(described.path, path), options));
});
