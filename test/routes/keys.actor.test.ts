import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { hashSecretKey } from "../../src/auth/credentials.ts";
import { type CreateKey, Key } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { keyUseMs, maxKeys } from "../../src/workspace/bounds.ts";
import { type Call, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { inside } from "../workspace/fixture.ts";
import { problemIn } from "./operations.ts";

afterEach(() => {
  vi.useRealTimers();
});

const Made = z.object({ key: Key, secretKey: z.string() });
const Rolled = Made.extend({ previous: Key });

const make = (bearer: string, body: Partial<z.input<typeof CreateKey>> = {}, headers = {}) =>
  call("/v1/workspace/keys", { bearer, body, headers });
const made = (house: House, body: Partial<z.input<typeof CreateKey>> = {}) =>
  expectOk(Made, make(house.secretKey, body));
const roll = (house: House, keyId: string, body = {}, headers = {}) =>
  call(`/v1/workspace/keys/${keyId}/roll`, { bearer: house.secretKey, body, headers });
const listed = async (house: House) =>
  (await expectOk(z.object({ items: z.array(Key) }), call("/v1/workspace/keys", { bearer: house.secretKey }))).items;
const refusal = async (path: string, options: Call) => (await problemIn(await call(path, options))).code;
const pass = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds);

test("[L2] keys are listed with name, scopes, last use and end, and without their secrets", async () => {
  const house = await openHouse();
  const { key, secretKey } = await made(house, { name: "Reports", scopes: ["read"], expiresInSeconds: 3600 });
  expect(key).toMatchObject({ name: "Reports", scopes: ["read"], lastUsedAt: null });
  expect(Date.parse(key.expiresAt ?? "") - Date.parse(key.createdAt)).toBeCloseTo(3_600_000, -3);
  expect((await call("/v1/entities", { bearer: secretKey })).status).toBe(200);
  const items = await listed(house);
  expect(items.map(({ id }) => id)).toEqual([house.keyId, key.id]);
  expect(items[1]?.lastUsedAt).not.toBeNull();
  const secret = secretKey.slice(-43);
  expect(JSON.stringify(items)).not.toContain(secret);
  expect(JSON.stringify(items)).not.toContain(hashSecretKey(secretKey));
});

test("[L2] [S4] a change of a key that names nothing answers the key as it is", async () => {
  const house = await openHouse();
  const path = `/v1/workspace/keys/${house.keyId}`;
  const changed = await call(path, { method: "PATCH", bearer: house.secretKey, body: {} });
  expect(changed.status).toBe(200);
  expect(await changed.json()).toMatchObject({ key: { id: house.keyId, scopes: ["full"] } });
});

test("[L2] who finds a key that leaked reads its id in it, and revokes it", async () => {
  const house = await openHouse();
  const { secretKey } = await made(house, { scopes: ["read"] });
  const leaked = `key_${secretKey.split("_")[3]}`;
  expect((await call(`/v1/workspace/keys/${leaked}`, { bearer: house.secretKey, method: "DELETE" })).status).toBe(204);
  expect(await refusal("/v1/entities", { bearer: secretKey })).toBe("unauthorized");
  expect(await listed(house)).toHaveLength(1);
});

test("[L2] a key of the form without an id is taken still", async () => {
  const house = await openHouse();
  const old = `sk_${house.workspaceId}_${"o".repeat(43)}`;
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  unwrap(await workspace.addKey({ keyId: ids.mint("key"), keyHash: hashSecretKey(old) }));
  expect((await call("/v1/workspace", { bearer: old })).status).toBe(200);
});

test("[L2] a key that was rolled goes on for the overlap beside its successor, and ends", async () => {
  const house = await openHouse();
  const { key, secretKey } = await made(house, { name: "Reports", scopes: ["read", "hooks"] });
  const rolled = await expectOk(Rolled, roll(house, key.id, { overlapSeconds: 600 }));
  expect(rolled.key).toMatchObject({ name: "Reports", scopes: ["read", "hooks"], expiresAt: null });
  expect(rolled.previous.id).toBe(key.id);
  for (const bearer of [secretKey, rolled.secretKey]) expect((await call("/v1/entities", { bearer })).status).toBe(200);
  expect(await refusal(`/v1/workspace/keys/${key.id}/roll`, { bearer: house.secretKey, body: {} })).toBe("conflict");
  pass(600_000);
  expect(await refusal("/v1/entities", { bearer: secretKey })).toBe("unauthorized");
  expect((await call("/v1/entities", { bearer: rolled.secretKey })).status).toBe(200);
  const at = (overlapSeconds: number) => roll(house, rolled.key.id, { overlapSeconds });
  expect((await problemIn(await at(30 * 86_400 + 1))).code).toBe("invalid_request");
  const { previous } = await expectOk(Rolled, roll(house, rolled.key.id));
  expect(Date.parse(previous.expiresAt ?? "") - Date.now()).toBeCloseTo(86_400_000, -4);
});

