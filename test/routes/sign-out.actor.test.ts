import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { decodeJwt } from "jose";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { forgetCredentials } from "../../src/auth/verdicts.ts";
import { Entity } from "../../src/protocol/entity.ts";
import { Key, Session, Token } from "../../src/protocol/workspace.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { keyProofLeadMs, keyProofMs } from "../../src/space/bounds.ts";
import { Space } from "../../src/space/space.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { type Call, call, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { codeBy, cookieBy, signIn, withCookie } from "../support/session.ts";
import { problemIn } from "./operations.ts";

/** Tokens and sessions end before their time: by a sign-out, with the key and with the admin that made them. */
afterEach(() => {
  vi.useRealTimers();
});

const Made = z.object({ key: Key, secretKey: z.string() });
const madeKey = (house: House, body = {}) =>
  expectOk(Made, call("/v1/workspace/keys", { bearer: house.secretKey, body }));
const tokenBy = async (bearer: string, entityId: string) =>
  (await expectOk(Token, call("/v1/tokens", { bearer, body: { entityId } }))).token;
const signOut = (entityId: string, by: Call) => call(`/v1/entities/${entityId}/sign-out`, { method: "POST", ...by });
const status = async (by: Call, path = "/v1/spaces") => (await call(path, by)).status;

const open = async (path: string, by: Call): Promise<{ closed?: number }> => {
  const { webSocket } = await call(path, { ...by, headers: { ...by.headers, upgrade: "websocket" } });
  if (!webSocket) throw new Error("a socket was expected");
  const seen: { closed?: number } = {};
  webSocket.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  webSocket.accept();
  return seen;
};
const closed = (...sockets: { closed?: number }[]) =>
  vi.waitUntil(() => sockets.every((socket) => socket.closed !== undefined), { timeout: 1000 });

const shareBlock = async (house: House, agentId: string, spaceId: string): Promise<void> => {
  const blocks = `/v1/agents/${agentId}/blocks`;
  await call(blocks, { bearer: house.secretKey, body: { label: "notes", type: "core", content: "Tea" } });
  await call(`${blocks}/notes/spaces/${spaceId}`, { bearer: house.secretKey, method: "PUT", body: {} });
};

test("[L7] a repeated request makes nobody again who was removed: old tokens would count", async () => {
  const house = await openHouse();
  const headers = { "idempotency-key": "provision-mona" };
  const make = () => call("/v1/entities", { bearer: house.secretKey, headers, body: { type: "human", name: "Mona" } });
  const { id } = (await expectOk(z.object({ entity: Entity }), make())).entity;
  const bearer = await house.token(id, 30 * 86_400);
  await signOut(id, { bearer: house.secretKey });
  await call(`/v1/entities/${id}`, { bearer: house.secretKey, method: "DELETE" });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 25 * 3_600_000 });
  expect(await problemIn(await make())).toMatchObject({
    code: "gone",
    detail: expect.stringContaining("new Idempotency-Key"),
  });
  expect(await status({ bearer })).toBe(401);
});

test("[L7] a sign-out ends each token, session and link, and all sockets in a second", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const agent = await house.agent({ name: "Nova" });
  const { id } = await house.space("Alpha", [ada, bob, agent]);
  await shareBlock(house, agent.id, id);
  const [cookie, code] = [await cookieBy(house.secretKey, ada.id), await codeBy(house.secretKey, ada.id)];
  const own: Call[] = [{ bearer: ada.token }, { bearer: await house.token(ada.id) }, withCookie(cookie)];
  const paths = [`/v1/spaces/${id}/stream`, `/v1/spaces/${id}/agents/${agent.id}/blocks/notes/stream`];
  const doomed = await Promise.all(own.flatMap((by) => paths.map((path) => open(path, by))));
  const staying = await Promise.all(paths.map((path) => open(path, { bearer: bob.token })));
  const byKey = await open(paths[0] ?? "", { bearer: house.secretKey, as: ada.id });
  expect((await signOut(ada.id, { bearer: ada.token })).status).toBe(204);
  await closed(...doomed);
  expect([...new Set(doomed.map((socket) => socket.closed))]).toEqual([4401]);
  for (const by of own) {
    for (const path of ["/v1/spaces", `/v1/spaces/${id}`]) expect(await status(by, path)).toBe(401);
  }
  expect((await signIn(code)).status).toBe(401);
  expect([...staying, byKey].map((socket) => socket.closed)).toEqual([undefined, undefined, undefined]);
  expect(await status({ bearer: await house.token(ada.id) })).toBe(200);
});

