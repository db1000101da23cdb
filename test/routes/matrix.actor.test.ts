import { env } from "cloudflare:workers";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { beforeAll, describe, expect, inject, test, vi } from "vitest";
import * as z from "zod";
import { loadLoro } from "../../src/agent/memory/documents/document.ts";
import { mintToken } from "../../src/auth/tokens.ts";
import { Key } from "../../src/protocol/workspace.ts";
import { jsonHash } from "../../src/shared/canonical-json.ts";
import { deriveKey } from "../../src/shared/ids.ts";
import { initialize, metadataPaths } from "../mcp-server/initialize.ts";
import { adminKey, type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { outsideCall, outsideCaller } from "../support/outside-call.ts";
import { question } from "../support/question.ts";
import { cookieBy, withCookie } from "../support/session.ts";
import {
  archivedFact,
  carriedMessage,
  endedRun,
  newEndpoint,
  newHook,
  newKey,
  routedMessage,
  waitingEvent,
} from "./inside-things.ts";
import { meRows, newDevice } from "./me-rows.ts";
import { fill, guestRows, isForOperator, type Operation, operations, problemIn, takesEntities } from "./operations.ts";

/**
 * Every operation of the API's own document, asked by every kind of principal: a new route without a row fails.
 * Each operation acts on things of one workspace; in its space are Mona and an agent.
 */
type Caller = Pick<Call, "bearer" | "as" | "headers">;
type Scene = {
  house: House;
  mona: Participant;
  callers: Record<Who, Caller>;
  /** Made anew after each call that changes something, so that what one destroys the next still finds. */
  fresh: Record<
    | ("agentId" | "entityId" | "erasureId" | "keyId" | "endpointId" | "spaceId" | "messageId" | "runId")
    | ("hookId" | "toolCallId" | "eventId" | "archivalId" | "otherAgentId" | "deviceId"),
    string
  >;
};

const nobodies = ["nobody", "forged", "unsigned", "expired", "revokedKey", "removed", "jwtByOther"] as const;
const others = ["operator", "otherKey", "otherAdmin", "otherAsMona"] as const;
const scoped = ["readKey", "tokensKey", "hooksKey", "readAndHooksKey", "expiredKey"] as const;
const own = ["key", "keyAsMona", "keyAsStranger", "keyAsAgent", "admin", "member", "stranger"] as const;
/** By the JWT of the workspace's own issuer: as by our token. */
const ownUsers = ["jwtMember", "jwtNew"] as const;
/** By the page's cookie, after Mona's own link and after one that an admin made: as by her token, but for approvals. */
const sessions = ["session", "impersonated"] as const;
type Who =
  | (typeof nobodies)[number]
  | (typeof others)[number]
  | (typeof own)[number]
  | (typeof scoped)[number]
  | (typeof ownUsers)[number]
  | (typeof sessions)[number];
const everyone: Who[] = [...nobodies, ...others, ...own, ...scoped, ...ownUsers, ...sessions];

/**
 * The status for each of `own`, in that order. Then for the operator and who is of another workspace, if not 403 and
 * 404. Then for an impersonated session, if it differs from its person's.
 */
type Row = {
  own: [number, number, number, number, number, number, number];
  operator?: number;
  elsewhere?: number;
  impersonated?: number;
  query?: string;
  body?: (scene: Scene) => unknown;
};

/** Routes that keys of less than all scopes may ask beside a scope's own list. Others are none of theirs. */
const ofTokens = [
  ...["POST /mcp", "POST /v1/tokens"],
  ...["sign-in-links", "sign-out"].map((end) => `POST /v1/entities/{entityId}/${end}`),
];
const ofHooks = ["POST /mcp", "POST /v1/agents/{agentId}/trigger"];

const all = (status: number): Row["own"] => [status, status, status, status, status, status, status];
/** For the workspace's rights: `status`; for its other entities 403. */
const workspace = (status: number): Row["own"] => [status, status, status, status, status, 403, 403];
const keyOnly = (status: number): Row["own"] => [status, status, status, status, 403, 403, 403];
/** Things of the space that the workspace's rights see too: a stranger does not know of it. */
const inSpace = (status: number, member = status): Row["own"] => [status, status, status, status, status, member, 404];
/** For what only a participant does: a key says as whom, an admin and a stranger are none, an agent has its runs. */
const participant = (status: number): Row["own"] => [422, status, 403, 403, 403, status, 404];

const named = (name: string) => () => ({ name });
const newAgent = () => ({ name: `Agent ${ids.mint("key").slice(-20)}` });

const since = { from: "2026-02-18T15:06:55.000Z" };
const anEndpoint = { url: `${inject("remote")}/echo/matrix`, types: ["audit.*"] };

/** The least that is an exported agent. */
const newDocument = () => ({
  format: "colloquy.agent",
  version: 1,
  exportedAt: "2026-02-18T15:06:55.000Z",
  agent: { id: ids.mint("ent"), config: newAgent() },
});

const open = ["/healthz", "/readyz", "/openapi.json", "/docs", ...metadataPaths];
const rows: Record<string, Row> = {
  ...Object.fromEntries(open.map((path) => [`GET ${path}`, { own: all(200) }])),
  "POST /v1/workspaces": { own: all(403), operator: 201, elsewhere: 403, body: named("New") },
  "GET /v1/operator/workspaces": { own: all(403), operator: 200, elsewhere: 403 },
  "GET /v1/operator/workspaces/{workspaceId}": { own: all(403), operator: 200, elsewhere: 403 },
  "POST /v1/operator/workspaces/{workspaceId}/suspend": {
    ...{ own: all(403), operator: 200, elsewhere: 403 },
    body: () => ({ reason: "Unpaid" }),
  },
  "POST /v1/operator/workspaces/{workspaceId}/resume": { own: all(403), operator: 200, elsewhere: 403 },
  // None but a suspended one.
  "DELETE /v1/operator/workspaces/{workspaceId}": { own: all(403), operator: 409, elsewhere: 403 },
  "POST /v1/operator/workspaces/{workspaceId}/reseal": { own: all(403), operator: 202, elsewhere: 403 },
  "GET /v1/operator/workspaces/{workspaceId}/reseal": { own: all(403), operator: 200, elsewhere: 403 },
  "GET /v1/operator/workspaces/{workspaceId}/limits": { own: all(403), operator: 200, elsewhere: 403 },
  "PUT /v1/operator/workspaces/{workspaceId}/limits": {
    own: all(403),
    operator: 200,
    elsewhere: 403,
    body: () => ({ maxSpaces: 9000 }),
  },
  "GET /v1/operator/workspaces/{workspaceId}/usage": { own: all(403), operator: 200, elsewhere: 403 },
  "GET /v1/usage": { own: workspace(200), elsewhere: 200 },
  "GET /v1/workspace": { own: workspace(200), elsewhere: 200 },
  "PATCH /v1/workspace": { own: workspace(200), elsewhere: 200, body: named("Here") },
  "GET /v1/workspace/audit": { own: workspace(200), elsewhere: 200 },
  "GET /v1/workspace/audit/export": { own: workspace(200), elsewhere: 200 },
  "POST /v1/erasures": { own: workspace(202), body: ({ fresh }) => ({ kind: "person", id: fresh.entityId }) },
  "GET /v1/erasures": { own: workspace(200), elsewhere: 200 },
  "GET /v1/erasures/{erasureId}": { own: workspace(200) },
  "POST /v1/workspace/keys": { own: keyOnly(201), elsewhere: 201 },
  "GET /v1/workspace/keys": { own: keyOnly(200), elsewhere: 200 },
  "PATCH /v1/workspace/keys/{keyId}": { own: keyOnly(200), body: named("Renamed") },
  "POST /v1/workspace/keys/{keyId}/roll": { own: keyOnly(201), body: () => ({}) },
  "DELETE /v1/workspace/keys/{keyId}": { own: keyOnly(204) },
  "POST /v1/workspace/endpoints": { own: keyOnly(201), elsewhere: 201, body: () => anEndpoint },
  "GET /v1/workspace/endpoints": { own: keyOnly(200), elsewhere: 200 },
  "PATCH /v1/workspace/endpoints/{endpointId}": { own: keyOnly(200), body: () => ({ batch: true }) },
  "POST /v1/workspace/endpoints/{endpointId}/roll": { own: keyOnly(201), body: () => ({}) },
  "DELETE /v1/workspace/endpoints/{endpointId}": { own: keyOnly(204) },
  "GET /v1/workspace/endpoints/{endpointId}/deliveries": { own: keyOnly(200) },
  "POST /v1/workspace/endpoints/{endpointId}/redeliver": { own: keyOnly(202), body: () => since },
  "PUT /v1/workspace/auth": { own: keyOnly(200), elsewhere: 200, body: () => ownIssuer },
  "GET /v1/workspace/auth": { own: keyOnly(200), elsewhere: 200 },
  "DELETE /v1/workspace/auth": { own: keyOnly(204), elsewhere: 204 },
  "GET /v1/workspace/secrets": { own: keyOnly(200), elsewhere: 200 },
  "PUT /v1/workspace/secrets/{name}": { own: keyOnly(204), elsewhere: 204, body: () => ({ value: "x" }) },
  "GET /v1/workspace/secrets/{name}/uses": { own: keyOnly(200), elsewhere: 200 },
  "DELETE /v1/workspace/secrets/{name}": { own: keyOnly(204), elsewhere: 204 },
  "POST /v1/entities": { own: workspace(201), elsewhere: 201, body: () => ({ type: "human", name: "New" }) },
  "GET /v1/entities": { own: all(200), elsewhere: 200 },
  "GET /v1/entities/{entityId}": { own: [200, 200, 200, 200, 200, 200, 404] },
  "PATCH /v1/entities/{entityId}": { own: [200, 200, 200, 200, 200, 403, 404], body: named("Renamed") },
  "DELETE /v1/entities/{entityId}": { own: [204, 204, 204, 204, 204, 403, 404] },
  "POST /v1/entities/{entityId}/sign-in-links": { own: [201, 201, 201, 201, 201, 403, 403] },
  "POST /v1/entities/{entityId}/sign-out": { own: [204, 204, 204, 204, 204, 403, 404] },
  // Whoever calls: what counts is the code, or the cookie, which none of them sends.
  "GET /v1/session": { own: all(200) },
  "POST /v1/session": { own: all(401), body: () => ({ code: "si_guessed" }) },
  "DELETE /v1/session": { own: all(204) },
  "POST /v1/tokens": { own: workspace(201), elsewhere: 422, body: ({ mona }) => ({ entityId: mona.id }) },
  "POST /v1/agents": { own: workspace(201), elsewhere: 201, body: newAgent },
  "GET /v1/agents": { own: workspace(200), elsewhere: 200 },
  "POST /v1/imports": { own: workspace(201), elsewhere: 201, body: newDocument },
  "GET /v1/agents/{agentId}/export": { own: workspace(200) },
  "GET /v1/agents/{agentId}": { own: workspace(200) },
  "GET /v1/agents/{agentId}/compartments": { own: workspace(200) },
  "PATCH /v1/agents/{agentId}": { own: workspace(200), body: () => ({ description: "Counts" }) },
  "DELETE /v1/agents/{agentId}": { own: workspace(204) },
  "POST /v1/agents/{agentId}/trigger": { own: workspace(202), body: () => ({ serviceName: "jira", payload: 1 }) },
  "GET /v1/agents/{agentId}/inbox": { own: workspace(200) },
  "POST /v1/agents/{agentId}/inbox/{eventId}/retry": { own: workspace(409) },
  "DELETE /v1/agents/{agentId}/inbox/{eventId}": { own: workspace(409) },
  "POST /v1/agents/{agentId}/dead-events/retry": { own: workspace(200) },
  "GET /v1/agents/{agentId}/hooks": { own: workspace(200) },
  "POST /v1/agents/{agentId}/hooks": { own: workspace(201), body: () => ({ scheme: "github", name: "github" }) },
  "PATCH /v1/agents/{agentId}/hooks/{hookId}": { own: workspace(200), body: named("monitor") },
  "POST /v1/agents/{agentId}/hooks/{hookId}/rotate": { own: workspace(200), body: () => ({}) },
  "DELETE /v1/agents/{agentId}/hooks/{hookId}": { own: workspace(204) },
  // Whoever calls: what counts is the hook's own secret, which none of them sends.
  "POST /v1/hooks/{hookId}": { own: all(401), body: () => ({}) },
  "GET /v1/agents/{agentId}/runs": { own: workspace(200) },
  "GET /v1/agents/{agentId}/runs/{runId}": { own: workspace(200) },
  "POST /v1/agents/{agentId}/runs/{runId}/cancel": { own: workspace(409) },
  ...guestRows((row) => ({ ...row, own: keyOnly(409) })),
  "GET /v1/agents/{agentId}/context": { own: workspace(200) },
  "GET /v1/agents/{agentId}/memories": { own: workspace(200) },
  "PUT /v1/agents/{agentId}/memories/{key}": { own: workspace(200), body: () => ({ value: "green" }) },
  "DELETE /v1/agents/{agentId}/memories/{key}": { own: workspace(204) },
  "GET /v1/agents/{agentId}/goals": { own: workspace(200) },
  "PUT /v1/agents/{agentId}/goals/{goalId}": { own: workspace(200), body: () => ({ description: "Finish" }) },
  "DELETE /v1/agents/{agentId}/goals/{goalId}": { own: workspace(204) },
  "GET /v1/agents/{agentId}/plans": { own: workspace(200) },
  "PUT /v1/agents/{agentId}/plans/{planId}": {
    own: workspace(200),
    body: () => ({ name: "Report", instruction: "Report", runAfter: "2 hours" }),
  },
  "DELETE /v1/agents/{agentId}/plans/{planId}": { own: workspace(204) },
  "POST /v1/agents/{agentId}/blocks": { own: workspace(201), body: () => ({ label: "new", type: "core" }) },
  "GET /v1/agents/{agentId}/blocks": { own: workspace(200) },
  "GET /v1/agents/{agentId}/blocks/{label}": { own: workspace(200) },
  "PATCH /v1/agents/{agentId}/blocks/{label}": { own: workspace(200), body: () => ({ pinned: true }) },
  "DELETE /v1/agents/{agentId}/blocks/{label}": { own: workspace(204) },
  "POST /v1/agents/{agentId}/blocks/{label}/operations": {
    own: workspace(200),
    body: () => ({ operations: [{ op: "append_text", text: "x" }] }),
  },
  "GET /v1/agents/{agentId}/blocks/{label}/history": { own: workspace(200) },
  "GET /v1/agents/{agentId}/blocks/{label}/stream": { own: workspace(101) },
  "GET /v1/agents/{agentId}/blocks/{label}/shares": { own: workspace(200) },
  "PUT /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}": { own: workspace(200), body: () => ({}) },
  "DELETE /v1/agents/{agentId}/blocks/{label}/shares/{otherAgentId}": { own: workspace(204) },
  "GET /v1/agents/{agentId}/blocks/{label}/spaces": { own: workspace(200) },
  "PUT /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}": { own: workspace(200), body: () => ({}) },
  "DELETE /v1/agents/{agentId}/blocks/{label}/spaces/{spaceId}": { own: workspace(204) },
  "GET /v1/spaces/{spaceId}/blocks": { own: inSpace(200) },
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}": { own: inSpace(200) },
  "POST /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/operations": {
    own: participant(200),
    body: () => ({ operations: [{ op: "append_text", text: "x" }] }),
  },
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/history": { own: inSpace(200) },
  "GET /v1/spaces/{spaceId}/agents/{agentId}/blocks/{label}/stream": { own: participant(101) },
  "POST /v1/agents/{agentId}/archival": { own: workspace(201), body: () => ({ content: "A fact" }) },
  "GET /v1/agents/{agentId}/archival": { own: workspace(200) },
  "DELETE /v1/agents/{agentId}/archival/{archivalId}": { own: workspace(204) },
  // Without a query.
  "GET /v1/agents/{agentId}/knows": { own: workspace(400), elsewhere: 400 },
  "GET /v1/agents/{agentId}/search": { own: workspace(400), elsewhere: 400 },
  "GET /v1/search": { own: keyOnly(400), elsewhere: 400 },
  "POST /v1/spaces": { own: all(201), elsewhere: 201, body: named("New") },
  "GET /v1/spaces": { own: all(200), elsewhere: 200 },
  "GET /v1/needs-you": { own: [422, 200, 200, 200, 200, 200, 200], elsewhere: 200 },
  "GET /v1/spaces/{spaceId}": { own: inSpace(200) },
  "PATCH /v1/spaces/{spaceId}": { own: inSpace(200, 403), body: named("Renamed") },
  "DELETE /v1/spaces/{spaceId}": { own: inSpace(204, 403) },
  "POST /v1/spaces/{spaceId}/members": {
    own: inSpace(201, 403),
    elsewhere: 422,
    body: ({ callers }) => ({ entityId: callers.keyAsStranger.as }),
  },
  "DELETE /v1/spaces/{spaceId}/members/{entityId}": { own: inSpace(204, 403) },
  "GET /v1/spaces/{spaceId}/messages": { own: inSpace(200) },
  "POST /v1/spaces/{spaceId}/messages": { own: participant(201), body: () => ({ text: "hello" }) },
  "PATCH /v1/spaces/{spaceId}/messages/{messageId}": {
    own: participant(200),
    body: () => ({ text: "Read me again" }),
  },
  "DELETE /v1/spaces/{spaceId}/messages/{messageId}": { own: inSpace(200) },
  "GET /v1/spaces/{spaceId}/messages/{messageId}/reads": { own: inSpace(200) },
  "GET /v1/spaces/{spaceId}/messages/{messageId}/origin": { own: inSpace(200) },
  "GET /v1/spaces/{spaceId}/messages/{messageId}/routing": { own: inSpace(200) },
  "POST /v1/spaces/{spaceId}/read": {
    own: participant(204),
    body: ({ fresh }) => ({ messageId: fresh.messageId }),
  },
  "POST /v1/spaces/{spaceId}/tool-calls/{toolCallId}/result": {
    own: participant(200),
    impersonated: 403,
    body: () => ({ result: { approved: true, inputHash: jsonHash({ of: ["red", "blue"] }) } }),
  },
  "GET /v1/spaces/{spaceId}/stream": { own: participant(101) },
  // Whoever is a person, for themselves.
  "GET /v1/stream": { own: [422, 101, 101, 403, 101, 101, 101], elsewhere: 101 },
  ...meRows,
  "GET /v1/events": { own: [422, 200, 200, 403, 200, 200, 200], elsewhere: 200 },
  "GET /v1/spaces/{spaceId}/events": { own: participant(200) },
  "GET /v1/tool-calls": { own: workspace(200), elsewhere: 200 },
  "POST /v1/tool-calls/{toolCallId}/claim": { own: workspace(200), body: () => ({ holder: "desk" }) },
  "POST /v1/tool-calls/{toolCallId}/result": { own: workspace(200), body: () => ({ result: "yes" }) },
  "POST /mcp": { own: all(200), elsewhere: 200, body: initialize },
  "GET /metrics": { own: all(403), operator: 200, elsewhere: 403 },
};

