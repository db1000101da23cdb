import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Space, SpaceListItem } from "../../src/protocol/space.ts";
import { Space as SpaceActor } from "../../src/space/space.ts";
import { createGate } from "../support/gate.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

afterEach(() => void vi.restoreAllMocks());

const SpaceList = z.object({ items: z.array(SpaceListItem), nextCursor: z.string().nullable() });
const Members = z.object({ space: z.object({ members: z.array(z.object({ id: z.string(), name: z.string() })) }) });

test("a person's list holds its spaces, newest first, with unread counts and the last message", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam")];
  const older = await house.space("Older", [mona, adam]);
  const newer = await house.space("Newer", [mona]);
  await house.space("Not hers", [adam]);
  await house.say(older.id, adam, "one");
  const last = await house.say(older.id, adam, "two");
  const list = () => expectOk(SpaceList, call("/v1/spaces", { bearer: mona.token }));
  const { items, nextCursor } = await list();
  expect(items.map((space) => space.name)).toEqual(["Newer", "Older"]);
  expect(nextCursor).toBeNull();
  expect(items[0]).toMatchObject({ id: newer.id, unreadCount: 0 });
  expect(items[1]).toMatchObject({ unreadCount: 2, lastMessage: { id: last.id, text: "two" } });

  const read = await call(`/v1/spaces/${older.id}/read`, { bearer: mona.token, body: { messageId: last.id } });
  expect(read.status).toBe(204);
  expect((await list()).items[1]).toMatchObject({ unreadCount: 0 });

  const acting = await expectOk(SpaceList, call("/v1/spaces", { bearer: house.secretKey, as: mona.id }));
  expect(acting.items).toEqual((await list()).items);
});

test("a space that does not answer delays no list, and stands in it without its newest message", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  await house.space("Hangs", [mona]);
  const answers = await house.space("Answers", [mona]);
  await house.say(answers.id, mona, "one");
  const gate = createGate();
  onTestFinished(gate.open);
  const { latest } = SpaceActor.prototype;
  vi.spyOn(SpaceActor.prototype, "latest").mockImplementation(async function (this: SpaceActor, principal) {
    const answered = await latest.call(this, principal);
    if (answered.ok && !answered.value.lastMessage) await gate.opened;
    return answered;
  });
  const { items } = await expectOk(SpaceList, call("/v1/spaces", { bearer: mona.token }));
  expect(items).toMatchObject([{ name: "Answers", lastMessage: { text: "one" } }, { name: "Hangs" }]);
  expect(items[1]).not.toHaveProperty("unreadCount");
});

test("a secret key's list holds all spaces, page by page", async () => {
  const house = await openHouse();
  for (const name of ["One", "Two", "Three"]) await house.space(name, []);
  const first = await expectOk(SpaceList, call("/v1/spaces?limit=2", { bearer: house.secretKey }));
  expect(first.items.map((space) => space.name)).toEqual(["Three", "Two"]);
  const rest = await expectOk(SpaceList, call(`/v1/spaces?cursor=${first.nextCursor}`, { bearer: house.secretKey }));
  expect(rest).toMatchObject({ items: [{ name: "One" }], nextCursor: null });
});

test("a person who creates a space is its member, may rename and delete it, and finds it listed", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam")];
  await house.space("Hall", [mona, adam]);
  const { space } = await expectOk(
    z.object({
      space: z.object({ id: z.string(), createdBy: z.string(), members: z.array(z.object({ id: z.string() })) }),
    }),
    call("/v1/spaces", { bearer: mona.token, body: { name: "Hers", members: [{ entityId: adam.id }] } }),
  );
  expect(space.createdBy).toBe(mona.id);
  expect(space.members.map(({ id }) => id)).toEqual([mona.id, adam.id]);
  const path = `/v1/spaces/${space.id}`;
  expect((await call(path, { method: "PATCH", bearer: adam.token, body: { name: "His" } })).status).toBe(403);
  expect((await call(path, { method: "PATCH", bearer: mona.token, body: { name: "Ours" } })).status).toBe(200);
  const { items } = await expectOk(SpaceList, call("/v1/spaces", { bearer: adam.token }));
  expect(items).toMatchObject([{ id: space.id, name: "Ours" }, { name: "Hall" }]);
  expect((await call(path, { method: "DELETE", bearer: adam.token })).status).toBe(403);
  expect((await call(path, { method: "DELETE", bearer: mona.token })).status).toBe(204);
  expect((await call(path, { bearer: mona.token })).status).toBe(404);
  await vi.waitFor(async () => {
    expect((await expectOk(SpaceList, call("/v1/spaces", { bearer: adam.token }))).items).toMatchObject([
      { name: "Hall" },
    ]);
  });
});

