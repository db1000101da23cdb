import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { watchdogMs } from "../../src/space/bounds.ts";
import {
  answers,
  deliveredTo,
  entity,
  followed,
  type House,
  heardBy,
  house,
  recordReceivers,
  said,
  settled,
  takenBy,
} from "./fixture.ts";

beforeAll(recordReceivers);
afterEach(() => {
  vi.useRealTimers();
  disarmFaults();
});

const subscribers = (home: House): Promise<unknown[]> =>
  runInDurableObject(home.stub, (_, state) => state.storage.sql.exec("SELECT id FROM subscribers").toArray());

/** When the object wakes by itself, in milliseconds from now. */
const wakesIn = (home: House): Promise<number | undefined> =>
  runInDurableObject(home.stub, async (_, state) => {
    const alarm = await state.storage.getAlarm();
    return alarm === null ? undefined : alarm - Date.now();
  });

/** An agent has refused for the first time, and is to be tried again. */
const refused = (home: House): Promise<void> =>
  vi.waitFor(async () => expect(await wakesIn(home)).toBeLessThanOrEqual(1000));

/** Lets time pass up to the object's alarm, and rings it. */
const ring = async (home: House, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(home.stub);
};

/** A call whose answer the crash may swallow. */
const lost = async (call: Promise<unknown>, crashed: Promise<void>): Promise<void> => {
  call.catch(() => undefined);
  await crashed;
};

const cast = (): { ann: EntityRef; robo: EntityRef; hal: EntityRef } => ({
  ann: entity("human", "Ann"),
  robo: entity("agent", "Robo"),
  hal: entity("agent", "Hal"),
});

test("[D2] every agent but the sender gets each message once, in the space's order", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  for (const text of ["one", "two", "three"]) unwrap(await home.rpc.post(home.as(ann), { text }));
  unwrap(await home.rpc.append(said(home, robo, "four")));
  await vi.waitFor(() => expect(heardBy(hal)).toEqual(["one", "two", "three", "four"]));
  await settled(home);
  expect(heardBy(robo)).toEqual(["one", "two", "three"]);
});

test("[D2] messages that wake nobody come together; one that wakes brings all before it", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal], { wakePolicy: "addressed" });
  await settled(home);
  const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
  for (const text of texts) unwrap(await home.rpc.post(home.as(ann), { text }));
  await vi.waitFor(() => expect(heardBy(robo)).toEqual(texts));
  const carried = deliveredTo(robo).filter(({ messages }) => messages.length > 0);
  expect(carried.length).toBeLessThan(texts.length);
  const last = ["one more", "@Robo?"];
  for (const text of last) unwrap(await home.rpc.post(home.as(ann), { text }));
  await vi.waitFor(() => expect(heardBy(robo)).toEqual([...texts, ...last]));
});

test("[L16] [D2] what was erased goes to one agent after another, and holds up no wake", async () => {
  const [ann, ben] = [entity("human", "Ann"), entity("human", "Ben")];
  const agents = Array.from({ length: 12 }, (_, index) => entity("agent", `Agent ${index}`));
  const home = await house([ann, ben, ...agents], { wakePolicy: "addressed" });
  unwrap(await home.rpc.post(home.as(ann), { text: "quinces" }));
  await vi.waitFor(() => expect(agents.flatMap(heardBy)).toHaveLength(12));
  await settled(home);
  for (const upTo of [undefined, 16]) {
    unwrap(await home.rpc.erase(home.workspaceId, { entityId: ann.id, after: 0, upTo }));
  }
  const untold = () => agents.filter((agent) => !deliveredTo(agent).some(({ changes }) => changes));
  const woken = await vi.waitFor(() => {
    expect(untold().length).toBeLessThan(12);
    return untold().at(-1);
  });
  if (!woken) throw new Error("all were told at once");
  unwrap(await home.rpc.post(home.as(ben), { text: `@${woken.name} well?` }));
  await vi.waitFor(() => expect(heardBy(woken)).toHaveLength(2));
  const waiting = untold();
  expect(waiting).not.toEqual([]);
  await vi.waitFor(() => expect(agents.flatMap(heardBy)).toHaveLength(24));
  for (const agent of waiting) {
    expect(deliveredTo(agent).at(-1)).toMatchObject({ changes: [{ kind: "deleted" }], messages: [{}] });
  }
});