const expected = (operation: Operation, row: Row, who: Who): number => {
  const [key] = row.own;
  if (operation.security.length === 0) return key;
  switch (who) {
    case "nobody":
    case "forged":
    case "unsigned":
    case "expired":
    case "revokedKey":
    case "expiredKey":
    case "removed":
    case "jwtByOther":
      return 401;
    case "impersonated":
      return row.impersonated ?? expected(operation, row, "session");
    case "session":
    case "jwtMember":
      return row.own[own.indexOf("member")] ?? Number.NaN;
    case "jwtNew":
      return row.own[own.indexOf("stranger")] ?? Number.NaN;
    case "readKey":
      return (operation.method === "GET" && !isForOperator(operation)) || operation.path === "/mcp" ? key : 403;
    case "tokensKey":
      return ofTokens.includes(operation.name) ? key : 403;
    case "hooksKey":
      return ofHooks.includes(operation.name) ? key : 403;
    case "readAndHooksKey":
      return operation.method === "GET" || ofHooks.includes(operation.name) ? key : 403;
    case "operator":
      return row.operator ?? 403;
    // A key that names an entity of another workspace names nobody.
    case "otherAsMona":
      return 422;
    case "otherKey":
      return key === 422 ? 422 : (row.elsewhere ?? 404);
    case "otherAdmin":
      return takesEntities(operation) ? (row.elsewhere ?? 404) : 403;
    default:
      return row.own[own.indexOf(who)] ?? Number.NaN;
  }
};