const OneSpace = z.object({ space: Space });

test("[C17] a space is confidential from its creation, and every list says so at once", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const body = { name: "Vault", confidential: true, release: { approvers: [mona.id] } };
  const create = () => call("/v1/spaces", { bearer: mona.token, body, headers: { "idempotency-key": "vault" } });
  const { space } = await expectOk(OneSpace, create());
  expect(space).toMatchObject({ confidential: true, release: { approvers: [mona.id], quorum: 1 } });
  expect((await expectOk(OneSpace, create())).space).toEqual(space);
  for (const bearer of [mona.token, house.secretKey]) {
    const { items } = await expectOk(SpaceList, call("/v1/spaces", { bearer }));
    expect(items).toMatchObject([{ id: space.id, confidential: true }]);
    expect(items[0]).not.toHaveProperty("release");
  }
});

test("[S1] [C19] who made a space and left it is not shown it by the request that made it", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const eve = await house.person("Eve");
  const headers = { "idempotency-key": "left" };
  const create = () => call("/v1/spaces", { bearer: mona.token, body: { name: "Vault", confidential: true }, headers });
  const { id } = (await expectOk(OneSpace, create())).space;
  const add = { bearer: house.secretKey, body: { entityId: eve.id } };
  expect((await call(`/v1/spaces/${id}/members`, add)).status).toBe(201);
  const leave = { method: "DELETE", bearer: mona.token };
  expect((await call(`/v1/spaces/${id}/members/${mona.id}`, leave)).status).toBe(204);
  // A day later the workspace has no answer any more that it would give again.
  const workspace = env.WORKSPACE.getByName(house.workspaceId) as unknown as DurableObjectStub;
  await runInDurableObject(workspace, (_, { storage }) => void storage.sql.exec("DELETE FROM requests"));
  expect(await problemIn(await create())).toMatchObject({ code: "not_found" });
});

test("[C17] a space that became confidential does not become open again", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const adam = await house.person("Adam");
  const { id } = await house.space("Alpha", [mona]);
  const change = async (body: object) => {
    const answer = await call(`/v1/spaces/${id}`, { method: "PATCH", bearer: house.secretKey, body });
    return answer.ok ? answer.status : (await problemIn(answer)).code;
  };
  expect(await change({ release: {} })).toBe("invalid_request");
  expect(await change({ confidential: null })).toBe("invalid_request");
  expect(await change({ confidential: false })).toBe(200);
  expect(await change({ confidential: true, release: { approvers: [adam.id] } })).toBe("unknown_reference");
  expect(
    (await expectOk(OneSpace, call(`/v1/spaces/${id}`, { bearer: mona.token }))).space.confidential,
  ).toBeUndefined();
  expect(await change({ confidential: true, release: {} })).toBe(200);
  expect(await change({ confidential: false, name: "Open" })).toBe("conflict");
  const { space } = await expectOk(OneSpace, call(`/v1/spaces/${id}`, { bearer: mona.token }));
  expect(space).toMatchObject({ name: "Alpha", confidential: true, release: { quorum: 1 } });
});

test("messages are listed newest last, before or after a place", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.space("Alpha", [mona]);
  const said = [];
  for (const text of ["a", "b", "c"]) said.push(await house.say(id, mona, text));
  const texts = async (query: string) => {
    const Page = z.object({ items: z.array(z.object({ text: z.string() })) });
    return (await expectOk(Page, call(`/v1/spaces/${id}/messages${query}`, { bearer: mona.token }))).items.map(
      (one) => one.text,
    );
  };
  expect(await texts("")).toEqual(["a", "b", "c"]);
  expect(await texts("?limit=2")).toEqual(["b", "c"]);
  expect(await texts(`?before=${said[1]?.seq}`)).toEqual(["a"]);
  expect(await texts(`?after=${said[1]?.seq}`)).toEqual(["c"]);
  const both = await call(`/v1/spaces/${id}/messages?before=1&after=1`, { bearer: mona.token });
  expect(await problemIn(both)).toMatchObject({ code: "invalid_request" });
});

