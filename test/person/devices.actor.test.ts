import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { Person } from "../../src/person/person.ts";
import { maxDevices } from "../../src/protocol/notifications.ts";
import { refuse } from "../../src/shared/errors.ts";
import { problemIn } from "../routes/operations.ts";
import { adminKey, type Call, call, ids, openHouse } from "../support/house.ts";
import { LineListener, openLine } from "../support/line-listener.ts";
import { cookieBy, withCookie } from "../support/session.ts";
import { addDevice, change, devicesOf, followed, openPushService, ring, rowsOf, scene, stubOf } from "./fixture.ts";

const add = (by: Call, body: unknown): Promise<Response> => call("/v1/me/devices", { ...by, method: "POST", body });

test("[I6] settings are whole from the first, and a change is told to nobody else", async () => {
  const { house, ann, ben } = await scene();
  const first = await change({ bearer: house.secretKey, as: ben.id }, {});
  expect(Object.values(first.notifications)).toEqual(Array.from({ length: 5 }, () => "when_away"));
  expect(first).toMatchObject({ spaces: {}, quietHours: null });
  await change({ bearer: ann.token }, { notifications: { mention: "never" } });
  expect(await change({ bearer: ben.token }, {})).toEqual(first);
  const asked = await call("/v1/me/settings", { bearer: ann.token });
  expect(await asked.json()).toMatchObject({ notifications: { mention: "never", reply: "when_away" } });
});

test("[I2] asking for settings and devices stores no byte of who never set any", async () => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  expect((await call("/v1/me/settings", { bearer: ann.token })).status).toBe(200);
  expect(await devicesOf({ bearer: ann.token })).toEqual([]);
  const tables = await runInDurableObject(stubOf(ann), (_, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master").toArray(),
  );
  expect(tables).toEqual([]);
});

test("[I7] a device shows its push service's host, and nothing by which it could be told", async () => {
  const { ann, device, service } = await scene();
  expect(device).toEqual({
    ...{ id: expect.stringMatching(/^dev_/), name: "Phone", createdAt: expect.any(String) },
    host: new URL(service.subscription.endpoint).host,
  });
  const again = await add({ bearer: ann.token }, { name: "Tablet", ...service.subscription, expirationTime: null });
  expect([again.status, await again.json()]).toEqual([200, { ...device, name: "Tablet" }]);
  expect(await devicesOf({ bearer: ann.token })).toEqual([{ ...device, name: "Tablet" }]);
});

test("[B3] a person has 20 devices at most", async () => {
  const { ann, service } = await scene();
  const { keys } = service.subscription;
  const nth = (n: number) => ({ endpoint: `https://push.example.com/${n}`, keys });
  for (let n = 1; n < maxDevices; n += 1) await addDevice({ bearer: ann.token }, nth(n));
  expect(await problemIn(await add({ bearer: ann.token }, nth(99)))).toMatchObject({
    code: "limit_reached",
    detail: expect.stringContaining("maxDevices"),
  });
  expect((await add({ bearer: ann.token }, nth(1))).status).toBe(200);
});

test.for([
  ["https://10.0.0.7/push", "endpoint"],
  ["https://169.254.169.254/latest", "endpoint"],
  ["https://[fd00::1]/push", "endpoint"],
  ["https://127.0.0.1.nip.io/push", "endpoint"],
  ["http://push.example.com/1", "endpoint"],
  ["https://ann:secret@push.example.com/1", "endpoint"],
])("[S3] %s is no address of a device", async ([endpoint, path]) => {
  const { ann, service } = await scene();
  const refused = await problemIn(await add({ bearer: ann.token }, { endpoint, keys: service.subscription.keys }));
  expect(refused).toMatchObject({ code: "invalid_request", issues: [{ path }] });
});

test("[I7] keys that no browser made are refused by name", async () => {
  const { ann, service } = await scene();
  const { endpoint, keys } = service.subscription;
  const off = Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]).toString("base64url");
  for (const [wrong, path] of [
    [{ ...keys, auth: "short" }, "keys.auth"],
    [{ ...keys, p256dh: keys.auth }, "keys.p256dh"],
    [{ ...keys, p256dh: off }, "keys.p256dh"],
  ] as const) {
    const refused = await problemIn(await add({ bearer: ann.token }, { endpoint, keys: wrong }));
    expect(refused).toMatchObject({ code: "invalid_request", issues: [{ path }] });
  }
});

