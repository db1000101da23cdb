import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { app } from "../../src/routes/app.ts";
import { call } from "../support/house.ts";
import { apiDocument, guarded, operations, problemIn } from "./operations.ts";

/** The routes that are promised so far, and no others. */
const promised = `
POST /v1/workspaces
GET /v1/workspace
PATCH /v1/workspace
GET /v1/workspace/audit
GET /v1/workspace/audit/export
POST /v1/erasures
GET /v1/erasures
GET /v1/erasures/{erasureId}
GET /v1/workspace/keys
POST /v1/workspace/keys
PATCH /v1/workspace/keys/{keyId}
POST /v1/workspace/keys/{keyId}/roll
DELETE /v1/workspace/keys/{keyId}
POST /v1/workspace/endpoints
GET /v1/workspace/endpoints
PATCH /v1/workspace/endpoints/{endpointId}
DELETE /v1/workspace/endpoints/{endpointId}
POST /v1/workspace/endpoints/{endpointId}/roll
GET /v1/workspace/endpoints/{endpointId}/deliveries
POST /v1/workspace/endpoints/{endpointId}/redeliver
PUT /v1/workspace/auth
GET /v1/workspace/auth
DELETE /v1/workspace/auth
GET /v1/workspace/secrets
PUT /v1/workspace/secrets/{name}
DELETE /v1/workspace/secrets/{name}
POST /v1/entities
GET /v1/entities
GET /v1/entities/{entityId}
PATCH /v1/entities/{entityId}
DELETE /v1/entities/{entityId}
POST /v1/tokens
POST /v1/entities/{entityId}/sign-in-links
POST /v1/entities/{entityId}/sign-out
GET /v1/session
POST /v1/session
DELETE /v1/session
POST /v1/agents
GET /v1/agents
POST /v1/imports
GET /v1/agents/{agentId}
PATCH /v1/agents/{agentId}
DELETE /v1/agents/{agentId}
GET /v1/agents/{agentId}/compartments
GET /v1/agents/{agentId}/export
POST /v1/agents/{agentId}/trigger
GET /v1/agents/{agentId}/inbox
POST /v1/agents/{agentId}/inbox/{eventId}/retry
DELETE /v1/agents/{agentId}/inbox/{eventId}
POST /v1/agents/{agentId}/dead-events/retry
POST /v1/agents/{agentId}/hooks
GET /v1/agents/{agentId}/hooks
PATCH /v1/agents/{agentId}/hooks/{hookId}
POST /v1/agents/{agentId}/hooks/{hookId}/rotate
DELETE /v1/agents/{agentId}/hooks/{hookId}
POST /v1/hooks/{hookId}
GET /v1/agents/{agentId}/runs
GET /v1/agents/{agentId}/runs/{runId}
POST /v1/agents/{agentId}/runs/{runId}/cancel
GET /v1/agents/{agentId}/toolset
POST /v1/agents/{agentId}/claims
POST /v1/agents/{agentId}/runs/{runId}/calls
POST /v1/agents/{agentId}/runs/{runId}/speech
POST /v1/agents/{agentId}/runs/{runId}/complete
POST /v1/agents/{agentId}/runs/{runId}/skip
POST /v1/agents/{agentId}/runs/{runId}/fail
POST /v1/agents/{agentId}/runs/{runId}/renew
GET /v1/agents/{agentId}/runtime
GET /v1/agents/{agentId}/context
GET /v1/agents/{agentId}/knows
GET /v1/agents/{agentId}/memories
PUT /v1/agents/{agentId}/memories/{key}
DELETE /v1/agents/{agentId}/memories/{key}
GET /v1/agents/{agentId}/goals
PUT /v1/agents/{agentId}/goals/{goalId}
DELETE /v1/agents/{agentId}/goals/{goalId}
GET /v1/agents/{agentId}/plans
PUT /v1/agents/{agentId}/plans/{planId}
DELETE /v1/agents/{agentId}/plans/{planId}
POST /v1/agents/{agentId}/blocks
GET /v1/agents/{agentId}/blocks
GET /v1/agents/{agentId}/blocks/{label}
PATCH /v1/agents/{agentId}/blocks/{label}
DELETE /v1/agents/{agentId}/blocks/{label}
POST /v1/agents/{agentId}/blocks/{label}/operations
GET /v1/agents/{agentId}/blocks/{label}/history
GET /v1/agents/{agentId}/blocks/{label}/stream
GET /v1/agents/{agentId}/blocks/{label}/shares
PUT /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}
DELETE /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}
GET /v1/agents/{agentId}/blocks/{label}/spaces
PUT /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}
DELETE /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}
GET /v1/spaces/{spaceId}/blocks
GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}
POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations
GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/history
GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/stream
POST /v1/agents/{agentId}/archival
GET /v1/agents/{agentId}/archival
DELETE /v1/agents/{agentId}/archival/{archivalId}
GET /v1/agents/{agentId}/search
GET /v1/search
POST /v1/spaces
GET /v1/spaces
GET /v1/spaces/{spaceId}
GET /v1/needs-you
PATCH /v1/spaces/{spaceId}
DELETE /v1/spaces/{spaceId}
POST /v1/spaces/{spaceId}/members
DELETE /v1/spaces/{spaceId}/members/{entityId}
GET /v1/spaces/{spaceId}/messages
POST /v1/spaces/{spaceId}/messages
POST /v1/spaces/{spaceId}/read
PATCH /v1/spaces/{spaceId}/messages/{messageId}
DELETE /v1/spaces/{spaceId}/messages/{messageId}
GET /v1/spaces/{spaceId}/messages/{messageId}/reads
GET /v1/spaces/{spaceId}/messages/{messageId}/origin
GET /v1/spaces/{spaceId}/messages/{messageId}/routing
POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result
GET /v1/tool-calls
POST /v1/tool-calls/{toolCallId}/claim
POST /v1/tool-calls/{toolCallId}/result
GET /v1/spaces/{spaceId}/stream
GET /v1/spaces/{spaceId}/events
GET /v1/me/settings
PATCH /v1/me/settings
GET /v1/me/devices
POST /v1/me/devices
DELETE /v1/me/devices/{deviceId}
GET /v1/push-key
GET /v1/stream
GET /v1/events
GET /healthz
GET /v1/workspace/secrets/{name}/uses
GET /readyz
GET /metrics
GET /v1/operator/workspaces
GET /v1/operator/workspaces/{workspaceId}
DELETE /v1/operator/workspaces/{workspaceId}
GET /v1/operator/workspaces/{workspaceId}/limits
GET /v1/operator/workspaces/{workspaceId}/usage
GET /v1/usage
PUT /v1/operator/workspaces/{workspaceId}/limits
POST /v1/operator/workspaces/{workspaceId}/suspend
POST /v1/operator/workspaces/{workspaceId}/resume
POST /v1/operator/workspaces/{workspaceId}/reseal
GET /v1/operator/workspaces/{workspaceId}/reseal
POST /mcp
GET /.well-known/oauth-protected-resource
GET /.well-known/oauth-protected-resource/mcp
GET /openapi.json
GET /docs`;