test("a new name and a removal reach the entity's spaces", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam")];
  const { id } = await house.space("Alpha", [mona, adam]);
  const memberNames = async () =>
    (await expectOk(Members, call(`/v1/spaces/${id}`, { bearer: house.secretKey }))).space.members.map(
      ({ name }) => name,
    );
  const path = `/v1/entities/${adam.id}`;
  await call(path, { method: "PATCH", bearer: house.secretKey, body: { name: "Adam the Second" } });
  await vi.waitFor(async () => expect(await memberNames()).toEqual(["Mona", "Adam the Second"]));
  await call(path, { method: "DELETE", bearer: house.secretKey });
  await vi.waitFor(async () => expect(await memberNames()).toEqual(["Mona"]));
});

test("[S1] [S3] only the workspace's rights set a router, with a checked model; null removes it", async () => {
  const house = await openHouse();
  const [mona, adam] = [await house.person("Mona"), await house.person("Adam", "admin")];
  const router = { model: { provider: "rehearsal", deltasPerSecond: 0 }, instructions: "Rarely." };
  const create = (bearer: string, settings: unknown) =>
    call("/v1/spaces", { bearer, body: { name: "Desk", wakePolicy: "addressed", router: settings } });
  expect(await problemIn(await create(mona.token, router))).toMatchObject({ code: "forbidden" });
  const OneSpace = z.object({ space: Space });
  const { space } = await expectOk(OneSpace, create(adam.token, router));
  expect(space.router).toEqual({ ...router, maxTokensPerDay: 200_000 });

  const path = `/v1/spaces/${space.id}`;
  await call(`${path}/members`, { bearer: house.secretKey, body: { entityId: mona.id } });
  const patch = (bearer: string, body: unknown) => call(path, { method: "PATCH", bearer, body });
  const see = async () => (await expectOk(OneSpace, call(path, { bearer: mona.token }))).space.router;
  expect(await problemIn(await patch(mona.token, { router: null }))).toMatchObject({ code: "forbidden" });
  const mistakes: [unknown, Record<string, unknown>][] = [
    [{ ...router, model: { alias: "none" } }, { code: "unknown_reference" }],
    [
      { model: { provider: "openai-compatible", name: "m", baseUrl: "https://10.0.0.1/v1" } },
      { code: "invalid_request", issues: [{ path: "router.model.baseUrl" }] },
    ],
    [
      { model: { provider: "openai-compatible", name: "m", baseUrl: "https://m.example/v1", apiKeySecret: "NONE" } },
      { code: "unknown_reference" },
    ],
    [{ ...router, instructions: "x".repeat(4001) }, { code: "invalid_request" }],
    [{ ...router, maxTokensPerDay: 1 }, { code: "invalid_request" }],
    [{}, { code: "invalid_request" }],
    [{ ...router, agents: [] }, { code: "invalid_request" }],
  ];
  for (const [settings, problem] of mistakes) {
    expect(await problemIn(await patch(adam.token, { router: settings })), JSON.stringify(settings)).toMatchObject(
      problem,
    );
    expect(await problemIn(await create(house.secretKey, settings)), JSON.stringify(settings)).toMatchObject(problem);
  }
  expect(await see()).toEqual(space.router);
  expect((await patch(adam.token, { router: { ...router, maxTokensPerDay: 5000 } })).status).toBe(200);
  expect(await see()).toEqual({ ...router, maxTokensPerDay: 5000 });
  expect((await patch(house.secretKey, { name: "Help" })).status).toBe(200);
  expect(await see()).toEqual({ ...router, maxTokensPerDay: 5000 });
  expect((await patch(house.secretKey, { router: null })).status).toBe(200);
  expect(await see()).toBeUndefined();
});