/** The workspace's own issuer, and another one of the same name. */
let ownIssuer: { jwks: { keys: unknown[] }; issuer: string; audience: string; firstSight: { role: "member" } };
let jwtOf: (sub: string, kind?: "own" | "other") => Promise<Caller>;

let scene: Omit<Scene, "fresh">;
/** Things that no operation changes, each of another agent. */
let lasting: { runId: string; waiting: { agentId: string; eventId: string }; otherAgentId: string };

beforeAll(async () => {
  const [house, other] = await Promise.all([openHouse("Here"), openHouse("Elsewhere")]);
  const [mona, boss, stranger, gone] = await Promise.all([
    house.person("Mona"),
    house.person("Boss", "admin"),
    house.person("Stranger"),
    house.person("Gone"),
  ]);
  const foreigner = await other.person("Foreigner", "admin");
  const agent = await house.agent({ name: "Analyst" });
  const revoked = await expectOk(
    z.object({ key: Key, secretKey: z.string() }),
    call("/v1/workspace/keys", { method: "POST", bearer: house.secretKey }),
  );
  await call(`/v1/workspace/keys/${revoked.key.id}`, { method: "DELETE", bearer: house.secretKey });
  await call(`/v1/entities/${gone.id}`, { method: "DELETE", bearer: house.secretKey });
  const scopedKey = async (scopes: string[], fields = {}) =>
    (
      await expectOk(
        z.object({ key: Key, secretKey: z.string() }),
        call("/v1/workspace/keys", { bearer: house.secretKey, body: { name: "Kept", scopes, ...fields } }),
      )
    ).secretKey;
  const claims = { workspaceId: house.workspaceId, entityId: mona.id };
  const signed = (alg: string) =>
    new SignJWT({ wsp: house.workspaceId, sub: mona.id })
      .setExpirationTime("1h")
      .setProtectedHeader({ alg })
      .sign(deriveKey(env.SIGNING_SECRET, `entity-token:${house.workspaceId}`, 64));
  const [pair, other2] = [await generateKeyPair("ES256"), await generateKeyPair("ES256")];
  const [issuer, audience] = ["https://issuer.example", "colloquy"];
  ownIssuer = { jwks: { keys: [await exportJWK(pair.publicKey)] }, issuer, audience, firstSight: { role: "member" } };
  jwtOf = async (sub, kind = "own") => ({
    bearer: await new SignJWT({ jti: ids.mint("key") })
      .setSubject(sub)
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime("1h")
      .setProtectedHeader({ alg: "ES256" })
      .sign((kind === "own" ? pair : other2).privateKey),
    headers: { "x-workspace-id": house.workspaceId },
  });
  const named = (id: string, externalId: string) =>
    call(`/v1/entities/${id}`, { method: "PATCH", bearer: house.secretKey, body: { externalId } });
  await named(mona.id, "mona");
  const [, payload = ""] = mona.token.split(".");
  const noneHeader = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
  scene = {
    house,
    mona,
    callers: {
      nobody: {},
      forged: { bearer: await signed("HS512") },
      unsigned: { bearer: `${noneHeader}.${payload}.` },
      expired: { bearer: await mintToken(env, { ...claims, issuedAt: 1, expiresAt: Date.now() - 1 }) },
      revokedKey: { bearer: revoked.secretKey },
      removed: { bearer: gone.token },
      operator: { bearer: adminKey },
      otherKey: { bearer: other.secretKey },
      otherAdmin: { bearer: foreigner.token },
      otherAsMona: { bearer: other.secretKey, as: mona.id },
      jwtByOther: await jwtOf("mona", "other"),
      jwtMember: {},
      jwtNew: {},
      session: withCookie(await cookieBy(house.secretKey, mona.id)),
      impersonated: withCookie(await cookieBy(boss.token, mona.id)),
      key: { bearer: house.secretKey },
      readKey: { bearer: await scopedKey(["read"]) },
      tokensKey: { bearer: await scopedKey(["tokens"]) },
      hooksKey: { bearer: await scopedKey(["hooks"]) },
      readAndHooksKey: { bearer: await scopedKey(["hooks", "read"]) },
      expiredKey: { bearer: await scopedKey(["full"], { expiresInSeconds: 1 }) },
      keyAsMona: { headers: { "x-secret-key": house.secretKey }, as: mona.id },
      keyAsStranger: { bearer: house.secretKey, as: stranger.id },
      keyAsAgent: { bearer: house.secretKey, as: agent.id },
      admin: { bearer: boss.token },
      member: { bearer: mona.token },
      stranger: { bearer: stranger.token },
    },
  };
  lasting = {
    runId: await endedRun(house, mona, agent.id),
    waiting: await waitingEvent(house),
    otherAgentId: (await house.agent({ name: "Reader" })).id,
  };
  await vi.waitUntil(async () => (await call("/v1/workspace", scene.callers.expiredKey)).status === 401);
  // The first request brings the whole worker up, and the first document what it is made with.
  await loadLoro();
}, 60_000);