test("[S1] agents, services and guests have no settings, and nobody another's devices", async () => {
  const { house, ann, ben, device } = await scene();
  const [bot, agent] = [await house.service("Bot"), await house.agent({ name: "Robo" })];
  for (const by of [{ bearer: bot.token }, { bearer: house.secretKey, as: agent.id }]) {
    for (const path of ["/v1/me/settings", "/v1/me/devices"]) {
      expect(await problemIn(await call(path, by))).toMatchObject({ code: "forbidden" });
    }
  }
  const path = `/v1/me/devices/${device.id}`;
  expect((await call(path, { method: "DELETE", bearer: ben.token })).status).toBe(404);
  expect(await devicesOf({ bearer: ann.token })).toHaveLength(1);
  expect((await call(path, { method: "DELETE", bearer: ann.token })).status).toBe(204);
  expect((await call(path, { method: "DELETE", bearer: ann.token })).status).toBe(404);
});

test.for(["session", "sign-out", "key"] as const)(
  "[S5] a device is told nothing once its credential has ended: %s",
  async (how) => {
    const { house, ann, ben, hall, service } = await scene();
    const cookie = how === "session" ? await cookieBy(house.secretKey, ann.id) : "";
    const by = how === "session" ? withCookie(cookie) : { bearer: ann.token };
    const key = await call("/v1/workspace/keys", { bearer: house.secretKey, body: { scopes: ["full"] } });
    const made = (await key.json()) as { secretKey: string; key: { id: string } };
    await addDevice(how === "key" ? { bearer: made.secretKey, as: ann.id } : by, service.subscription);
    await house.say(hall.id, ben, "@Ann hello");
    await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
    if (how === "session") await call("/v1/session", { ...withCookie(cookie), method: "DELETE" });
    if (how === "sign-out") {
      await call(`/v1/entities/${ann.id}/sign-out`, { method: "POST", bearer: house.secretKey });
    }
    if (how === "key") {
      await call(`/v1/workspace/keys/${made.key.id}`, { method: "DELETE", bearer: house.secretKey });
      // Nobody tells of the end of such a key: it counts for a minute after it was proven.
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
    }
    const gone = () => vi.waitFor(async () => expect(await rowsOf(ann, "devices")).toEqual([]));
    if (how !== "key") await gone();
    await house.say(hall.id, ben, "@Ann secret");
    await gone();
    await house.say(hall.id, ben, "@Ann another");
    await followed(ann, [hall.id], null);
    expect(await service.told()).toHaveLength(1);
  },
);

test("[I7] a token's short life is no end of its device", async () => {
  const { house, ann, ben, hall, service } = await scene();
  await house.say(hall.id, ben, "@Ann one");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  await ring(ann, 2 * 3_600_000);
  const late = await house.token(ben.id);
  await house.say(hall.id, { ...ben, token: late }, "@Ann two");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(2));
});

test("[C19] a device that an admin's session added is told nothing of confidential spaces", async () => {
  const { house, ann, ben, service } = await scene();
  const boss = await house.person("Boss", "admin");
  const [own, other] = [service, await openPushService()];
  const session = withCookie(await cookieBy(boss.token, ann.id));
  await addDevice(session, other.subscription);
  const board = await house.space("Board", [ann, ben], { confidential: true });
  const open = await house.space("Open", [ann, ben]);
  await followed(ann, [board.id, open.id]);
  await house.say(board.id, ben, "The budget is 9000");
  await vi.waitFor(async () => expect(await own.told()).toHaveLength(1));
  await house.say(open.id, ben, "Lunch?");
  await vi.waitFor(async () => expect(await other.told()).toHaveLength(1));
  expect(JSON.stringify(await other.told())).not.toContain("9000");
});

test("[C19] [I8] nor is such a device told which notifications of these spaces are over", async () => {
  const { house, ann, ben, service } = await scene();
  const boss = await house.person("Boss", "admin");
  const other = await openPushService();
  await addDevice(withCookie(await cookieBy(boss.token, ann.id)), other.subscription);
  const [left, board] = [
    await house.space("Left", [ann, ben], { confidential: true }),
    await house.space("Board", [ann, ben], { confidential: true }),
  ];
  const open = await house.space("Open", [ann, ben]);
  await followed(ann, [left.id, board.id, open.id]);
  const said = [];
  for (const { id } of [left, board, open]) said.push(await house.say(id, ben, "Hello"));
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(3));
  await vi.waitFor(async () => expect(await other.told()).toHaveLength(1));
  await call(`/v1/spaces/${left.id}/members/${ann.id}`, { method: "DELETE", bearer: ann.token });
  const [, onBoard, inOpen] = said;
  for (const message of [onBoard, inOpen]) {
    const path = `/v1/spaces/${message?.spaceId}/read`;
    await call(path, { bearer: ann.token, body: { messageId: message?.id } });
  }
  await vi.waitFor(async () => expect(JSON.stringify(await other.told())).toContain("cleared"));
  const cleared = (await other.told()).flatMap(({ ids = [] }) => ids);
  expect(cleared).toEqual([`direct ${inOpen?.id}`]);
});