test("[L7] who follows a block is out in a second after the key, admin or session ended", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const agent = await house.agent({ name: "Nova" });
  const { id } = await house.space("Alpha", [ada, agent]);
  await shareBlock(house, agent.id, id);
  const shared = `/v1/spaces/${id}/agents/${agent.id}/blocks/notes/stream`;
  const own = `/v1/agents/${agent.id}/blocks/notes/stream`;
  const remove = (path: string, by: Call = { bearer: house.secretKey }) => call(path, { ...by, method: "DELETE" });
  const { key, secretKey } = await madeKey(house);
  const byKey = [await open(shared, { bearer: await tokenBy(secretKey, ada.id) })];
  byKey.push(await open(own, { bearer: await tokenBy(secretKey, boss.id) }));
  expect((await remove(`/v1/workspace/keys/${key.id}`)).status).toBe(204);
  await closed(...byKey);
  const by = withCookie(await cookieBy(house.secretKey, ada.id));
  const bySession = await open(shared, by);
  expect((await remove("/v1/session", by)).status).toBe(204);
  await closed(bySession);
  const byAdmin = await open(shared, { bearer: await tokenBy(boss.token, ada.id) });
  const admins = await open(own, { bearer: boss.token });
  expect((await remove(`/v1/entities/${boss.id}`)).status).toBe(204);
  await closed(byAdmin, admins);
  expect([...byKey, bySession, byAdmin, admins].map((socket) => socket.closed)).toEqual(Array(5).fill(4401));
});

test("[L7] [L16] who is erased is out of all spaces in a second, however many there are", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const spaces = await Promise.all(Array.from({ length: 15 }, (_, at) => house.space(`Space ${at}`, [ada])));
  const sockets = await Promise.all(spaces.map(({ id }) => open(`/v1/spaces/${id}/stream`, { bearer: ada.token })));
  await call("/v1/erasures", { bearer: house.secretKey, body: { kind: "person", id: ada.id } });
  await closed(...sockets);
});

test("[L7] whoever has proven a socket is told of ended credentials before all others", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const house = await openHouse();
  const ada = await house.person("Ada");
  const agent = await house.agent({ name: "Nova" });
  const spaces = await Promise.all(Array.from({ length: 5 }, (_, at) => house.space(`Space ${at}`, [ada, agent])));
  const ids = spaces.map(({ id }) => id).sort();
  const [first = "", last = ""] = [ids[0], ids.at(-1)];
  await shareBlock(house, agent.id, first);
  const { key, secretKey } = await madeKey(house);
  const bearer = await tokenBy(secretKey, ada.id);
  const streams = [`/v1/spaces/${last}/stream`, `/v1/spaces/${first}/agents/${agent.id}/blocks/notes/stream`];
  const sockets = await Promise.all(streams.map((path) => open(path, { bearer })));
  vi.setSystemTime(Date.now() + keyProofMs - keyProofLeadMs);
  const space = env.SPACE.getByName(last) as unknown as DurableObjectStub;
  await runDurableObjectAlarm(space);
  await runDurableObjectAlarm(env.AGENT.getByName(agent.id) as unknown as DurableObjectStub);
  const having = [env.SPACE.idFromName(last), env.AGENT.idFromName(agent.id)].map(String).sort();
  const workspace = env.WORKSPACE.getByName(house.workspaceId) as unknown as DurableObjectStub;
  const noted = () =>
    runInDurableObject(workspace, (_, { storage }) =>
      [...storage.sql.exec<{ id: string }>("SELECT id FROM socket_objects ORDER BY id")].map(({ id }) => id),
    );
  await vi.waitFor(async () => expect(await noted()).toEqual(having));
  const order = vi.spyOn(Space.prototype, "proveAgain");
  expect((await call(`/v1/workspace/keys/${key.id}`, { bearer: house.secretKey, method: "DELETE" })).status).toBe(204);
  await closed(...sockets);
  const told: unknown = order.mock.contexts[0];
  order.mockRestore();
  expect(await runInDurableObject(space, (instance) => instance === told)).toBe(true);
});

test("[L7] a person signs out by a session, an admin and a key of scope tokens for others", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const { secretKey } = await madeKey(house, { scopes: ["tokens"] });
  for (const by of [
    withCookie(await cookieBy(house.secretKey, ada.id)),
    { bearer: boss.token },
    { bearer: secretKey },
  ]) {
    const token = await house.token(ada.id);
    expect((await signOut(ada.id, by)).status).toBe(204);
    expect(await status({ bearer: token })).toBe(401);
  }
  // A guest's programs have tokens too.
  const agent = await house.agent({ name: "Nova" });
  expect((await signOut(agent.id, { bearer: boss.token })).status).toBe(204);
});