/** Makes what is deleted by its name, in both workspaces. */
const putForDeletion = async (path: string, agentId: string): Promise<void> => {
  const put = (address: string, bearer: string | undefined, body: unknown) =>
    call(address, { method: "PUT", ...(bearer === undefined ? {} : { bearer }), body });
  const { key, otherKey } = scene.callers;
  if (path.includes("/memories/")) await put(`/v1/agents/${agentId}/memories/a-name`, key.bearer, { value: "x" });
  if (path.includes("/goals/")) await put(`/v1/agents/${agentId}/goals/a-name`, key.bearer, { description: "x" });
  // The one that is made anew in each row is gone by then; any other is there.
  if (path.endsWith("/blocks")) await call(`/v1/agents/${agentId}/blocks/new`, { method: "DELETE", ...key });
  else if (path.includes("/blocks")) {
    await call(`/v1/agents/${agentId}/blocks`, { ...key, body: { label: "a-name", type: "core" } });
  }
  const plan = { name: "x", instruction: "x", runAfter: "2 hours" };
  if (path.includes("/plans/")) await put(`/v1/agents/${agentId}/plans/a-name`, key.bearer, plan);
  if (!path.includes("/secrets/")) return;
  for (const { bearer } of [key, otherKey]) await put("/v1/workspace/secrets/a-name", bearer, { value: "x" });
};