test("[L2] a key with an end rolls none that has no end: the successor would end with it", async () => {
  const house = await openHouse();
  const [day, { key }] = [await made(house, { expiresInSeconds: 86_400 }), await made(house, { scopes: ["read"] })];
  const bearer = day.secretKey;
  expect(await refusal(`/v1/workspace/keys/${key.id}/roll`, { bearer, body: {} })).toBe("forbidden");
  const own = await expectOk(Rolled, call(`/v1/workspace/keys/${day.key.id}/roll`, { bearer, body: {} }));
  expect(own.key.expiresAt).toBe(day.key.expiresAt);
  expect(await listed(house)).toContainEqual(key);
});

test("[L2] a roll that is sent again under its Idempotency-Key makes no second successor", async () => {
  const house = await openHouse();
  const headers = { "idempotency-key": "once" };
  const first = await expectOk(Rolled, roll(house, house.keyId, { overlapSeconds: 60 }, headers));
  const again = await expectOk(Rolled, roll(house, house.keyId, { overlapSeconds: 60 }, headers));
  expect(again).toEqual(first);
  // As after a crash before the answer was kept.
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const asked = { keyId: first.key.id, keyHash: hashSecretKey(first.secretKey) };
  expect(unwrap(await workspace.rollKey(house.keyId, asked, 0)).previous).toEqual(
    (await listed(house)).find(({ id }) => id === house.keyId),
  );
});

test("[L2] a key gives nobody more than it has: not by keys, nor by tokens", async () => {
  const house = await openHouse();
  const [ada, boss] = [await house.person("Ada"), await house.person("Boss", "admin")];
  const tokens = await made(house, { scopes: ["tokens"] });
  const sign = (entityId: string) => [
    call("/v1/tokens", { bearer: tokens.secretKey, body: { entityId } }),
    call(`/v1/entities/${entityId}/sign-in-links`, { bearer: tokens.secretKey, method: "POST" }),
  ];
  for (const answer of await Promise.all(sign(ada.id))) expect(answer.status).toBe(201);
  for (const answer of await Promise.all(sign(boss.id))) expect((await problemIn(answer)).code).toBe("forbidden");
  const day = await made(house, { expiresInSeconds: 86_400 });
  const child = await expectOk(Made, make(day.secretKey));
  expect(child.key.expiresAt).toBe(day.key.expiresAt);
  expect((await problemIn(await make(day.secretKey, { expiresInSeconds: 90_000 }))).code).toBe("forbidden");
  const reader = await made(house, { scopes: ["read"] });
  const widen = (bearer: string, path = reader.key.id) =>
    call(`/v1/workspace/keys/${path}`, { method: "PATCH", bearer, body: { scopes: ["full"] } });
  expect((await problemIn(await widen(day.secretKey))).code).toBe("forbidden");
  for (const { secretKey } of [reader, tokens]) {
    expect((await problemIn(await widen(secretKey))).code).toBe("forbidden");
    expect((await problemIn(await make(secretKey))).code).toBe("forbidden");
  }
  expect((await widen(house.secretKey)).status).toBe(200);
  expect((await make(reader.secretKey)).status).toBe(201);
});

test("[L2] a link that a key of scope tokens made is void once its person is an admin", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { secretKey } = await made(house, { scopes: ["tokens"] });
  const link = call(`/v1/entities/${ada.id}/sign-in-links`, { bearer: secretKey, method: "POST" });
  const [, code] = (await expectOk(z.object({ link: z.string() }), link)).link.split("#sign-in=");
  await call(`/v1/entities/${ada.id}`, { method: "PATCH", bearer: house.secretKey, body: { role: "admin" } });
  expect(await refusal("/v1/session", { body: { code } })).toBe("unauthorized");
});