test("[L7] where a sign-out was not heard of, tokens and sessions end within a minute", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const cookie = await cookieBy(house.secretKey, ada.id);
  const own: Call[] = [{ bearer: ada.token }, withCookie(cookie)];
  for (const by of own) expect(await status(by)).toBe(200);
  // As from another isolate, whose memory this one does not share.
  unwrap(await env.WORKSPACE.getByName(house.workspaceId).signOut(ada.id));
  for (const by of own) expect(await status(by)).toBe(200);
  // Nor can what has ended make anything new meanwhile.
  const boss = await house.person("Boss", "admin");
  expect(await status({ bearer: boss.token }, "/v1/workspace")).toBe(200);
  unwrap(await env.WORKSPACE.getByName(house.workspaceId).signOut(boss.id));
  const late = call("/v1/tokens", { bearer: boss.token, body: { entityId: boss.id } });
  expect((await problemIn(await late)).code).toBe("unauthorized");
  vi.setSystemTime(Date.now() + 60_000);
  for (const by of own) expect(await status(by)).toBe(401);
});

test("[L7] a socket that was opened where a sign-out was not heard of closes within a minute", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  expect(await status({ bearer: ada.token })).toBe(200);
  unwrap(await env.WORKSPACE.getByName(house.workspaceId).signOut(ada.id));
  const late = await open(`/v1/spaces/${id}/stream`, { bearer: ada.token });
  vi.setSystemTime(Date.now() + keyProofMs - keyProofLeadMs);
  await runDurableObjectAlarm(env.SPACE.getByName(id) as unknown as DurableObjectStub);
  await closed(late);
});

test("[L7] no socket opens that a sign-out would miss, since the index of spaces is late", async () => {
  const house = await openHouse();
  const [ada, bob] = [await house.person("Ada"), await house.person("Bob")];
  const agent = await house.agent({ name: "Nova" });
  const { id } = await house.space("Alpha", [bob, agent]);
  await shareBlock(house, agent.id, id);
  const paths = [`/v1/spaces/${id}/stream`, `/v1/spaces/${id}/agents/${agent.id}/blocks/notes/stream`];
  const late = vi.spyOn(Workspace.prototype, "follow").mockResolvedValue(refuse("unavailable", "later"));
  await call(`/v1/spaces/${id}/members`, { bearer: house.secretKey, body: { entityId: ada.id } });
  for (const path of paths) {
    const refused = call(path, { bearer: ada.token, headers: { upgrade: "websocket" } });
    expect(await problemIn(await refused)).toMatchObject({ code: "unavailable" });
  }
  const stays = await open(paths[0] ?? "", { bearer: bob.token });
  late.mockRestore();
  const sockets = await vi.waitFor(() => Promise.all(paths.map((path) => open(path, { bearer: ada.token }))));
  vi.setSystemTime(Date.now() + keyProofMs - keyProofLeadMs);
  await runDurableObjectAlarm(env.SPACE.getByName(id) as unknown as DurableObjectStub);
  await signOut(ada.id, { bearer: ada.token });
  await closed(...sockets);
  expect(stays.closed).toBeUndefined();
});

const byKeyEnds: [string, (house: House, keyId: string) => Promise<Response>][] = [
  ["is revoked", (house, keyId) => call(`/v1/workspace/keys/${keyId}`, { bearer: house.secretKey, method: "DELETE" })],
  [
    "is rolled at once",
    (house, keyId) =>
      call(`/v1/workspace/keys/${keyId}/roll`, { bearer: house.secretKey, body: { overlapSeconds: 0 } }),
  ],
  [
    "is narrowed",
    (house, keyId) =>
      call(`/v1/workspace/keys/${keyId}`, { bearer: house.secretKey, method: "PATCH", body: { scopes: ["read"] } }),
  ],
];