/** One that waits for people, or for a server. */
const newCall = async (path: string, spaceId: string, agentId: string): Promise<string> => {
  const { house } = scene;
  if (path.includes("{spaceId}")) return question(house.workspaceId, spaceId, agentId, "approval");
  return (await outsideCall(house, await outsideCaller(house))).toolCallId;
};

/** Nothing changes it. */
let carried: Awaited<ReturnType<typeof carriedMessage>> | undefined;

/** New targets of what `operation` may change. */
const freshFor = async ({ path, method }: Operation): Promise<Scene["fresh"]> => {
  const { house, mona, callers } = scene;
  const isOwnAgent = (method === "DELETE" && path === "/v1/agents/{agentId}") || path.includes("{hookId}");
  const { waiting, ...lived } = lasting;
  const agentId = path.includes("{eventId}")
    ? waiting.agentId
    : isOwnAgent
      ? (await house.agent(newAgent())).id
      : (callers.keyAsAgent.as ?? "");
  const friend = /\{entityId\}|erasures/.test(path) ? await house.person("Friend") : mona;
  const members = [mona, { id: callers.keyAsAgent.as ?? "" }, friend];
  const spaceId =
    path.includes("{spaceId}") || path.includes("{entityId}") ? (await house.space("Alpha", members)).id : "";
  const message =
    path.endsWith("/read") || path.includes("{messageId}") ? await house.say(spaceId, mona, "Read me") : undefined;
  const keyId = path.includes("{keyId}") ? await newKey(house) : "";
  const endpointId = path.includes("/endpoints") ? await newEndpoint(house, anEndpoint) : "";
  if (method === "DELETE" || path.includes("/blocks")) await putForDeletion(path, agentId);
  if (path.includes("{label}") && path.includes("{spaceId}")) {
    // One that is shared with no other space: each has its own.
    const block = `/v1/agents/${agentId}/blocks/a-name`;
    await call(block, { method: "DELETE", ...callers.key });
    await putForDeletion(path, agentId);
    await expectOk(z.unknown(), call(`${block}/spaces/${spaceId}`, { method: "PUT", ...callers.key, body: {} }));
  }
  if (path.includes("/shares/")) {
    const share = `/v1/agents/${agentId}/blocks/a-name/shares/${lived.otherAgentId}`;
    await call(share, { method: method === "DELETE" ? "PUT" : "DELETE", ...callers.key, body: {} });
  }
  const routed = path.endsWith("/routing")
    ? await routedMessage(house, mona, [...members, { id: lived.otherAgentId }])
    : undefined;
  if (path.endsWith("/origin"))
    carried ??= await carriedMessage(house, mona, (await house.agent(newAgent())).id, [mona]);
  const archivalId = path.includes("{archivalId}") ? await archivedFact(house, agentId) : "";
  const hookId = path.includes("{hookId}") ? await newHook(house, agentId) : "";
  const toolCallId = path.includes("{toolCallId}") ? await newCall(path, spaceId, agentId) : "";
  const deviceId = path.includes("{deviceId}") ? await newDevice(mona.token) : "";
  if (path.includes("{erasureId}"))
    await expectOk(z.unknown(), call("/v1/erasures", { ...callers.key, body: { kind: "person", id: friend.id } }));
  const messageId = message?.id ?? "";
  // The workspace that is suspended is used by no other row.
  const { workspaceId } = path.endsWith("/suspend") ? await openHouse() : house;
  const targets = {
    ...{ workspaceId, agentId, keyId, endpointId, spaceId, messageId, hookId, toolCallId, archivalId },
    ...{ entityId: friend.id, erasureId: friend.id, deviceId },
  };
  return { ...lived, eventId: waiting.eventId, ...targets, ...(path.endsWith("/origin") ? carried : routed) };
};