test.each(["it is removed", "the space is deleted", "the space crashes"])(
  "[D2] an overheard message not delivered yet arrives once where %s",
  async (end) => {
    const { ann, robo, hal } = cast();
    const home = await house([ann, robo, hal], { wakePolicy: "addressed" });
    await settled(home);
    unwrap(await home.rpc.post(home.as(ann), { text: "one" }));
    await vi.waitFor(() => expect(heardBy(robo)).toEqual(["one"]));
    for (const text of ["two", "three"]) unwrap(await home.rpc.post(home.as(ann), { text }));
    if (end === "it is removed") unwrap(await home.rpc.removeMember(home.key, robo.id));
    else if (end === "the space is deleted") unwrap(await home.rpc.remove(home.key));
    else {
      await runInDurableObject(home.stub, (_, state) => state.abort("crash")).catch(() => undefined);
      expect(await wakesIn(home)).toBeLessThanOrEqual(30_000);
      await ring(home, 25_001);
    }
    await vi.waitFor(() => expect(takenBy(robo)).toEqual(["one", "two", "three"]));
    await settled(home);
    if (end !== "the space crashes") expect(deliveredTo(robo).at(-1)).toMatchObject({ left: true });
    expect(heardBy(robo)).toEqual(["one", "two", "three"]);
  },
);

test("[D2] one delivery carries all that is pending, in bounded batches", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await settled(home);
  const gate = Promise.withResolvers<void>();
  answers.set(robo.id, async ({ cursor }) => {
    await gate.promise;
    return ok({ cursor });
  });
  const texts = Array.from({ length: 150 }, (_, index) => `message ${index}`);
  for (const text of texts) unwrap(await home.rpc.post(home.as(ann), { text }));
  gate.resolve();
  await vi.waitFor(() => expect(heardBy(robo)).toEqual(texts));
  const sizes = deliveredTo(robo).map((delivery) => delivery.messages.length);
  expect(sizes).toEqual([0, 100, 50]);
  for (const [index, { after, cursor }] of deliveredTo(robo).entries()) {
    expect(after).toBeLessThan(cursor);
    expect(after).toBe(deliveredTo(robo)[index - 1]?.cursor ?? 2);
  }
});

test("the message says why it wakes whom", async () => {
  const { ann, robo, hal } = cast();
  const sources = (agent: EntityRef) =>
    deliveredTo(agent).flatMap(({ messages }) => messages.map((message) => message.triggerSource));
  const crowd = await house([ann, robo, hal]);
  unwrap(await crowd.rpc.post(crowd.as(ann), { text: "hello @hal" }));
  await vi.waitFor(() => expect([sources(robo), sources(hal)]).toEqual([["every_message"], ["mention"]]));

  const [ben, kit, sal] = [entity("human", "Ben"), entity("agent", "Kit"), entity("agent", "Sal")];
  const quiet = await house([ben, kit, sal], { wakePolicy: "addressed" });
  unwrap(await quiet.rpc.post(quiet.as(ben), { text: "hello @Kit, not sal" }));
  await vi.waitFor(() => expect([sources(kit), sources(sal)]).toEqual([["mention"], ["none"]]));

  const [cyd, max] = [entity("human", "Cyd"), entity("agent", "Max")];
  const pair = await house([cyd, max], { wakePolicy: "addressed" });
  unwrap(await pair.rpc.post(pair.as(cyd), { text: "hello" }));
  await vi.waitFor(() => expect(sources(max)).toEqual(["auto"]));
});