test.each(byKeyEnds)("[L7] what a key made ends once the key %s, with what was made by that", async (_, end) => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const { id } = await house.space("Alpha", [ada, boss]);
  const { key, secretKey } = await madeKey(house);
  const bossToken = await tokenBy(secretKey, boss.id);
  const doomed: Call[] = [
    { bearer: await tokenBy(secretKey, ada.id) },
    withCookie(await cookieBy(secretKey, ada.id)),
    { bearer: bossToken },
    { bearer: await tokenBy(bossToken, ada.id) },
    { bearer: await tokenBy(bossToken, boss.id) },
    withCookie(await cookieBy(bossToken, boss.id)),
  ];
  const code = await codeBy(bossToken, boss.id);
  const path = `/v1/spaces/${id}/stream`;
  const sockets = await Promise.all(doomed.map((by) => open(path, by)));
  const staying = await open(path, { bearer: ada.token });
  expect((await end(house, key.id)).ok).toBe(true);
  for (const by of doomed) expect(await status(by)).toBe(401);
  expect((await signIn(code)).status).toBe(401);
  await closed(...sockets);
  expect([await status({ bearer: ada.token }), staying.closed]).toEqual([200, undefined]);
});

test("[L7] a token and its socket end with their key's own end", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const { key, secretKey } = await madeKey(house, { expiresInSeconds: 600 });
  const by = { bearer: await tokenBy(secretKey, ada.id) };
  const socket = await open(`/v1/spaces/${id}/stream`, by);
  vi.setSystemTime(Date.parse(key.expiresAt ?? ""));
  await runDurableObjectAlarm(env.SPACE.getByName(id) as unknown as DurableObjectStub);
  await closed(socket);
  expect(await status(by)).toBe(401);
});

const byAdminEnds: [string, (house: House, boss: Participant) => Promise<Response>][] = [
  ["signs out", (_, boss) => signOut(boss.id, { bearer: boss.token })],
  ["is removed", ({ secretKey }, { id }) => call(`/v1/entities/${id}`, { bearer: secretKey, method: "DELETE" })],
  [
    "is no admin any more",
    ({ secretKey }, { id }) =>
      call(`/v1/entities/${id}`, { bearer: secretKey, method: "PATCH", body: { role: "member" } }),
  ],
];

test.each(byAdminEnds)("[L7] what an admin made for others ends once the admin %s", async (_, end) => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const { id } = await house.space("Alpha", [ada]);
  const doomed: Call[] = [
    { bearer: await tokenBy(boss.token, ada.id) },
    withCookie(await cookieBy(boss.token, ada.id)),
  ];
  const code = await codeBy(boss.token, ada.id);
  const sockets = await Promise.all(doomed.map((by) => open(`/v1/spaces/${id}/stream`, by)));
  expect((await end(house, boss)).ok).toBe(true);
  for (const by of doomed) expect(await status(by)).toBe(401);
  expect((await signIn(code)).status).toBe(401);
  await closed(...sockets);
  expect(await status({ bearer: ada.token })).toBe(200);
});

test("[L7] a token without a generation counts until the first sign-out", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  expect(decodeJwt(ada.token)).not.toHaveProperty("gen");
  await signOut(ada.id, { bearer: house.secretKey });
  expect(await status({ bearer: ada.token })).toBe(401);
  expect(decodeJwt(await house.token(ada.id))).toMatchObject({ gen: 1, kid: house.keyId });
});

test("[C3] [L7] a session says who made it for its person", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const session = async (by: Call) =>
    (await expectOk(z.object({ session: Session.nullable() }), call("/v1/session", by))).session?.madeBy;
  expect(await session(withCookie(await cookieBy(house.secretKey, ada.id)))).toBeNull();
  const made = await expectOk(z.object({ session: Session }), signIn(await codeBy(boss.token, ada.id)));
  expect(made.session.madeBy).toEqual({ id: boss.id, name: "Boss" });
  expect(await session(withCookie(await cookieBy(boss.token, ada.id)))).toEqual({ id: boss.id, name: "Boss" });
});

test("[L7] a sign-out whose space could not be told is told after a crash", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const socket = await open(`/v1/spaces/${id}/stream`, { bearer: ada.token });
  const { Space } = await import("../../src/space/space.ts");
  const told = vi.spyOn(Space.prototype, "proveAgain").mockRejectedValueOnce(new Error("out of reach"));
  await signOut(ada.id, { bearer: ada.token });
  await vi.waitUntil(() => told.mock.calls.length > 0);
  expect(socket.closed).toBeUndefined();
  vi.setSystemTime(Date.now() + 10_000);
  await runDurableObjectAlarm(env.WORKSPACE.getByName(house.workspaceId) as unknown as DurableObjectStub);
  await closed(socket);
  told.mockRestore();
  forgetCredentials(house.workspaceId);
});