/** A JWT counts as long as the setting that takes it, and a session until it is left: some operations do that. */
const callerOf = async ({ name, path }: Operation, who: Who): Promise<Caller> => {
  const { key, admin } = scene.callers;
  const maker = { session: key.bearer, impersonated: admin.bearer }[String(who)];
  if (maker && name === "DELETE /v1/session") return withCookie(await cookieBy(maker, scene.mona.id));
  if (who !== "jwtMember" && who !== "jwtNew") return scene.callers[who];
  if (path.endsWith("/auth") || who === "jwtMember") {
    await call("/v1/workspace/auth", { method: "PUT", bearer: scene.house.secretKey, body: ownIssuer });
  }
  return jwtOf(who === "jwtMember" ? "mona" : "new");
};

const asks = ({ path, method }: Operation, row: Row, fresh: Scene["fresh"], caller: Caller): Promise<Response> => {
  const body = row.body?.({ ...scene, fresh });
  return call(`${fill(path, { ...fresh, workspaceId: scene.house.workspaceId })}?${row.query ?? ""}`, {
    ...{ method, ...caller },
    headers: { ...caller.headers, ...(path.endsWith("/stream") ? { upgrade: "websocket" } : {}) },
    ...(body === undefined ? {} : { body }),
  });
};

const leave = async (answer: Response): Promise<void> => {
  answer.webSocket?.accept();
  answer.webSocket?.close();
  await answer.body?.cancel();
};