test("[C19] what waits for a person's own device does not go to an admin's session in its place", async () => {
  const { house, ann, ben, service } = await scene();
  const boss = await house.person("Boss", "admin");
  const board = await house.space("Board", [ann, ben], { confidential: true });
  await followed(ann, [board.id]);
  await service.answer({ status: 503 });
  await house.say(board.id, ben, "The budget is 9000");
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toMatchObject([{ failures: 1 }]));
  await addDevice(withCookie(await cookieBy(boss.token, ann.id)), service.subscription);
  await service.answer();
  await vi.waitFor(async () => {
    await ring(ann, 60_000);
    expect(await rowsOf(ann, "pushes")).toEqual([]);
  });
  expect(await service.told()).toEqual([]);
});

test("[C19] nor is a line of such a session, after the person left such a space", async () => {
  const { house, ann, ben, hall } = await scene();
  const boss = await house.person("Boss", "admin");
  const board = await house.space("Board", [ann, ben], { confidential: true });
  const own = await openLine(ann.token);
  await house.say(board.id, ben, "The budget is 9000");
  await own.until("notification");
  const { hear } = Person.prototype;
  let isAway = true;
  const hearing = vi.spyOn(Person.prototype, "hear").mockImplementation(function (this: Person, delivery) {
    const isLost = isAway && delivery.spaceId === board.id;
    return isLost ? Promise.resolve(refuse("unavailable", "out of reach")) : hear.call(this, delivery);
  });
  onTestFinished(() => hearing.mockRestore());
  await call(`/v1/spaces/${board.id}/members/${ann.id}`, { method: "DELETE", bearer: house.secretKey });
  const { headers } = withCookie(await cookieBy(boss.token, ann.id));
  const { webSocket } = await call("/v1/stream", { headers: { ...headers, upgrade: "websocket" } });
  if (!webSocket) throw new Error("no line");
  const other = new LineListener(webSocket);
  // As the line opens, her object learns that the space is hers no more.
  await own.until("space.left");
  isAway = false;
  await own.until("notification.cleared");
  await house.say(hall.id, ben, "@Ann hello");
  await other.until("notification");
  expect(other.of("notification.cleared")).toEqual([]);
});

test("[I6] a session that an admin made for a person does not count as the person looking", async () => {
  const { house, ann, ben, hall, service } = await scene();
  const boss = await house.person("Boss", "admin");
  const cookie = await cookieBy(boss.token, ann.id);
  const answer = await call("/v1/stream", {
    ...withCookie(cookie),
    headers: { ...withCookie(cookie).headers, upgrade: "websocket" },
  });
  answer.webSocket?.accept();
  answer.webSocket?.send(JSON.stringify({ type: "visible", visible: true }));
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  answer.webSocket?.close();
});

test("[L16] nothing is left of who is removed, or whose workspace is deleted", async () => {
  const tables = ["people", "devices", "pushes", "notifications", "spaces"];
  const removed = await scene();
  await change({ bearer: removed.ann.token }, { spaces: { [removed.hall.id]: { muted: true } } });
  await call(`/v1/entities/${removed.ann.id}`, { method: "DELETE", bearer: removed.house.secretKey });
  await vi.waitFor(async () => expect(await rowsOf(removed.ann, ...tables)).toEqual([]));
  const { house, ann } = await scene();
  const operator = `/v1/operator/workspaces/${house.workspaceId}`;
  await call(`${operator}/suspend`, { bearer: adminKey, body: { reason: "unpaid" } });
  await vi.waitFor(async () => expect((await call(operator, { method: "DELETE", bearer: adminKey })).status).toBe(202));
  await vi.waitFor(async () => expect(await rowsOf(ann, ...tables)).toEqual([]), { timeout: 15_000 });
});

/** An agent's run fails at what Ann said, and she has been told. */
const marvinFails = async ({ house, ann, hall }: Awaited<ReturnType<typeof scene>>) => {
  const { workspaceId, secretKey: bearer } = house;
  const marvin = await house.agent({ name: "Marvin", runtime: "guest" });
  await call(`/v1/spaces/${hall.id}/members`, { bearer, body: { entityId: marvin.id } });
  const { id: messageId } = await house.say(hall.id, ann, "Anyone?");
  const { readable, writable } = new IdentityTransformStream();
  const open = { workspaceId, agentId: marvin.id, runId: ids.mintOwned("run", marvin.id) };
  const spoken = env.SPACE.getByName(hall.id).speak(open, readable);
  const writer = writable.getWriter();
  for (const frame of [{ type: "read", messageId, outcome: "failed" }, { type: "end" }])
    await writer.write(new TextEncoder().encode(`${JSON.stringify(frame)}\n`));
  await writer.close();
  await spoken;
  await vi.waitFor(async () => expect(JSON.stringify(await rowsOf(ann, "notifications"))).toContain("Marvin"));
  return marvin;
};

