import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { vapidKeysOf } from "../../src/auth/vapid.ts";
import { maxNotifications } from "../../src/person/bounds.ts";
import { createPushes } from "../../src/person/pushes.ts";
import { systemClock } from "../../src/shared/clock.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { call } from "../support/house.ts";
import { openLine } from "../support/line-listener.ts";
import { question } from "../support/question.ts";
import { addDevice, change, devicesOf, followed, openPushService, ring, rowsOf, scene, stubOf } from "./fixture.ts";

afterEach(disarmFaults);

test("[I7] a device is told of a mention though no line is open, encrypted and signed", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const { id: messageId } = await house.say(hall.id, ben, "@Ann are you there?");
  const told = await vi.waitFor(async () => {
    const [came] = await service.came();
    if (!came) throw new Error("nothing came");
    return came;
  });
  expect(told.payload).toEqual({
    ...{ type: "notification", id: `mention ${messageId}`, kind: "mention", spaceId: hall.id, messageId },
    ...{ title: "Ben", body: "@Ann are you there?" },
  });
  expect(told.publicKey).toBe(vapidKeysOf(env).publicKey);
  expect(told.claims).toEqual({
    aud: new URL(service.subscription.endpoint).origin.replace("http:", "https:"),
    sub: "https://colloquy.test",
    hours: 12,
  });
  expect(told.headers).toMatchObject({
    "content-encoding": "aes128gcm",
    ttl: "86400",
    urgency: "normal",
    topic: expect.stringMatching(/^[A-Za-z0-9_-]{32}$/),
  });
  await vi.waitFor(async () => {
    const [device] = await devicesOf({ bearer: ann.token });
    expect(device?.lastPushAt).toBeDefined();
  });
});

test("[I7] what comes within 30 s of a push goes as one, with the count of the others", async () => {
  const { ann, ben, hall, house, service } = await scene();
  await house.say(hall.id, ben, "@Ann one");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  await house.say(hall.id, ben, "@Ann two");
  await house.say(hall.id, ben, "@Ann three");
  await vi.waitFor(async () => expect(await rowsOf(ann, "notifications")).toHaveLength(3));
  await ring(ann, 29_000);
  expect(await service.told()).toHaveLength(1);
  await ring(ann, 1500);
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(2));
  expect((await service.told())[1]).toMatchObject({ body: "@Ann three", count: 1 });
  await vi.waitFor(async () => {
    await ring(ann, 31_000);
    expect(await rowsOf(ann, "pushes")).toEqual([]);
  });
});

test("[I7] what was read within the 30 s is not pushed any more", async () => {
  const { ann, ben, hall, house, service } = await scene();
  await house.say(hall.id, ben, "@Ann one");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  await house.say(hall.id, ben, "@Ann two");
  const { id } = await house.say(hall.id, ben, "@Ann three");
  await vi.waitFor(async () => expect(await rowsOf(ann, "notifications")).toHaveLength(3));
  await call(`/v1/spaces/${hall.id}/read`, { bearer: ann.token, body: { messageId: id } });
  await vi.waitFor(async () => expect((await service.told()).map(({ type }) => type)).toContain("cleared"));
  await ring(ann, 31_000);
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toEqual([]));
  expect((await service.told()).map(({ type }) => type)).toEqual(["notification", "cleared"]);
});

test("[I7] what needs the person is pushed at once, each by itself, urgently", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const agent = await house.agent({ name: "Robo" });
  await call(`/v1/spaces/${hall.id}/members`, { bearer: house.secretKey, body: { entityId: agent.id } });
  await house.say(hall.id, ben, "@Ann look");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  for (let n = 0; n < 2; n += 1) await question(house.workspaceId, hall.id, agent.id);
  await vi.waitFor(async () => {
    const urgent = (await service.came()).filter(({ headers }) => headers.urgency === "high");
    expect(urgent.map(({ payload }) => [payload.kind, payload.count])).toEqual([
      ["needs_you", undefined],
      ["needs_you", undefined],
    ]);
    expect(new Set(urgent.map(({ headers }) => headers.topic)).size).toBe(2);
  });
  expect(await rowsOf(ann, "notifications")).toHaveLength(3);
});

test.for(["read", "edited", "deleted", "left"] as const)(
  "[I8] what was pushed and is %s is taken back",
  async (how) => {
    const { ann, ben, hall, house, service } = await scene();
    const { id } = await house.say(hall.id, ben, "@Ann the code is 1234");
    await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
    const at = `/v1/spaces/${hall.id}`;
    if (how === "read") await call(`${at}/read`, { bearer: ann.token, body: { messageId: id } });
    if (how === "edited") {
      await call(`${at}/messages/${id}`, { method: "PATCH", bearer: ben.token, body: { text: "Never mind" } });
    }
    if (how === "deleted") await call(`${at}/messages/${id}`, { method: "DELETE", bearer: ben.token });
    if (how === "left") await call(`${at}/members/${ann.id}`, { method: "DELETE", bearer: house.secretKey });
    await vi.waitFor(async () => {
      expect((await service.told())[1]).toEqual({ type: "cleared", ids: [`mention ${id}`] });
    });
    expect(JSON.stringify(await rowsOf(ann, "notifications", "spaces", "pushes"))).not.toContain("1234");
  },
);