test("[B1] a message carries its root: a person's own, or the one that an agent hands on", async () => {
  const { ann, robo, hal } = cast();
  const bot = entity("service", "CI");
  const home = await house([ann, bot, robo, hal]);
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "one" }));
  const build = unwrap(await home.rpc.post(home.as(bot), { text: "two" })).message;
  unwrap(await home.rpc.append({ ...said(home, robo, "three"), root: { id: message.id, kind: "person" } }));
  await vi.waitFor(() => expect(heardBy(hal)).toHaveLength(3));
  expect(deliveredTo(hal).flatMap(({ messages }) => messages.map(({ root }) => root))).toEqual([
    { id: message.id, kind: "person", by: ann.id },
    { id: build.id, kind: "service" },
    { id: message.id, kind: "person" },
  ]);
  expect(Object.keys(message)).not.toContain("root");
});

test("an agent that joins knows the space at once, and follows its changes by their version", async () => {
  const { ann, robo } = cast();
  const home = await house([ann]);
  unwrap(await home.rpc.post(home.as(ann), { text: "before you came" }));
  unwrap(await home.rpc.addMember(home.key, robo));
  await vi.waitFor(() => expect(deliveredTo(robo)).toHaveLength(1));
  unwrap(await home.rpc.update(home.key, { name: "Garden" }));
  unwrap(await home.rpc.renameMember(home.workspaceId, ann.id, "Anna"));
  await vi.waitFor(() => expect(deliveredTo(robo).at(-1)?.space.version).toBe(6));
  const last = deliveredTo(robo).at(-1);
  expect(last?.space.name).toBe("Garden");
  expect(last?.space.members.map(({ name }) => name)).toEqual(["Anna", "Robo"]);
  expect(heardBy(robo)).toEqual([]);
});

test("a read mark is no delivery", async () => {
  const { ann, robo } = cast();
  const ben = entity("human", "Ben");
  const home = await house([ann, ben, robo]);
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "one" }));
  await settled(home);
  const before = deliveredTo(robo).length;
  unwrap(await home.rpc.markRead(home.as(ben), message.id));
  expect(await wakesIn(home)).toBeGreaterThan(watchdogMs);
  unwrap(await home.rpc.post(home.as(ann), { text: "two" }));
  await vi.waitFor(() => expect(heardBy(robo)).toEqual(["one", "two"]));
  expect(deliveredTo(robo)).toHaveLength(before + 1);
});

test("[D2] an agent that is removed is told once, after what it had coming, and then no more", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  unwrap(await home.rpc.post(home.as(ann), { text: "for you" }));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  unwrap(await home.rpc.post(home.as(ann), { text: "not for you" }));
  await settled(home);
  expect(heardBy(robo)).toEqual(["for you"]);
  expect(deliveredTo(robo).filter(({ left }) => left)).toHaveLength(1);
  expect(deliveredTo(robo).at(-1)?.left).toBe(true);
  expect(await subscribers(home)).toEqual([{ id: "index" }]);
});

test("[D2] an agent that left and came back before it was told gets both stays, nothing between", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  unwrap(await home.rpc.post(home.as(ann), { text: "first stay" }));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  unwrap(await home.rpc.post(home.as(ann), { text: "between" }));
  unwrap(await home.rpc.addMember(home.key, robo));
  unwrap(await home.rpc.post(home.as(ann), { text: "second stay" }));
  await refused(home);
  answers.delete(robo.id);
  await ring(home, 60_000);
  await vi.waitFor(() => expect(takenBy(robo)).toEqual(["first stay", "second stay"]));
  expect(deliveredTo(robo).at(-1)).toMatchObject({ left: false });
});

