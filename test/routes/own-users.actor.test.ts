import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { createHash } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { Entity } from "../../src/protocol/entity.ts";
import { SignInLink, Token } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { adminKey, type Call, call, expectOk, type House, openHouse } from "../support/house.ts";
import { rowsWith } from "../support/rows.ts";
import { cookieOf, signIn } from "../support/session.ts";
import { problemIn } from "./operations.ts";

/** People whom a customer's own issuer tells of, by the routes. */
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  Reflect.deleteProperty(env, "WORKSPACE_HOSTS");
});

const issuer = "https://issuer.example";
const jwksUrl = `${issuer}/jwks.json`;
let pair: CryptoKeyPair;
let served: { status?: number; body: string };

// One for all tests: what an isolate has fetched it keeps.
beforeAll(async () => {
  pair = (await generateKeyPair("ES256", { extractable: true })) as CryptoKeyPair;
});

beforeEach(async () => {
  served = { body: JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: "one" }] }) };
  const real = globalThis.fetch.bind(globalThis);
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    if (String(input) !== jwksUrl) return real(input, init);
    return new Response(served.body, { status: served.status ?? 200, headers: { "content-type": "application/json" } });
  });
});

type Claims = Record<string, unknown>;
const jwt = (claims: Claims = {}, kid = "one"): Promise<string> => {
  const now = Math.floor(Date.now() / 1000);
  const all = { iss: issuer, aud: "colloquy", sub: "ada@example", iat: now, exp: now + 600, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg: "ES256", kid }).sign(pair.privateKey);
};
const by = async (house: House, claims: Claims = {}, kid?: string): Promise<Call> => ({
  bearer: await jwt(claims, kid),
  headers: { "x-workspace-id": house.workspaceId },
});
const set = (house: House, fields: Record<string, unknown> = {}) =>
  call("/v1/workspace/auth", {
    ...{ method: "PUT", bearer: house.secretKey },
    body: { jwksUrl, issuer, audience: "colloquy", firstSight: { role: "member" }, ...fields },
  });
const Listed = z.object({ items: z.array(Entity) });
const me = async (who: Call) => (await expectOk(Listed, call("/v1/entities", who))).items[0];
const refusal = async (who: Call, path = "/v1/entities") => (await problemIn(await call(path, who))).code;
const open = async (path: string, who: Call = {}): Promise<{ closed?: number }> => {
  const { webSocket } = await call(path, { ...who, headers: { ...who.headers, upgrade: "websocket" } });
  if (!webSocket) throw new Error("a socket was expected");
  const seen: { closed?: number } = {};
  webSocket.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  webSocket.accept();
  return seen;
};

test("[L12] a person of the customer's is made at first sight, once, by a name that may be", async () => {
  const house = await openHouse();
  expect((await set(house)).status).toBe(200);
  const name = "  Ada\u200b\n Lovelace\u202e ";
  const all = await Promise.all([1, 2, 3].map(async (jti) => me(await by(house, { name, jti: String(jti) }))));
  expect(new Set(all.map((one) => one?.id)).size).toBe(1);
  expect(all[0]).toMatchObject({ name: "Ada Lovelace", role: "member", externalId: "ada@example", type: "human" });
  expect(await me(await by(house, { sub: "nameless", name: "\u200b" }))).toMatchObject({ name: "Guest" });
});

test("[L12] a JWT may come to a host that the deployment maps to its workspace", async () => {
  const [house, other] = [await openHouse(), await openHouse()];
  for (const each of [house, other]) await set(each);
  Reflect.set(env, "WORKSPACE_HOSTS", JSON.stringify({ "colloquy.test": house.workspaceId }));
  const [bearer, ofOther] = [await jwt({ name: "Ada" }), await jwt({ wsp: other.workspaceId })];
  expect(await me({ bearer })).toMatchObject({ name: "Ada", externalId: "ada@example" });
  expect(await me({ bearer, headers: { "x-workspace-id": house.workspaceId } })).toMatchObject({ name: "Ada" });
  const elsewhere = { bearer, headers: { "x-workspace-id": other.workspaceId } };
  for (const who of [elsewhere, { bearer: ofOther }]) {
    const { code, detail } = await problemIn(await call("/v1/entities", who));
    expect([code, detail]).toEqual(["unauthorized", expect.stringContaining("this host")]);
  }
  expect(await me({ bearer: other.secretKey })).toBeUndefined();
});