/** Answers for one caller are not cached, and no answer is taken for another content type. */
const expectUnkept = ({ path }: Operation, { headers }: Response): void => {
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  const isPublic = ["/openapi.json", "/docs"].includes(path);
  expect(headers.get("cache-control")).toMatch(isPublic ? /^public, max-age=\d+$/ : /^no-store\b/);
};

/** Operations that go on while suspended, beside reads and deletions. */
const whileSuspended = [
  ...ofTokens.filter((name) => !name.endsWith("links")),
  "POST /v1/agents/{agentId}/runs/{runId}/cancel",
  "POST /v1/erasures",
  // The last key may have leaked.
  "POST /v1/workspace/keys/{keyId}/roll",
  "POST /v1/workspace/endpoints/{endpointId}/roll",
  "POST /v1/workspace/endpoints/{endpointId}/redeliver",
];
const isStream = ({ path }: Operation): boolean => path.endsWith("/stream") || path.endsWith("/events");
const goesOn = (operation: Operation): boolean =>
  whileSuspended.includes(operation.name) || (["GET", "DELETE"].includes(operation.method) && !isStream(operation));

const isSuspended = async (suspended: boolean): Promise<void> => {
  const path = `/v1/operator/workspaces/${scene.house.workspaceId}`;
  const act = suspended ? { body: { reason: "Unpaid" } } : { method: "POST" };
  await call(`${path}/${suspended ? "suspend" : "resume"}`, { bearer: adminKey, ...act });
  const Told = z.object({ workspace: z.object({ waiting: z.literal(0) }) });
  await vi.waitFor(() => expectOk(Told, call(path, { bearer: adminKey })));
};