test("[I8] words that are deleted before their push goes out are not in it", async () => {
  const { ann, ben, hall, house, service } = await scene();
  await service.answer({ status: 503 });
  const { id } = await house.say(hall.id, ben, "@Ann the code is 1234");
  await vi.waitFor(async () => expect(await service.came()).toHaveLength(1));
  await call(`/v1/spaces/${hall.id}/messages/${id}`, { method: "DELETE", bearer: ben.token });
  await vi.waitFor(async () => expect(await rowsOf(ann, "notifications")).toEqual([]));
  await service.answer();
  await vi.waitFor(async () => {
    await ring(ann, 60_000);
    expect(await rowsOf(ann, "pushes")).toEqual([]);
  });
  expect(JSON.stringify(await service.told())).not.toContain("1234");
});

test("[I6] muted, never, and quiet hours push nothing, and the line says quiet", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const den = await house.space("Den", [ann, ben]);
  const line = await openLine(ann.token);
  const settings = await change({ bearer: ann.token }, { spaces: { [hall.id]: { muted: true } } });
  expect(await line.until("settings")).toMatchObject([{ settings }]);
  await house.say(hall.id, ben, "@Ann muted");
  expect(await line.until("notification")).toMatchObject([{ body: "@Ann muted", quiet: true }]);
  await change({ bearer: ann.token }, { notifications: { direct: "never" } });
  await house.say(den.id, ben, "never");
  expect((await line.until("notification", 2))[1]).toMatchObject({ body: "never", quiet: true });
  const [from, to] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3_600_000).toISOString().slice(11, 16));
  const hours = { from, to, zone: "UTC" };
  await change({ bearer: ann.token }, { notifications: { direct: "always" }, quietHours: hours });
  await house.say(den.id, ben, "hush");
  expect((await line.until("notification", 3))[2]).toMatchObject({ body: "hush", quiet: true });
  await change({ bearer: ann.token }, { quietHours: null });
  await house.say(den.id, ben, "loud");
  expect((await line.until("notification", 4))[3]).not.toHaveProperty("quiet");
  await vi.waitFor(async () => expect((await service.told()).map(({ body }) => body)).toEqual(["loud"]));
});

test("[I6] while a page is looked at nothing is pushed, also after a sleep", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const line = await openLine(ann.token);
  await house.say(hall.id, ben, "@Ann hidden");
  await vi.waitFor(async () => expect(await service.told()).toHaveLength(1));
  line.send({ type: "visible", visible: true });
  await vi.waitFor(async () => {
    const { id } = await house.say(hall.id, ben, "@Ann seen");
    const told = await vi.waitFor(() => {
      const found = line.of("notification").find(({ messageId }) => messageId === id);
      if (!found) throw new Error("not told yet");
      return found;
    });
    expect(told.quiet).toBe(true);
  });
  await evictDurableObject(stubOf(ann));
  const { id } = await house.say(hall.id, ben, "@Ann asleep");
  await vi.waitFor(() => {
    expect(line.of("notification").find(({ messageId }) => messageId === id)).toMatchObject({ quiet: true });
  });
  line.send({ type: "visible", visible: false });
  const [, ...later] = await service.told();
  expect(later.filter(({ body }) => body === "@Ann asleep")).toEqual([]);
});

test("[I6] a page that died without a word counts as looked at for a minute at most", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const line = await openLine(ann.token);
  line.send({ type: "visible", visible: true });
  await vi.waitFor(async () => {
    await house.say(hall.id, ben, "@Ann seen");
    expect(line.of("notification").some(({ quiet }) => quiet)).toBe(true);
  });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
  await house.say(hall.id, ben, "@Ann gone?");
  await vi.waitFor(async () => expect((await service.told()).map(({ body }) => body)).toContain("@Ann gone?"));
});

test.for([404, 410])("[I7] a device whose subscription is over (%i) is forgotten", async (status) => {
  const { ann, ben, hall, house, service } = await scene();
  await service.answer({ status });
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await devicesOf({ bearer: ann.token })).toEqual([]));
  expect(await rowsOf(ann, "pushes", "notifications")).toEqual([]);
  await house.say(hall.id, ben, "@Ann again");
  await followed(ann, [hall.id], null);
  expect(await service.came()).toHaveLength(1);
});