test.each(["{", '"colloquy.test"', '{"colloquy.test": 5}', '{"toString": "wsp_1"}'])(
  "[L12] a WORKSPACE_HOSTS of %s keeps out nobody but who comes by a JWT",
  async (map) => {
    const house = await openHouse();
    await set(house);
    const ann = await house.person("Ann");
    Reflect.set(env, "WORKSPACE_HOSTS", map);
    expect(await refusal({ bearer: await jwt() })).toBe(map.startsWith('{"to') ? "unauthorized" : "unavailable");
    for (const bearer of [ann.token, house.secretKey])
      expect((await call("/v1/entities", { bearer })).status).toBe(200);
  },
);

test("[L12] where first sight is refused, only people with that externalId come in", async () => {
  const house = await openHouse();
  await set(house, { firstSight: "refused" });
  const problem = await problemIn(await call("/v1/entities", await by(house)));
  expect([problem.code, problem.detail]).toEqual(["unauthorized", expect.stringContaining("POST /v1/entities")]);
  const body = { type: "human", name: "Ada", externalId: "ada@example" };
  expect((await call("/v1/entities", { bearer: house.secretKey, body })).status).toBe(201);
  expect(await me(await by(house))).toMatchObject({ name: "Ada" });
  const twin = await call("/v1/entities", { bearer: house.secretKey, body });
  expect((await problemIn(twin)).code).toBe("conflict");
});

test("[L12] a removed person does not come back by a JWT alone", async () => {
  const house = await openHouse();
  await set(house);
  const ada = await me(await by(house));
  expect((await call(`/v1/entities/${ada?.id}`, { method: "DELETE", bearer: house.secretKey })).status).toBe(204);
  const problem = await problemIn(await call("/v1/entities", await by(house, { jti: "again" })));
  expect([problem.code, problem.detail]).toEqual(["unauthorized", expect.stringContaining("was removed")]);
  const body = { type: "human", name: "Ada", externalId: "ada@example" };
  await call("/v1/entities", { bearer: house.secretKey, body });
  expect(await me(await by(house, { jti: "back" }))).toMatchObject({ name: "Ada" });
});

test("[L12] [S4] a sub that is not well-formed names nobody: no two of them are one person", async () => {
  const house = await openHouse();
  await set(house);
  const [one, other] = [await by(house, { sub: "a\ud800" }), await by(house, { sub: "a\ud801" })];
  expect([await refusal(one), await refusal(other)]).toEqual(["unauthorized", "unauthorized"]);
});

test("[L7] [L12] who came by an externalId is out once their person has another", async () => {
  const house = await openHouse();
  await set(house, { firstSight: "refused" });
  const body = { type: "human", name: "Ada", externalId: "ada@example" };
  const { entity } = await expectOk(
    z.object({ entity: Entity }),
    call("/v1/entities", { bearer: house.secretKey, body }),
  );
  const { id } = await house.space("Lab", [entity]);
  const who = await by(house);
  const seen = await open(`/v1/spaces/${id}/stream`, who);
  const patch = { method: "PATCH", bearer: house.secretKey, body: { externalId: "grace@example" } };
  expect((await call(`/v1/entities/${entity.id}`, patch)).status).toBe(200);
  expect(await refusal(who)).toBe("unauthorized");
  await vi.waitFor(() => expect(seen.closed).toBe(4401));
  const grace = { sub: "grace@example", iat: Math.floor(Date.now() / 1000) + 1 };
  expect(await me(await by(house, grace))).toMatchObject({ id: entity.id });
});

test("[L16] what is kept of an erased person's externalId proves no guess, nor do older rows", async () => {
  const house = await openHouse();
  await set(house);
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
  await runInDurableObject(workspace as unknown as DurableObjectStub, (_, { storage }) => {
    storage.sql.exec("INSERT INTO removed_subjects (hash, removed_at) VALUES (?, 1)", hashOf("eve@example"));
  });
  const ada = await me(await by(house));
  unwrap(await workspace.beginErasure({ kind: "person", id: ada?.id ?? "" }, { id: "key" }));
  for (const sub of ["ada@example", "eve@example"]) {
    const problem = await problemIn(await call("/v1/entities", await by(house, { sub, jti: "again" })));
    expect(problem.detail).toContain("was removed");
    expect(await rowsWith(workspace, hashOf(sub))).toEqual([]);
  }
});