test("[L2] one key of scope full without an end always stays", async () => {
  const house = await openHouse();
  await made(house, { expiresInSeconds: 60 });
  await made(house, { scopes: ["read", "tokens", "hooks"] });
  const path = `/v1/workspace/keys/${house.keyId}`;
  expect(await refusal(path, { bearer: house.secretKey, method: "DELETE" })).toBe("conflict");
  expect(await refusal(path, { bearer: house.secretKey, method: "PATCH", body: { scopes: ["read"] } })).toBe(
    "conflict",
  );
  await made(house);
  expect((await call(path, { bearer: house.secretKey, method: "DELETE" })).status).toBe(204);
});

test("[L2] the last use of a key is written once an hour", async () => {
  const house = await openHouse();
  const workspace = env.WORKSPACE.getByName(house.workspaceId);
  const hash = hashSecretKey(house.secretKey);
  const written = () =>
    inside(workspace, async (itself, state) => {
      const before = state.storage.sql.exec("SELECT total_changes() AS n").one().n;
      unwrap(await itself.verifyKey(hash));
      return Number(state.storage.sql.exec("SELECT total_changes() AS n").one().n) - Number(before);
    });
  vi.setSystemTime(Date.now() + 2 * keyUseMs);
  expect([await written(), await written()]).toEqual([1, 0]);
  pass(keyUseMs - 1);
  expect(await written()).toBe(0);
  pass(1);
  expect(await written()).toBe(1);
});

test("[L2] [S4] what a key cannot be is refused by name", async () => {
  const house = await openHouse();
  for (const [body, code] of [
    [{ scopes: [] }, "invalid_request"],
    [{ scopes: ["read", "read"] }, "invalid_request"],
    [{ scopes: ["write"] }, "invalid_request"],
    [{ expiresAt: "2020-01-01T00:00:00.000Z" }, "invalid_time"],
    [{ expiresAt: "2099-01-01T00:00:00.000Z", expiresInSeconds: 5 }, "invalid_request"],
    [{ expiresInSeconds: 0 }, "invalid_request"],
    [{ name: "a\u200bb" }, "invalid_request"],
  ] as const) {
    expect(await refusal("/v1/workspace/keys", { bearer: house.secretKey, body }), JSON.stringify(body)).toBe(code);
  }
  const never = `/v1/workspace/keys/${ids.mint("key")}`;
  expect(await refusal(`${never}/roll`, { bearer: house.secretKey, body: {} })).toBe("not_found");
  expect(await refusal(never, { bearer: house.secretKey, method: "PATCH", body: {} })).toBe("not_found");
});

test("[B3] [L2] keys in their overlap have a bound of their own", async () => {
  const house = await openHouse();
  for (let count = 1; count < maxKeys; count += 1) await made(house);
  expect((await problemIn(await make(house.secretKey))).code).toBe("limit_reached");
  let { keyId, secretKey } = house;
  const next = () => roll({ ...house, secretKey }, keyId);
  for (let count = 0; count < maxKeys; count += 1) {
    const rolled = await expectOk(Rolled, next());
    [keyId, secretKey] = [rolled.key.id, rolled.secretKey];
  }
  expect((await problemIn(await next())).code).toBe("limit_reached");
});

test("[L2] a key of scope read follows a space and says nothing there", async () => {
  const house = await openHouse();
  const ada = await house.person("Ada");
  const { id } = await house.space("Alpha", [ada]);
  const { secretKey } = await made(house, { scopes: ["read"], expiresInSeconds: 600 });
  const { webSocket } = await call(`/v1/spaces/${id}/stream`, {
    ...{ bearer: secretKey, as: ada.id },
    headers: { upgrade: "websocket" },
  });
  if (!webSocket) throw new Error("a socket was expected");
  const frames: string[] = [];
  webSocket.addEventListener("message", ({ data }) => {
    frames.push(String(data));
  });
  webSocket.accept();
  webSocket.send(JSON.stringify({ type: "message.send", text: "hello", clientKey: "one" }));
  await vi.waitUntil(() => frames.some((frame) => frame.includes('"error"')));
  expect(frames.find((frame) => frame.includes('"error"'))).toContain('"forbidden"');
  const messages = call(`/v1/spaces/${id}/messages`, { bearer: secretKey, as: ada.id });
  expect((await expectOk(z.object({ items: z.array(z.unknown()) }), messages)).items).toEqual([]);
});
