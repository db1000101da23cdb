import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { Key, Token } from "../../src/protocol/workspace.ts";
import { keyProofLeadMs, keyProofMs } from "../../src/space/bounds.ts";
import type { Space } from "../../src/space/space.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { call, expectOk, openHouse } from "../support/house.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** A socket that a secret key holds open as `entityId`. */
const open = async (spaceId: string, bearer: string, entityId: string) => {
  const headers = { upgrade: "websocket" };
  const { webSocket } = await call(`/v1/spaces/${spaceId}/stream`, { bearer, as: entityId, headers });
  if (!webSocket) throw new Error("a socket was expected");
  const seen: { closed?: number; types: string[] } = { types: [] };
  webSocket.addEventListener("message", ({ data }) => {
    seen.types.push(z.object({ type: z.string() }).parse(JSON.parse(String(data))).type);
  });
  webSocket.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  webSocket.accept();
  return { seen, type: () => webSocket.send(JSON.stringify({ type: "typing" })) };
};

const stage = async () => {
  const house = await openHouse();
  const [mona, leo] = [await house.person("Mona"), await house.person("Leo")];
  const { id } = await house.space("Alpha", [mona, leo]);
  const second = await expectOk(
    z.object({ key: Key, secretKey: z.string() }),
    call("/v1/workspace/keys", { method: "POST", bearer: house.secretKey }),
  );
  const revoke = () => call(`/v1/workspace/keys/${second.key.id}`, { method: "DELETE", bearer: house.secretKey });
  const namespace: unknown = env.SPACE;
  const space = (namespace as DurableObjectNamespace<Space>).getByName(id);
  const passTime = async (milliseconds: number) => {
    vi.setSystemTime(Date.now() + milliseconds);
    await runDurableObjectAlarm(space);
  };
  /** Until when the sockets that are open may stay so, in milliseconds since the epoch. */
  const openUntil = () =>
    runInDurableObject(space, (_, state) =>
      state
        .getWebSockets()
        .filter((socket) => socket.readyState === WebSocket.OPEN)
        .map((socket) => z.object({ provenUntil: z.number() }).parse(socket.deserializeAttachment()).provenUntil),
    );
  return { house, mona, leo, spaceId: id, second, revoke, passTime, openUntil };
};

test("[S5] the sockets of a revoked key close within a minute; those of a living key stay", async () => {
  const { house, mona, leo, spaceId, second, revoke, passTime, openUntil } = await stage();
  const doomed = await open(spaceId, second.secretKey, mona.id);
  const staying = await open(spaceId, house.secretKey, leo.id);
  expect((await revoke()).status).toBe(204);
  await passTime(keyProofMs - keyProofLeadMs);
  await vi.waitUntil(() => doomed.seen.closed !== undefined);
  expect(doomed.seen.closed).toBe(4401);
  for (let times = 0; times < 3; times += 1) {
    await vi.waitFor(async () => expect(await openUntil()).toEqual([Date.now() + keyProofMs]));
    await passTime(keyProofMs - keyProofLeadMs);
  }
  const mia = await open(spaceId, house.secretKey, mona.id);
  staying.type();
  await vi.waitUntil(() => mia.seen.types.includes("member.typing"));
  expect(staying.seen.closed).toBeUndefined();
  expect(keyProofMs).toBeLessThanOrEqual(60_000);
});

test("[S5] the socket of a key that cannot be verified closes within a minute", async () => {
  const { mona, spaceId, second, passTime } = await stage();
  const socket = await open(spaceId, second.secretKey, mona.id);
  vi.spyOn(Workspace.prototype, "keyLives").mockRejectedValue(new Error("out of reach"));
  await passTime(keyProofMs - keyProofLeadMs);
  expect(socket.seen.closed).toBeUndefined();
  await passTime(keyProofLeadMs);
  await vi.waitUntil(() => socket.seen.closed !== undefined);
  expect(socket.seen.closed).toBe(4401);
});

test("[L2] [S5] the socket of a key that may do less from now on closes within a minute", async () => {
  const { house, mona, leo, spaceId, second, passTime } = await stage();
  const narrowed = await open(spaceId, second.secretKey, mona.id);
  const path = `/v1/workspace/keys/${second.key.id}`;
  const patch = (body: object) => call(path, { method: "PATCH", bearer: house.secretKey, body });
  expect((await patch({ scopes: ["read"] })).status).toBe(200);
  await passTime(keyProofMs - keyProofLeadMs);
  await vi.waitUntil(() => narrowed.seen.closed !== undefined);
  expect(narrowed.seen.closed).toBe(4401);
  const reader = await open(spaceId, second.secretKey, leo.id);
  expect((await patch({ scopes: ["full"] })).status).toBe(200);
  await passTime(keyProofMs - keyProofLeadMs);
  const mia = await open(spaceId, house.secretKey, mona.id);
  mia.type();
  await vi.waitUntil(() => reader.seen.types.includes("member.typing"));
});

test("[L2] [L7] what a key of scope tokens signed in is out once its person is an admin", async () => {
  const { house, mona, leo, spaceId } = await stage();
  const ask = { method: "POST", bearer: house.secretKey, body: { scopes: ["tokens"] } };
  const { secretKey: bearer } = await expectOk(z.object({ secretKey: z.string() }), call("/v1/workspace/keys", ask));
  const tokenOf = async (entityId: string) =>
    (await expectOk(Token, call("/v1/tokens", { bearer, body: { entityId } }))).token;
  const [promoted, other] = [
    await open(spaceId, await tokenOf(mona.id), mona.id),
    await open(spaceId, await tokenOf(leo.id), leo.id),
  ];
  const patch = { method: "PATCH", bearer: house.secretKey, body: { role: "admin" } };
  expect((await call(`/v1/entities/${mona.id}`, patch)).status).toBe(200);
  await vi.waitUntil(() => promoted.seen.closed === 4401);
  expect(other.seen.closed).toBeUndefined();
});