test.for([429, 500, 503])("[I7] a push service that answers %i is asked again later, for a day", async (status) => {
  const { ann, ben, hall, house, service } = await scene();
  await service.answer({ status, retryAfter: "3" });
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toMatchObject([{ failures: 1 }]));
  await ring(ann, 2000);
  expect(await service.came()).toHaveLength(1);
  await evictDurableObject(stubOf(ann));
  await service.answer();
  await ring(ann, 10_000);
  await vi.waitFor(async () => expect(await service.told()).toMatchObject([{ body: "@Ann hello" }]));
  await service.answer({ status });
  await ring(ann, 31_000);
  await house.say(hall.id, ben, "@Ann more");
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toMatchObject([{ failures: 1 }]));
  const before = (await service.came()).length;
  await ring(ann, 86_400_000);
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toEqual([]));
  expect(await service.came()).toHaveLength(before);
});

test.for([
  ["redirects", { status: 307, location: "http://127.0.0.1:1/elsewhere" }],
  ["answers 413", { status: 413 }],
  ["answers 10 MB", { status: 201, how: "huge" }],
] as const)("[I7] a push service that %s is asked once, and followed nowhere", async ([, plan]) => {
  const { ann, ben, hall, house, service } = await scene();
  await service.answer(plan);
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await rowsOf(ann, "pushes")).toMatchObject([{ ids: "[]", failures: 0 }]));
  expect(await service.came()).toHaveLength(1);
  expect(await devicesOf({ bearer: ann.token })).toHaveLength(1);
});

test("[I7] a push that was cut before we knew of it is sent again under the same id", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const crashed = armFault("person.after-push");
  await house.say(hall.id, ben, "@Ann hello");
  await crashed;
  await vi.waitFor(async () => {
    await ring(ann, 6000);
    expect(await service.told()).toHaveLength(2);
  });
  const [first, second] = await service.told();
  expect(second).toEqual(first);
  await vi.waitFor(async () => {
    await ring(ann, 31_000);
    expect(await rowsOf(ann, "pushes")).toEqual([]);
  });
  expect(await service.told()).toHaveLength(2);
});

test("[I7] all devices are told, and one that is slow keeps no other back", async () => {
  const { ann, ben, hall, house, service } = await scene();
  const other = await openPushService();
  await addDevice({ bearer: ann.token }, other.subscription);
  await service.answer({ how: "silent" });
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await other.told()).toMatchObject([{ body: "@Ann hello" }]));
});

test("[I7] a person with a device is told of a space that they are new in while away", async () => {
  const { ann, ben, house, service } = await scene();
  const late = await house.space("Late", [ann, ben]);
  await followed(ann, [late.id]);
  await house.say(late.id, ben, "Welcome");
  await vi.waitFor(async () => expect(await service.told()).toMatchObject([{ kind: "direct", body: "Welcome" }]));
});

test("[I2] who is away is told what concerns them alone, and nothing without a device", async () => {
  const { ann, ben, hall, house, device } = await scene();
  await house.say(hall.id, ben, "Nobody in particular");
  await house.say(hall.id, ben, "@Cat hello");
  await house.say(hall.id, ben, "@Ann hello");
  await vi.waitFor(async () => expect(await rowsOf(ann, "notifications")).toHaveLength(1));
  // How the space stands would soon be wrong: nothing of it is kept.
  expect(await rowsOf(ann, "spaces")).toEqual([]);
  const line = await openLine(ann.token);
  expect(line.summaryOf(hall.id)).toMatchObject({ unread: 3, mentions: 1 });
  await house.say(hall.id, ben, "For all");
  await vi.waitFor(() => expect(line.summaryOf(hall.id)).toMatchObject({ unread: 4 }));
  line.socket.close(1000);
  await vi.waitFor(() => expect(line.closed).toBeDefined());
  // The first after that finds no line, and is the last that is told of everything.
  await house.say(hall.id, ben, "Anybody?");
  await followed(ann, [hall.id]);
  await call(`/v1/me/devices/${device.id}`, { method: "DELETE", bearer: ann.token });
  expect(await rowsOf(ann, "notifications", "spaces", "pushes", "devices")).toEqual([]);
  await house.say(hall.id, ben, "@Ann bye");
  await followed(ann, [hall.id], null);
  expect(await rowsOf(ann, "notifications", "spaces")).toEqual([]);
});

test("[B3] of what waits for a device whose push service is down the newest is kept", async () => {
  const { ann, hall, device } = await scene();
  const ids = Array.from({ length: maxNotifications + 50 }, (_, index) => `mention msg_${index}`);
  await runInDurableObject(stubOf(ann), (_, { storage }) => {
    const pushes = createPushes(openDatabase(storage), systemClock);
    const told = {
      kind: "mention",
      spaceId: hall.id,
      title: "Ben",
      body: "@Ann",
      at: "2026-11-28T12:00:00.000Z",
    } as const;
    for (const id of ids) {
      pushes.note(device.id, { ...told, id, messageId: id });
      pushes.clear(device.id, [id]);
    }
  });
  const rows = await rowsOf(ann, "pushes");
  expect(rows.map(({ ids: kept }) => JSON.parse(String(kept)))).toEqual([0, 1].map(() => ids.slice(-maxNotifications)));
});