test("[L16] a failure that a person was told of names nobody once its agent is erased", async () => {
  const told = await scene();
  const { house, ann } = told;
  const { secretKey: bearer } = house;
  const marvin = await marvinFails(told);
  await call("/v1/erasures", { bearer, body: { kind: "agent", id: marvin.id } });
  await vi.waitFor(
    async () =>
      expect(await (await call(`/v1/erasures/${marvin.id}`, { bearer })).json()).toMatchObject({
        erasure: { state: "done" },
      }),
    { timeout: 15_000 },
  );
  await vi.waitFor(async () => expect(await rowsOf(ann, "notifications")).toEqual([]));
});

test("[L16] an erasure is over only once other people's objects have forgotten the words", async () => {
  const { house, ann, ben, hall, service } = await scene();
  await house.say(hall.id, ben, "@Ann the code is 1234");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  const backAt = Date.now() + 5000;
  const { hear } = Person.prototype;
  const hearing = vi.spyOn(Person.prototype, "hear").mockImplementation(function (this: Person, delivery) {
    if (Date.now() < backAt) return Promise.resolve(refuse("unavailable", "out of reach"));
    return hear.call(this, delivery);
  });
  onTestFinished(() => hearing.mockRestore());
  const as = { bearer: house.secretKey };
  await call("/v1/erasures", { ...as, body: { kind: "person", id: ben.id } });
  const done = async () =>
    expect(await (await call(`/v1/erasures/${ben.id}`, as)).json()).toMatchObject({ erasure: { state: "done" } });
  await vi.waitFor(done, { timeout: 20_000 });
  expect(JSON.stringify(await rowsOf(ann, "notifications"))).not.toContain("1234");
}, 30_000);

test("[L16] an agent's erasure is over only once people have forgotten that it failed", async () => {
  const told = await scene();
  const { house, ann, ben, hall } = told;
  const { secretKey: bearer } = house;
  const marvin = await marvinFails(told);
  // The space knows of a deletion that everybody has heard of.
  const aside = await house.say(hall.id, ben, "aside");
  await call(`/v1/spaces/${hall.id}/messages/${aside.id}`, { method: "DELETE", bearer: ben.token });
  const backAt = Date.now() + 8000;
  const { hear } = Person.prototype;
  const hearing = vi.spyOn(Person.prototype, "hear").mockImplementation(function (this: Person, delivery) {
    const isAway = (delivery.left ?? []).includes(marvin.id) && Date.now() < backAt;
    return isAway ? Promise.resolve(refuse("unavailable", "out of reach")) : hear.call(this, delivery);
  });
  onTestFinished(() => hearing.mockRestore());
  await call("/v1/erasures", { bearer, body: { kind: "agent", id: marvin.id } });
  const done = async () =>
    expect(await (await call(`/v1/erasures/${marvin.id}`, { bearer })).json()).toMatchObject({
      erasure: { state: "done" },
    });
  await vi.waitFor(done, { timeout: 25_000 });
  expect(JSON.stringify(await rowsOf(ann, "notifications"))).not.toContain("Marvin");
}, 35_000);

test("[L6] devices rest while the workspace is suspended, and are told of what comes after it", async () => {
  const { house, ann, ben, hall, service } = await scene();
  const operator = `/v1/operator/workspaces/${house.workspaceId}`;
  await call(`${operator}/suspend`, { bearer: adminKey, body: { reason: "unpaid" } });
  await vi.waitFor(async () => expect(await rowsOf(ann, "people")).toMatchObject([{ rests: 1 }]));
  expect(await problemIn(await add({ bearer: ann.token }, service.subscription))).toMatchObject({ code: "suspended" });
  const patched = call("/v1/me/settings", { method: "PATCH", bearer: ann.token, body: { quietHours: null } });
  expect(await problemIn(await patched)).toMatchObject({ code: "suspended" });
  expect(await devicesOf({ bearer: ann.token })).toHaveLength(1);
  await call(`${operator}/resume`, { method: "POST", bearer: adminKey });
  await vi.waitFor(async () => expect(await rowsOf(ann, "people")).toMatchObject([{ rests: 0 }]));
  await vi.waitFor(async () => {
    await house.say(hall.id, ben, "@Ann hello again");
    expect((await service.told()).map(({ body }) => body)).toContain("@Ann hello again");
  });
});

test("[I7] a device that subscribed with other keys is forgotten", async () => {
  const { house, ann, ben, hall, service } = await scene();
  await runInDurableObject(stubOf(ann), (_, { storage }) => storage.sql.exec("UPDATE devices SET push_key = 'older'"));
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await devicesOf({ bearer: ann.token })).toEqual([]));
  expect(await service.came()).toEqual([]);
});