// First: what the others leave has to be told of it too.
test("[L6] of a suspended workspace is read and taken away, and all else is refused by name", async () => {
  const asked = operations.filter((each) => each.security.length > 0 && !isForOperator(each));
  // Keys and blocks are made anew in the place of those before.
  const isAlone = ({ path }: Operation): boolean => /\{(?:keyId|endpointId|label)\}/.test(path);
  const [alone, together] = [asked.filter(isAlone), asked.filter((each) => !isAlone(each))];
  const told: Record<string, string> = {};
  const meant: Record<string, string> = {};
  for (const some of [together, ...alone.map((each) => [each])]) {
    const targets: Scene["fresh"][] = [];
    for (const operation of some) targets.push(await freshFor(operation));
    await isSuspended(true);
    for (const [index, operation] of some.entries()) {
      const row = rows[operation.name];
      const fresh = targets[index];
      if (!row || !fresh) throw new Error(`${operation.name} has no row`);
      const found = row.own.findIndex((status) => status < 400);
      const place = Math.max(0, found);
      const answer = await asks(operation, row, fresh, scene.callers[own[place] ?? "key"]);
      meant[operation.name] = goesOn(operation) ? String(row.own[place]) : "503 suspended";
      told[operation.name] = answer.status === 503 ? `503 ${(await problemIn(answer)).code}` : String(answer.status);
      if (answer.status !== 503) await leave(answer);
    }
    await isSuspended(false);
  }
  expect(told).toEqual(meant);
}, 60_000);

describe("[S1] [S3] [S5] [C15] every operation by every kind of principal", () => {
  test("every operation has a row, and every row an operation", () => {
    expect(Object.keys(rows).toSorted()).toEqual(operations.map(({ name }) => name).toSorted());
  });

  test.each(operations)("$name", async (operation) => {
    const row = rows[operation.name];
    if (!row) throw new Error(`${operation.name} has no row: say who gets what`);
    const got: Record<string, number> = {};
    let fresh: Scene["fresh"] | undefined;
    for (const who of everyone) {
      fresh ??= await freshFor(operation);
      const answer = await asks(operation, row, fresh, await callerOf(operation, who));
      got[who] = answer.status;
      // Reads and refusals change nothing.
      if (operation.method !== "GET" && answer.status < 400) fresh = undefined;
      if (answer.status !== 101) expectUnkept(operation, answer);
      if (answer.status >= 400) await problemIn(answer);
      else await leave(answer);
    }
    expect(got).toEqual(Object.fromEntries(everyone.map((who) => [who, expected(operation, row, who)])));
  });
});