test("[L12] a JWT opens sockets as bearer and in the query, which close at its end", async () => {
  const house = await openHouse();
  await set(house);
  const who = await by(house);
  const ada = await me(who);
  const { id } = await house.space("Alpha", [{ id: ada?.id ?? "" }]);
  const path = `/v1/spaces/${id}/stream`;
  const sockets = [
    await open(path, who),
    await open(`${path}?token=${who.bearer}&workspace=${house.workspaceId}`),
    await open(`${path}?token=${await jwt({ wsp: house.workspaceId })}`),
  ];
  expect((await call(`/v1/spaces/${id}/messages`, { ...who, body: { text: "hello" } })).status).toBe(201);
  vi.setSystemTime(Date.now() + 600_000);
  const { runDurableObjectAlarm } = await import("cloudflare:test");
  const { env } = await import("cloudflare:workers");
  await runDurableObjectAlarm(env.SPACE.getByName(id) as unknown as DurableObjectStub);
  await vi.waitUntil(() => sockets.every(({ closed }) => closed === 4401));
});

test("[L12] a sign-out ends the JWTs of before; a new one is taken", async () => {
  const house = await openHouse();
  await set(house);
  const who = await by(house, { iat: Math.floor(Date.now() / 1000) - 5 });
  const ada = await me(who);
  const { id } = await house.space("Alpha", [{ id: ada?.id ?? "" }]);
  const socket = await open(`/v1/spaces/${id}/stream`, who);
  expect((await call(`/v1/entities/${ada?.id}/sign-out`, { ...who, method: "POST" })).status).toBe(204);
  await vi.waitUntil(() => socket.closed === 4401, { timeout: 1000 });
  expect([await refusal(who), await refusal(who)]).toEqual(["unauthorized", "unauthorized"]);
  expect(await me(await by(house, { iat: Math.floor(Date.now() / 1000) + 1 }))).toMatchObject({ id: ada?.id });
  const { detail } = await problemIn(await call("/v1/entities", await by(house, { iat: undefined })));
  expect(detail).toContain("by iat when it was issued");
});

test.each([
  ["taken away", (house: House) => call("/v1/workspace/auth", { method: "DELETE", bearer: house.secretKey })],
  ["changed", (house: House) => set(house, { audience: "other" })],
])("[L12] once the setting is %s, who came by it is out, sockets too", async (_, change) => {
  const house = await openHouse();
  await set(house);
  const who = await by(house);
  const { id } = await house.space("Alpha", [{ id: (await me(who))?.id ?? "" }]);
  const socket = await open(`/v1/spaces/${id}/stream`, who);
  expect((await change(house)).ok).toBe(true);
  await vi.waitUntil(() => socket.closed === 4401, { timeout: 1000 });
  expect(await refusal(who)).toBe("unauthorized");
});

test("[L12] the same setting again ends nobody who came by it", async () => {
  const house = await openHouse();
  await set(house);
  const read = () => call("/v1/workspace/auth", { bearer: house.secretKey }).then((answer) => answer.json());
  const before = await read();
  expect((await set(house)).status).toBe(200);
  expect(await read()).toEqual(before);
});

test("[L7] [L12] what an admin made by a JWT's right ends with the setting", async () => {
  const house = await openHouse();
  await set(house);
  const boss = { type: "human", name: "Boss", role: "admin", externalId: "boss@example" };
  await call("/v1/entities", { bearer: house.secretKey, body: boss });
  const who = await by(house, { sub: "boss@example" });
  const { id = "" } = (await me(who)) ?? {};
  const ada = await house.person("Ada");
  const token = async (entityId: string) =>
    (await expectOk(Token, call("/v1/tokens", { ...who, body: { entityId } }))).token;
  const link = async () => {
    const made = call(`/v1/entities/${id}/sign-in-links`, { ...who, method: "POST" });
    return (await expectOk(SignInLink, made)).link.split("#sign-in=")[1] ?? "";
  };
  const cookie = cookieOf(await signIn(await link()));
  const [left, ownToken] = [await link(), await token(id)];
  const further = call("/v1/tokens", { bearer: ownToken, body: { entityId: id } });
  const bearers = [ownToken, await token(ada.id), (await expectOk(Token, further)).token];
  const made = [...bearers.map((bearer) => ({ bearer })), { headers: { cookie } }];
  for (const one of made) expect((await call("/v1/spaces", one)).status).toBe(200);
  await call("/v1/workspace/auth", { method: "DELETE", bearer: house.secretKey });
  for (const one of made) expect(await refusal(one, "/v1/spaces")).toBe("unauthorized");
  expect((await problemIn(await signIn(left))).code).toBe("unauthorized");
});