test("the document holds the promised routes, and no others", () => {
  const names = operations.map((operation) => operation.name);
  expect(names.toSorted()).toEqual(promised.trim().split("\n").toSorted());
  expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(operations.length);
});

test("the document is OpenAPI 3.1 whose references all lead somewhere", async () => {
  const served = await call("/openapi.json");
  expect(served.headers.get("content-type")).toContain("application/json");
  const text = await served.text();
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(apiDocument)));
  expect(apiDocument.openapi).toBe("3.1.0");
  const references = [...text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name ?? "");
  expect(references.length).toBeGreaterThan(100);
  for (const name of references) expect(Object.keys(apiDocument.components.schemas)).toContain(name);
  expect(text).not.toContain("__schema");
  expect(text).not.toContain("$defs");
  expect(Object.keys(apiDocument.components.schemas)).toEqual(
    expect.arrayContaining(["Workspace", "Entity", "Agent", "AgentConfig", "Run", "Space", "Message", "Problem"]),
  );
  const schemes = Object.keys(apiDocument.components.securitySchemes);
  for (const { security } of operations) {
    for (const scheme of security) expect(schemes).toEqual(expect.arrayContaining(Object.keys(scheme)));
  }
});

test("every guarded route documents its problems and describes its path parameters", () => {
  for (const operation of guarded) {
    expect(Object.keys(operation.responses), operation.name).toEqual(expect.arrayContaining(["401", "403"]));
    const inPath = [...operation.path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name);
    expect(operation.parameters.filter((one) => one.in === "path").map((one) => one.name)).toEqual(inPath);
  }
});

test("/docs shows every route and needs nothing from elsewhere", async () => {
  const answer = await call("/docs");
  expect(answer.headers.get("content-type")).toContain("text/html");
  expect(answer.headers.get("content-security-policy")).toContain("default-src 'none'");
  const page = await answer.text();
  expect(page).not.toMatch(/<script|<link|<img|https?:\/\/(?!…)/);
  for (const { path, operationId } of operations) {
    expect(page).toContain(`<code>${path}</code>`);
    expect(page).toContain(`id="${operationId}"`);
  }
});

test("without a signing secret, or with a short one, every answer says what to set", async () => {
  for (const SIGNING_SECRET of [undefined, "", "too short"]) {
    for (const path of ["/healthz", "/v1/spaces", "/nowhere"]) {
      const answer = await app.fetch(new Request(`https://x.test${path}`), { ...env, SIGNING_SECRET });
      expect(await problemIn(answer)).toMatchObject({
        status: 500,
        detail: expect.stringMatching(/SIGNING_SECRET.*at least 32/),
      });
    }
  }
});

test("an operation whose parameters have a format documents 400", () => {
  const shaped = guarded.filter(({ parameters }) =>
    parameters.some(({ name, in: place, schema }) => {
      const hasPattern = typeof schema === "object" && schema !== null && "pattern" in schema;
      return name !== "x-entity-id" && (place !== "path" || hasPattern);
    }),
  );
  expect(shaped.filter(({ responses }) => responses["400"] === undefined).map(({ name }) => name)).toEqual([]);
});

test("no two addresses keep every request from being routed by one expression", async () => {
  await call("/healthz");
  // An address like /v1/agents/import beside /v1/agents/{agentId} has Hono walk a tree for each request instead.
  expect(app.router.name).toBe("SmartRouter + RegExpRouter");
});
