import { beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Key } from "../../src/protocol/workspace.ts";
import { type Call, call, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** Rights that the table of every operation by every kind of principal (`matrix.actor.test.ts`) does not ask. */
let house: House;
let elsewhere: House;
let mona: Participant;
let boss: Participant;
let stranger: Participant;
let foreigner: Participant;
let agentId: string;
let spaceId: string;

beforeAll(async () => {
  [house, elsewhere] = await Promise.all([openHouse("Here"), openHouse("Elsewhere")]);
  mona = await house.person("Mona");
  boss = await house.person("Boss", "admin");
  stranger = await house.person("Stranger");
  foreigner = await elsewhere.person("Foreigner", "admin");
  agentId = (await house.agent({ name: "Analyst" })).id;
  spaceId = (await house.space("Alpha", [mona, { id: agentId }])).id;
});

const status = async (path: string, options: Call): Promise<number> => (await call(path, options)).status;

describe("[S1] nothing of one workspace resolves in another", () => {
  test("messages, the read mark and the stream, also as an entity of the other workspace", async () => {
    const message = await house.say(spaceId, mona, "Private");
    for (const body of [{ text: "hello" }, { messageId: message.id }]) {
      const path = `/v1/spaces/${spaceId}/${"text" in body ? "messages" : "read"}`;
      expect(await status(path, { bearer: foreigner.token, body })).toBe(404);
      expect(await status(path, { bearer: elsewhere.secretKey, as: foreigner.id, body })).toBe(404);
      expect(await status(path, { bearer: elsewhere.secretKey, as: mona.id, body })).toBe(422);
    }
    for (const end of ["events", "stream"]) {
      const headers: Record<string, string> = end === "stream" ? { upgrade: "websocket" } : {};
      const path = `/v1/spaces/${spaceId}/${end}`;
      expect(await status(path, { bearer: elsewhere.secretKey, as: foreigner.id, headers })).toBe(404);
    }
  });

  test("ids of the other workspace in a body", async () => {
    const bearer = house.secretKey;
    for (const [path, body] of [
      ["/v1/tokens", { entityId: foreigner.id }],
      ["/v1/spaces", { name: "Mixed", members: [{ entityId: foreigner.id }] }],
      [`/v1/spaces/${spaceId}/members`, { entityId: foreigner.id }],
    ] as const) {
      expect(await problemIn(await call(path, { bearer, body })), path).toMatchObject({ code: "unknown_reference" });
    }
  });
});

describe("[S1] a space is for its members, and an entity for itself", () => {
  test("a message is said as a person or a service, which a key has to name", async () => {
    const say = (as?: string) =>
      call(`/v1/spaces/${spaceId}/messages`, {
        bearer: house.secretKey,
        body: { text: "hello" },
        ...(as ? { as } : {}),
      });
    expect(await problemIn(await say())).toMatchObject({ code: "acting_entity_required" });
    expect(await problemIn(await say(agentId))).toMatchObject({ code: "forbidden" });
  });

  test("an entity takes into its new space only whom it shares one with", async () => {
    const [founder, friend, unknown] = [
      await house.person("Founder"),
      await house.person("Friend"),
      await house.person("Unknown"),
    ];
    await house.space("Known", [founder, friend]);
    const found = (caller: Call, entityId: string) =>
      call("/v1/spaces", { ...caller, body: { name: "New", members: [{ entityId }] } });
    expect((await found({ bearer: founder.token }, friend.id)).status).toBe(201);
    for (const { id } of [unknown, foreigner]) {
      expect(await problemIn(await found({ bearer: founder.token }, id))).toMatchObject({ code: "unknown_reference" });
    }
    for (const caller of [{ bearer: boss.token }, { bearer: house.secretKey, as: founder.id }]) {
      expect((await found(caller, unknown.id)).status).toBe(201);
    }
  });

  test("members are added by key or admin, and removed by them or leave by themselves", async () => {
    const { id } = await house.space("Door", [mona]);
    const add = (bearer: string, entityId: string) =>
      status(`/v1/spaces/${id}/members`, { bearer, body: { entityId } });
    const remove = (bearer: string, entityId: string) =>
      status(`/v1/spaces/${id}/members/${entityId}`, { method: "DELETE", bearer });
    expect(await add(stranger.token, stranger.id)).toBe(404);
    expect(await add(mona.token, stranger.id)).toBe(403);
    expect(await add(boss.token, stranger.id)).toBe(201);
    expect(await add(house.secretKey, stranger.id)).toBe(201);
    expect(await remove(mona.token, stranger.id)).toBe(403);
    expect(await remove(stranger.token, stranger.id)).toBe(204);
    expect(await remove(house.secretKey, stranger.id)).toBe(404);
    expect(await remove(boss.token, mona.id)).toBe(204);
    expect(await status(`/v1/spaces/${id}`, { bearer: mona.token })).toBe(404);
  });

  test("an entity reads itself and the members of its spaces, and changes nobody", async () => {
    const ask = (bearer: string, id: string, options: Call = {}) =>
      status(`/v1/entities/${id}`, { bearer, ...options });
    expect(await ask(mona.token, mona.id)).toBe(200);
    await vi.waitFor(async () => expect(await ask(mona.token, agentId)).toBe(200));
    expect(await ask(mona.token, stranger.id)).toBe(404);
    expect(await ask(boss.token, stranger.id)).toBe(200);
    expect(await ask(mona.token, mona.id, { method: "PATCH", body: { role: "admin" } })).toBe(403);
    expect(await ask(mona.token, stranger.id, { method: "DELETE" })).toBe(404);
  });

  test("an entity cannot act as another", async () => {
    expect(await status("/v1/spaces", { bearer: boss.token, as: mona.id })).toBe(403);
    expect(await status("/v1/spaces", { bearer: mona.token, as: mona.id })).toBe(200);
    const invented = await call("/v1/spaces", { bearer: house.secretKey, as: "ent_invented" });
    expect(await problemIn(invented)).toMatchObject({ code: "acting_entity_required" });
  });

  test("a caller's own internal headers are ignored", async () => {
    const forged = { kind: "entity", workspaceId: house.workspaceId, entityId: mona.id, admin: true, expiresAt: 9e15 };
    const headers = { upgrade: "websocket", "x-colloquy-principal": JSON.stringify(forged) };
    expect(await status(`/v1/spaces/${spaceId}/stream`, { bearer: stranger.token, headers })).toBe(404);
    expect(await status(`/v1/spaces/${spaceId}/stream`, { headers })).toBe(401);
  });
});

describe("[S5] what is taken away stops at once", () => {
  test("a removed entity's token", async () => {
    const gone = await house.person("Gone", "admin");
    const { id } = await house.space("Left", [mona, gone]);
    expect(await status("/v1/spaces", { bearer: gone.token })).toBe(200);
    expect(await status(`/v1/entities/${gone.id}`, { method: "DELETE", bearer: house.secretKey })).toBe(204);
    for (const path of ["/v1/spaces", `/v1/spaces/${id}`, "/v1/entities", "/v1/workspace"]) {
      expect(await problemIn(await call(path, { bearer: gone.token }))).toMatchObject({ code: "unauthorized" });
    }
  });

  test("an admin's rights, with the role", async () => {
    const person = await house.person("Fallen", "admin");
    expect(await status("/v1/workspace", { bearer: person.token })).toBe(200);
    await call(`/v1/entities/${person.id}`, { method: "PATCH", bearer: house.secretKey, body: { role: "member" } });
    expect(await status("/v1/workspace", { bearer: person.token })).toBe(403);
    expect(await status(`/v1/spaces/${spaceId}`, { bearer: person.token })).toBe(404);
  });

  test("a secret key, but not the last one", async () => {
    const { secretKey: first, keyId } = await openHouse();
    const { key, secretKey } = await expectOk(
      z.object({ key: Key, secretKey: z.string() }),
      call("/v1/workspace/keys", { method: "POST", bearer: first }),
    );
    expect(await status("/v1/workspace", { bearer: secretKey })).toBe(200);
    expect(await status("/v1/workspace", { headers: { "x-secret-key": secretKey } })).toBe(200);
    const revoke = (bearer: string, id: string) => status(`/v1/workspace/keys/${id}`, { method: "DELETE", bearer });
    expect(await revoke(elsewhere.secretKey, key.id)).toBe(404);
    expect(await revoke(first, key.id)).toBe(204);
    expect(await status("/v1/workspace", { bearer: secretKey })).toBe(401);
    expect(await revoke(first, keyId)).toBe(409);
  });

  test("a token, with its time", async () => {
    const token = await house.token(mona.id, 1);
    expect(await status("/v1/spaces", { bearer: token })).toBe(200);
    await vi.waitFor(
      async () =>
        expect(await problemIn(await call("/v1/spaces", { bearer: token }))).toMatchObject({ code: "token_expired" }),
      { timeout: 5000 },
    );
  });
});