test("[S1] [L12] a JWT is good for its workspace alone, and for none that has no setting", async () => {
  const [house, other] = [await openHouse(), await openHouse()];
  await set(house);
  const { bearer = "" } = await by(house);
  expect(await refusal({ bearer, headers: { "x-workspace-id": other.workspaceId } })).toBe("unauthorized");
  expect(await refusal({ bearer, headers: { "x-workspace-id": "wsp_invented" } })).toBe("unauthorized");
  expect(await refusal({ bearer })).toBe("unauthorized");
  const wrong = { bearer: await jwt({ wsp: house.workspaceId }), headers: { "x-workspace-id": other.workspaceId } };
  expect(await refusal(wrong)).toBe("unauthorized");
});

test("[L12] [S4] a setting whose keys are unreadable or private is refused", async () => {
  const house = await openHouse();
  await set(house);
  const { privateKey } = pair;
  const bad: [Record<string, unknown>, string][] = [
    [{ jwksUrl: "https://10.0.0.1/jwks" }, "not a public address"],
    [{ jwksUrl: "http://issuer.example/jwks" }, "not https"],
    [{ jwksUrl: undefined, jwks: { keys: [await exportJWK(privateKey)] } }, "private key"],
    [{ jwksUrl: undefined, jwks: { keys: [{ kty: "oct", k: "AAAA" }] } }, "RSA, EC or OKP"],
    [{ jwks: { keys: [] } }, "jwks"],
    [{ jwksUrl: undefined }, "jwksUrl"],
    [{ firstSight: { role: "admin" } }, "firstSight"],
  ];
  await me(await by(house));
  served.body = `{"keys": [${" ".repeat(5_000_000)}]}`;
  for (const [fields, says] of [[{}, "maxJwksBytes"] as const, ...bad]) {
    const { code, detail, issues = [] } = await problemIn(await set(house, fields));
    expect([code, detail + JSON.stringify(issues)]).toEqual(["invalid_request", expect.stringContaining(says)]);
  }
  expect(await me(await by(house, { sub: "still" }))).toBeDefined();
});

const member = async (house: House, externalId?: string) => {
  const body = { type: "human", name: "Mona", ...(externalId === undefined ? {} : { externalId }) };
  return (await expectOk(z.object({ entity: Entity }), call("/v1/entities", { bearer: house.secretKey, body }))).entity;
};

test("[C3] [C19] [L12] an admin makes no person of the workspace by a JWT of somebody else", async () => {
  const house = await openHouse();
  await set(house);
  const boss = await house.person("Boss", "admin");
  const mona = await member(house, "mona@example");
  const { id } = await house.space("Board", [mona], { confidential: true });
  const named = { method: "PATCH", bearer: boss.token, body: { externalId: "boss@example" } };
  expect((await problemIn(await call(`/v1/entities/${mona.id}`, named))).code).toBe("forbidden");
  const read = await call(`/v1/spaces/${id}/messages`, await by(house, { sub: "boss@example", name: "Boss" }));
  expect(read.status).toBe(404);
});

test("[L6] nobody is made at first sight in a suspended workspace; who is there comes in", async () => {
  const house = await openHouse();
  await set(house);
  const known = await me(await by(house));
  const suspend = `/v1/operator/workspaces/${house.workspaceId}/suspend`;
  expect((await call(suspend, { bearer: adminKey, body: { reason: "Unpaid" } })).ok).toBe(true);
  expect(await refusal(await by(house, { sub: "new@example" }))).toBe("suspended");
  expect(await me(await by(house, { jti: "again" }))).toMatchObject({ id: known?.id });
});