test("[D1] [D2] who sends again what a crash left untold has the agents hear it at once", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await settled(home);
  const message = { text: "do not lose me", clientKey: "once" };
  const crashed = armFault("space.after-append");
  await lost(home.rpc.post(home.as(ann), message), crashed);
  expect(unwrap(await home.rpc.post(home.as(ann), message)).created).toBe(false);
  await vi.waitFor(() => expect(heardBy(robo)).toEqual(["do not lose me"]));
  await settled(home);
});

test("[D2] what was pending for one agent before a crash stays when another's is done", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  await settled(home);
  const crashed = armFault("space.after-append");
  await lost(home.rpc.post(home.as(ann), { text: "one" }), crashed);
  unwrap(await home.rpc.append(said(home, robo, "two")));
  await vi.waitFor(() => expect([takenBy(robo), takenBy(hal)]).toEqual([["one"], ["one", "two"]]));
});

test("the workspace's index hears of a space before the caller does, and of no messages", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo], { createdBy: ann });
  const told = () => followed.get(home.workspaceId) ?? [];
  expect(told()).toMatchObject([{ createdBy: ann.id, cursor: 3, deleted: false, space: { name: "Kitchen" } }]);
  unwrap(await home.rpc.post(home.as(ann), { text: "private" }));
  unwrap(await home.rpc.update(home.as(ann), { name: "Hall" }));
  expect(told().map(({ space }) => space.name)).toEqual(["Kitchen", "Hall"]);
});

test("[D2] a deleted space answers nobody, tells its subscribers and keeps nothing", async () => {
  const { ann, robo, hal } = cast();
  const home = await house([ann, robo, hal]);
  unwrap(await home.rpc.removeMember(home.key, hal.id));
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  unwrap(await home.rpc.post(home.as(ann), { text: "last words" }));
  unwrap(await home.rpc.remove(home.key));
  expect(await home.rpc.describe(home.key)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(await home.rpc.append(said(home, robo, "too late"))).toMatchObject({ problem: { code: "not_found" } });
  expect(followed.get(home.workspaceId)?.at(-1)).toMatchObject({ deleted: true });
  await refused(home);
  answers.delete(robo.id);
  await ring(home, 60_000);
  await vi.waitFor(() => expect(deliveredTo(robo).at(-1)?.left).toBe(true));
  expect(takenBy(robo)).toEqual(["last words"]);
  // A member who left before is told of the end alone.
  expect(deliveredTo(hal).at(-1)?.space).toMatchObject({ name: "", members: [], deleted: true });
  await settled(home);
  const kept = await runInDurableObject(home.stub, (_, state) =>
    state.storage.sql.exec("SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM members) AS kept").one(),
  );
  expect(kept).toEqual({ kept: 0 });
});

test("[D2] messages of a short stay between two leavings are delivered", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await settled(home);
  answers.set(robo.id, async () => refuse("unavailable", "later"));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await refused(home);
  unwrap(await home.rpc.addMember(home.key, robo));
  unwrap(await home.rpc.post(home.as(ann), { text: "welcome back" }));
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  unwrap(await home.rpc.post(home.as(ann), { text: "behind your back" }));
  answers.set(robo.id, async ({ cursor }) => ok({ cursor }));
  await ring(home, 2000);
  await vi.waitFor(() => expect(takenBy(robo)).toEqual(["welcome back"]));
  await settled(home);
  expect(deliveredTo(robo).at(-1)).toMatchObject({ left: true });
  expect(await subscribers(home)).toEqual([{ id: "index" }]);
});

test("[D2] [B3] a deleted agent that had much pending is not tried for ever", async () => {
  const { ann, robo } = cast();
  const home = await house([ann, robo]);
  await settled(home);
  answers.set(robo.id, async () => refuse("not_found", "gone"));
  for (let index = 0; index < 110; index += 1) unwrap(await home.rpc.post(home.as(ann), { text: `${index}` }));
  await refused(home);
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  await ring(home, 10_000);
  await settled(home);
  expect(await subscribers(home)).toEqual([{ id: "index" }]);
  expect(await wakesIn(home)).toBeGreaterThan(watchdogMs);
});
