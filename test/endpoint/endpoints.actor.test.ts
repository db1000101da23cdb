import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { maxDeliveries } from "../../src/endpoint/bounds.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { pause } from "../../src/shared/timeouts.ts";
import { maxEndpoints } from "../../src/workspace/bounds.ts";
import { endedRun } from "../routes/inside-things.ts";
import { problemIn } from "../routes/operations.ts";
import { adminKey, call, ids, openHouse } from "../support/house.ts";
import { outsideCall, outsideCaller } from "../support/outside-call.ts";
import { openEndpoint } from "./fixture.ts";

/** Endpoints as a whole, over HTTP. Their server is in another process, and verifies by the public library. */
afterEach(() => {
  disarmFaults();
  vi.useRealTimers();
});

test("[E1] a new space tells its events from the first, in order, once, signed", async () => {
  const { house, told, seen } = await openEndpoint({ types: ["space.*", "member.joined"] });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  for (const text of ["one", "two", "three"]) await house.say(space.id, ann, text);
  const types = ["space.updated", "member.joined", "space.message", "space.message", "space.message"];
  await vi.waitFor(async () => expect((await told()).map(({ type }) => type)).toEqual(types));
  const events = await told();
  expect(events.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((seq) => `${space.id}_${seq}`));
  expect(events.at(-1)).toMatchObject({
    timestamp: expect.stringMatching(/Z$/),
    data: { spaceId: space.id, cursor: 5, message: { text: "three", sender: { id: ann.id } } },
  });
  expect((await seen()).every(({ headers, status }) => status === 200 && headers["webhook-id"] !== undefined)).toBe(
    true,
  );
});

test("[C9] [E1] a message tells its root, which what it sets off brings back", async () => {
  const at = await openEndpoint();
  const { house } = at;
  const [ann, bot] = [await house.person("Ann"), await house.service("Bot")];
  const space = await house.space("Hall", [ann, bot]);
  const vault = await house.space("Vault", [ann, bot], { confidential: true });
  const named = await openEndpoint({ spaceIds: [vault.id] }, house);
  await house.say(space.id, ann, "begun by Ann");
  await house.say(vault.id, ann, "in private");
  await vi.waitFor(async () => expect(await at.texts()).toEqual(["begun by Ann"]));
  const [first] = await at.told();
  const body = { text: "because of that" };
  const headers = { "colloquy-root": z.string().parse(first?.data.root) };
  const path = `/v1/spaces/${space.id}/messages`;
  expect((await call(path, { bearer: bot.token, body, headers })).status).toBe(201);
  // What came of it has the same root.
  await vi.waitFor(async () => expect(await at.texts()).toHaveLength(2));
  const roots = await runInDurableObject(
    env.SPACE.getByName(space.id) as unknown as DurableObjectStub,
    (_, { storage }) =>
      storage.sql.exec("SELECT routing ->> '$.root.id' AS id FROM log WHERE message_id IS NOT NULL").toArray(),
  );
  expect(new Set(roots.map(({ id }) => id)).size).toBe(1);
  await vi.waitFor(async () => expect(await named.texts()).toEqual(["in private"]));
  expect((await named.told())[0]?.data).not.toHaveProperty("root");
});

test("[E1] a space that is there tells what comes from then on, until the endpoint ends", async () => {
  const first = await openEndpoint();
  const { house } = first;
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "before");
  const second = await openEndpoint({}, house);
  await vi.waitFor(async () => {
    await house.say(space.id, ann, "since");
    expect(await second.texts()).toContain("since");
  });
  await house.say(space.id, ann, "after");
  await vi.waitFor(async () => expect((await second.texts()).at(-1)).toBe("after"));
  expect(await second.texts()).not.toContain("before");
  expect((await second.own("DELETE", "")).status).toBe(204);
  await vi.waitFor(async () => expect((await second.own("GET", "/deliveries")).status).toBe(404));
  await house.say(space.id, ann, "late");
  await vi.waitFor(async () => expect((await first.texts()).at(-1)).toBe("late"));
  expect((await second.texts()).at(-1)).toBe("after");
});

test.each(["endpoint.after-deliver", "endpoint.after-send", "space.after-deliver", "space.after-append"] as const)(
  "[E1] a crash at %s loses no event, and what comes twice has one id",
  async (point) => {
    const { house, told, texts, ring } = await openEndpoint();
    const ann = await house.person("Ann");
    const space = await house.space("Hall", [ann]);
    await house.say(space.id, ann, "one");
    await vi.waitFor(async () => expect(await texts()).toEqual(["one"]));
    const crashed = armFault(point);
    await house.say(space.id, ann, "two").catch(() => undefined);
    await crashed;
    await house.say(space.id, ann, "three");
    await vi.waitFor(
      async () => {
        await ring(0);
        expect((await texts()).at(-1)).toBe("three");
      },
      { timeout: 15_000 },
    );
    const ids = (await told()).map(({ id }) => id);
    expect([...new Set(ids)]).toEqual([3, 4, 5].map((seq) => `${space.id}_${seq}`));
    expect(ids.length).toBe(point === "endpoint.after-send" ? 4 : 3);
  },
);

test("[E2] a failing server is tried later and later, then disabled, and goes on from there", async () => {
  const dead = await openEndpoint();
  const { house } = dead;
  const other = await openEndpoint({}, house);
  await dead.answer({ status: 500, answer: "out of order" });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await house.say(space.id, ann, "two");
  await vi.waitFor(async () => expect(await other.texts()).toEqual(["one", "two"]));
  const pauses = [5000, 60_000, 600_000, 3_600_000, 10_800_000, 43_200_000];
  for (const [failed, pause] of pauses.entries()) {
    await vi.waitFor(async () => expect(await dead.seen()).toHaveLength(failed + 1));
    await vi.waitFor(async () => expect(await dead.pause()).toBeGreaterThan(pause - 3000));
    expect(await dead.pause()).toBeLessThanOrEqual(pause);
    await dead.ring(pause);
  }
  expect(new Set((await dead.seen()).map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect((await dead.deliveries())[0]).toMatchObject({ status: 500, isDelivered: false, answer: "out of order" });
  await dead.ring(3 * 86_400_000);
  await vi.waitFor(async () =>
    expect((await dead.describe())?.disabled).toMatchObject({ reason: "refused", detail: "It answered 500" }),
  );
  const { items } = await (
    await call("/v1/workspace/audit?action=endpoint.disabled", { bearer: house.secretKey })
  ).json<{ items: unknown[] }>();
  expect(items).toMatchObject([{ actor: { id: "workspace" }, target: dead.endpoint.id }]);
  // Its own clock is not moved: by it the signature is of the future.
  await other.answer({});
  await house.say(space.id, { ...ann, token: await house.token(ann.id) }, "three");
  const tries = (await dead.seen()).length;
  await vi.waitFor(async () => expect((await other.texts()).at(-1)).toBe("three"));
  expect(await dead.seen()).toHaveLength(tries);
  await dead.answer({});
  await dead.change({ enabled: true });
  await vi.waitFor(async () => expect(await dead.texts()).toEqual(["one", "two", "three"]));
  expect((await dead.describe())?.disabled).toBeUndefined();
});

test("[E2] an endpoint that is changed during its last try is tried once more, then disabled", async () => {
  const { house, answer, seen, change, describe, pause, ring } = await openEndpoint();
  await answer({ status: 500 });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await pause()).toBeGreaterThan(2000));
  await answer({ status: 500, delayMs: 1000 });
  const tried = (await seen()).length;
  await ring(3 * 86_400_000);
  await vi.waitFor(async () => expect(await seen()).toHaveLength(tried + 1));
  await change({ batch: true });
  await vi.waitFor(async () => expect((await describe())?.disabled).toMatchObject({ reason: "refused" }), {
    timeout: 60_000,
  });
});

test("[E2] the first pause is 5 s, whatever its space tells during the first try", async () => {
  const { house, answer, seen, deliveries, pause } = await openEndpoint();
  await answer({ status: 503, delayMs: 1000 });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await seen()).toHaveLength(1));
  await house.say(space.id, ann, "two");
  await vi.waitFor(async () => expect(await deliveries()).not.toEqual([]));
  await vi.waitFor(async () => expect(await pause()).toBeGreaterThan(2000));
  expect(await pause()).toBeLessThanOrEqual(5000);
  expect(await seen()).toHaveLength(1);
});

test("[E3] what is said in a confidential space goes to endpoints alone that name it", async () => {
  const open = await openEndpoint({ types: ["space.*", "run.*"] });
  const { house } = open;
  const ann = await house.person("Ann");
  const [board, later] = [await house.space("Board", [ann], { confidential: true }), await house.space("Later", [ann])];
  const named = await openEndpoint({ spaceIds: [board.id] }, house);
  await house.say(later.id, ann, "open words");
  const told = await house.say(later.id, ann, "before");
  await vi.waitFor(async () => expect(await open.texts()).toEqual(["open words", "before"]));
  await call(`/v1/spaces/${later.id}`, { method: "PATCH", bearer: house.secretKey, body: { confidential: true } });
  const path = `/v1/spaces/${later.id}/messages/${told.id}`;
  await call(path, { method: "PATCH", bearer: ann.token, body: { text: "secret edit" } });
  await house.say(later.id, ann, "secret here");
  await vi.waitFor(async () => {
    await house.say(board.id, ann, "secret there");
    expect(await named.texts()).toContain("secret there");
  });
  expect((await open.own("POST", "/redeliver", { from: new Date(0).toISOString() })).status).toBe(202);
  await vi.waitFor(async () => expect((await open.texts()).filter((text) => text === "open words")).toHaveLength(2));
  const marker = await house.space("Marker", [ann]);
  await house.say(marker.id, ann, "last");
  await vi.waitFor(async () => expect((await open.texts()).at(-1)).toBe("last"));
  const bodies = (await open.seen()).map(({ body }) => body).join("");
  expect(bodies).not.toContain("secret");
  expect((await named.texts()).every((text) => text === "secret there")).toBe(true);
});

test("[E3] words that were deleted or edited before a try are not sent, and nothing keeps them", async () => {
  const { house, answer, seen, told, own, rows, deliveries } = await openEndpoint({ types: ["space.message"] });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await answer({ answer: "You said quinces" });
  const first = await house.say(space.id, ann, "quinces, first");
  await vi.waitFor(async () => expect((await deliveries())[0]).toMatchObject({ answer: "You said quinces" }));
  await answer({ status: 503, answer: "quinces?" });
  const message = await house.say(space.id, ann, "quinces, again");
  await vi.waitFor(async () => expect(await seen()).toHaveLength(2));
  for (const id of [message.id, first.id]) {
    await call(`/v1/spaces/${space.id}/messages/${id}`, { method: "DELETE", bearer: ann.token });
  }
  await vi.waitFor(async () => {
    const stored = await Promise.all(["endpoint", "sources", "deliveries", "jobs"].map(rows));
    expect(JSON.stringify(stored)).not.toContain("quinces");
  });
  await answer({});
  await own("POST", "/redeliver", { from: new Date(0).toISOString() });
  await vi.waitFor(async () => expect(await told()).toHaveLength(3));
  for (const event of (await told()).slice(1)) expect(event.data.message).toMatchObject({ deleted: {} });
});

test("[E3] [L1] an answer that comes once the message was deleted is not kept", async () => {
  const { house, answer, seen, rows, deliveries } = await openEndpoint();
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await answer({ answer: "You said quinces", delayMs: 2000 });
  const { id } = await house.say(space.id, ann, "quinces");
  await vi.waitFor(async () => expect(await seen()).toHaveLength(1));
  await call(`/v1/spaces/${space.id}/messages/${id}`, { method: "DELETE", bearer: ann.token });
  await vi.waitFor(async () => expect(await deliveries()).not.toEqual([]), { timeout: 5000 });
  expect(JSON.stringify(await rows("deliveries"))).not.toContain("quinces");
});

test.each([
  ["its endpoint names it no more", { method: "PATCH", body: { spaceIds: null } }],
  ["it is deleted", { method: "DELETE" }],
])("[E3] what waits of a confidential space is not sent once %s", async (_, asked) => {
  const house = await openHouse();
  const ann = await house.person("Ann");
  const board = await house.space("Board", [ann], { confidential: true });
  const { answer, secret, seen, texts, endpoint } = await openEndpoint({ spaceIds: [board.id] }, house);
  const ends = asked.method === "DELETE" ? `spaces/${board.id}` : `workspace/endpoints/${endpoint.id}`;
  await vi.waitFor(async () => {
    await house.say(board.id, ann, "now?");
    expect(await texts()).not.toEqual([]);
  });
  await answer({ secret, delayMs: 300 });
  for (let index = 0; index < 9; index += 1) await house.say(board.id, ann, `secret ${index}`);
  const secrets = async () => (await seen()).filter(({ body }) => body.includes("secret")).length;
  // The second page holds all but the first.
  await vi.waitFor(async () => expect(await secrets()).toBeGreaterThan(1));
  expect((await call(`/v1/${ends}`, { bearer: house.secretKey, ...asked })).ok).toBe(true);
  const before = await secrets();
  await pause(2000);
  // One may have been on its way.
  expect(await secrets()).toBeLessThanOrEqual(before + 1);
});

test("[E3] words that are deleted while the events before them go out are not sent", async () => {
  const { house, answer, secret, told } = await openEndpoint();
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await answer({ secret, delayMs: 100 });
  for (let index = 0; index < 44; index += 1) await house.say(space.id, ann, `apple ${index}`);
  const last = await house.say(space.id, ann, "quinces");
  // The last page of three has been read by now, and does not go out yet.
  await vi.waitFor(async () => expect((await told()).length).toBeGreaterThan(21), { timeout: 10_000 });
  expect((await told()).length).toBeLessThan(30);
  await call(`/v1/spaces/${space.id}/messages/${last.id}`, { method: "DELETE", bearer: ann.token });
  // The one that was on its way may come again, under its id.
  const ids = async () => new Set((await told()).map(({ id }) => id));
  await vi.waitFor(async () => expect((await ids()).size).toBe(45), { timeout: 10_000 });
  const events = await told();
  expect(events.at(-1)?.data.message).toMatchObject({ deleted: {} });
});

test("[L16] [E3] a name that is erased while the events before it go out is not sent", async () => {
  const { house, answer, secret, own, seen, deliveries } = await openEndpoint({ types: ["entity.created"] });
  await answer({ status: 503 });
  for (let index = 0; index < 12; index += 1) await house.person(`Apple ${index}`);
  const quince = await house.person("Quince");
  await vi.waitFor(async () => expect(await deliveries()).not.toEqual([]));
  await answer({ secret, delayMs: 700 });
  // Now all of them are read as one page.
  const from = new Date(Date.now() + 60_000).toISOString();
  expect((await own("POST", "/redeliver", { from })).status).toBe(202);
  await vi.waitFor(async () => expect((await seen()).length).toBeGreaterThan(1));
  const as = { bearer: house.secretKey };
  await call("/v1/erasures", { ...as, body: { kind: "person", id: quince.id } });
  const done = async () =>
    expect(await (await call(`/v1/erasures/${quince.id}`, as)).json()).toMatchObject({ erasure: { state: "done" } });
  await vi.waitFor(done, { timeout: 10_000 });
  const bodies = async () => (await seen()).map(({ body }) => body).join();
  await vi.waitFor(async () => expect(await bodies()).toContain(quince.id), { timeout: 20_000 });
  expect(await bodies()).not.toContain("Quince");
}, 40_000);

test("[E4] what was sent is listed, and sent again in order from a time, under the same ids", async () => {
  const { house, texts, told, own, deliveries } = await openEndpoint({ batch: true });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await texts()).toEqual(["one"]));
  await vi.waitFor(async () => expect(await deliveries()).toHaveLength(1));
  const from = new Date(Date.parse((await deliveries())[0]?.at ?? "") + 1).toISOString();
  const more = Array.from({ length: 45 }, (_, index) => `more ${index}`);
  await Promise.all(more.map((text) => house.say(space.id, ann, text)));
  await vi.waitFor(async () => expect(await told()).toHaveLength(46));
  expect((await deliveries()).every(({ type, events }) => type === "batch" && events <= 20)).toBe(true);
  const again = await own("POST", "/redeliver", { from });
  expect(await again.json()).toEqual({ sources: 1 });
  await vi.waitFor(async () => expect(await told()).toHaveLength(91));
  const ids = (await told()).map(({ id }) => id);
  expect(ids.slice(46)).toEqual(ids.slice(1, 46));
  expect((await own("POST", "/redeliver", { from: new Date(Date.now() + 60_000).toISOString() })).status).toBe(202);
});

test("[E1] [E4] a refused look at deliveries takes back nothing that was sent", async () => {
  const { house, own, deliveries, texts } = await openEndpoint();
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await texts()).toEqual(["one"]));
  expect((await problemIn(await own("GET", "/deliveries?cursor=none"))).code).toBe("invalid_cursor");
  await house.say(space.id, ann, "two");
  await vi.waitFor(async () => expect(await texts()).toContain("two"));
  expect(await texts()).toEqual(["one", "two"]);
  await vi.waitFor(async () => expect(await deliveries()).toHaveLength(2));
});

test("[E4] what waits for its next try goes at once with a redelivery from any time", async () => {
  const { house, answer, secret, seen, texts, own, pause, ring } = await openEndpoint();
  await answer({ status: 503 });
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  for (const [failed, pauseMs] of [5000, 60_000].entries()) {
    await vi.waitFor(async () => expect(await seen()).toHaveLength(failed + 1));
    await vi.waitFor(async () => expect(await pause()).toBeGreaterThan(pauseMs - 3000));
    if (failed === 0) await ring(pauseMs);
  }
  await answer({ secret });
  // Its own clock is not moved: by it the signature is of the future.
  vi.useRealTimers();
  const from = new Date(Date.now() + 60_000).toISOString();
  expect((await own("POST", "/redeliver", { from })).status).toBe(202);
  await vi.waitFor(async () => expect(await texts()).toEqual(["one"]));
});

test("[B3] [E4] the newest tries are kept, and a time before them is refused by name", async () => {
  const { house, own, stub, rows, texts } = await openEndpoint();
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await rows("deliveries")).toHaveLength(1));
  await runInDurableObject(stub(), (_, { storage }) =>
    storage.sql.exec(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
       INSERT INTO deliveries (source_id, seq, webhook_id, type, events, at, attempt, is_delivered, ms)
       SELECT ?2, i, 'late', 'space.message', 1, ?3, 1, 1, 1 FROM n`,
      ...[maxDeliveries, space.id, Date.now()],
    ),
  );
  await house.say(space.id, ann, "two");
  await vi.waitFor(async () => expect(await texts()).toEqual(["one", "two"]));
  await vi.waitFor(async () => expect(await rows("deliveries")).toHaveLength(maxDeliveries));
  const { code, detail } = await problemIn(await own("POST", "/redeliver", { from: new Date(0).toISOString() }));
  expect([code, detail]).toEqual(["limit_reached", expect.stringContaining("maxDeliveries")]);
  const from = /from (\S+) on/.exec(detail)?.[1];
  expect((await own("POST", "/redeliver", { from })).status).toBe(202);
});

test("[L6] [L16] an endpoint rests while its workspace is suspended, and ends with it", async () => {
  const { house, texts, seen, own, rows, stub } = await openEndpoint();
  const ann = await house.person("Ann");
  const space = await house.space("Hall", [ann]);
  await house.say(space.id, ann, "one");
  await vi.waitFor(async () => expect(await texts()).toEqual(["one"]));
  const operate = (act: string, body?: unknown) =>
    call(`/v1/operator/workspaces/${house.workspaceId}/${act}`, { method: "POST", bearer: adminKey, body });
  await operate("suspend", { reason: "Unpaid" });
  await vi.waitFor(async () => expect(JSON.stringify(await rows("endpoint"))).toContain("suspended"));
  await own("POST", "/redeliver", { from: new Date(0).toISOString() });
  expect(await seen()).toHaveLength(1);
  await operate("resume");
  await vi.waitFor(async () => expect(await texts()).toEqual(["one", "one"]));
  await call("/v1/erasures", { bearer: house.secretKey, body: { kind: "workspace", id: house.workspaceId } });
  const size = () =>
    runInDurableObject(stub(), (_, { storage }) => [
      ...storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'endpoint'"),
    ]);
  await vi.waitFor(async () => expect(await size()).toEqual([]));
});

test("[E1] entities, agents, the audit log, calls that wait and ends of runs are told too", async () => {
  const { house, told } = await openEndpoint({
    types: ["entity.*", "agent.*", "audit.*", "tool_call.waiting", "run.*"],
  });
  const ann = await house.person("Ann");
  const made = await told();
  expect(made.filter(({ type }) => type.startsWith("run."))).toEqual([]);
  const { toolCallId } = await outsideCall(house, await outsideCaller(house));
  const agent = await house.agent({ name: "Analyst", instructions: "Answer." });
  await endedRun(house, ann, agent.id);
  await call(`/v1/entities/${ann.id}`, { method: "PATCH", bearer: house.secretKey, body: { name: "Anna" } });
  await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer: house.secretKey });
  const of = async (wanted: string) => (await told()).filter(({ type }) => type === wanted).map(({ data }) => data);
  await vi.waitFor(async () => expect(await of("agent.removed")).toMatchObject([{ entity: { id: agent.id } }]));
  expect(await of("entity.created")).toMatchObject([{ workspaceId: house.workspaceId, entity: { id: ann.id } }]);
  expect(await of("entity.updated")).toMatchObject([{ entity: { name: "Anna" } }]);
  expect(await of("tool_call.waiting")).toMatchObject([{ call: { toolCallId, name: "lookUp" } }]);
  expect((await of("audit.entry")).map(({ action }) => action)).toEqual(
    expect.arrayContaining(["endpoint.created", "agent.deleted"]),
  );
  await vi.waitFor(async () =>
    expect(await of("run.completed")).toContainEqual(
      expect.objectContaining({ entityId: agent.id, outcome: "answered" }),
    ),
  );
  const ids = (await told()).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test("[S5] [L5] a rolled secret signs on for its overlap, and a rotation seals both anew", async () => {
  const { house, answer, secret, told, own, rows } = await openEndpoint({ types: ["entity.created"] });
  const rolled = await (await own("POST", "/roll", { overlapSeconds: 3600 })).json<{
    secret: string;
    endpoint: object;
  }>();
  expect(rolled.secret).not.toBe(secret);
  expect(rolled.endpoint).toMatchObject({ previousSecretUntil: expect.any(String) });
  await vi.waitFor(async () => expect(JSON.stringify(await rows("endpoint"))).toContain("until"));
  await house.person("Ann");
  await vi.waitFor(async () => expect(await told()).toHaveLength(1));
  await answer({ secret: rolled.secret });
  await house.person("Ben");
  await vi.waitFor(async () => expect(await told()).toHaveLength(2));
  Reflect.set(env, "SIGNING_SECRETS", `second:${"n".repeat(32)}`);
  onTestFinished(() => void Reflect.deleteProperty(env, "SIGNING_SECRETS"));
  const reseal = (method: string) =>
    call(`/v1/operator/workspaces/${house.workspaceId}/reseal`, { bearer: adminKey, method });
  await reseal("POST");
  const prints = async () =>
    JSON.stringify(await rows("endpoint"))
      .match(/v1\.[\w-]+\.[\w-]+\.([\w-]+)/g)
      ?.map((text) => text.split(".")[3]);
  await vi.waitFor(async () =>
    expect(await (await reseal("GET")).json()).toMatchObject({ state: "done", hanging: { secrets: [] } }),
  );
  await vi.waitFor(async () => expect(new Set(await prints()).size).toBe(1));
  await house.person("Cyd");
  await vi.waitFor(async () => expect(await told()).toHaveLength(3));
});

test("[S4] [B3] what cannot be an endpoint is refused by name, and there are maxEndpoints", async () => {
  const { house, ask, own } = await openEndpoint();
  const codeOf = async (settings: object) => {
    const body = { url: "https://a.example/", types: ["space.message"], ...settings };
    return (await problemIn(await ask("POST", "", body))).code;
  };
  for (const url of ["http://169.254.169.254/x", "https://10.1.2.3/", "nonsense", "ftp://a.example/"]) {
    expect(await codeOf({ url })).toBe("invalid_request");
    expect((await problemIn(await own("PATCH", "", { url }))).code).toBe("invalid_request");
  }
  expect(await codeOf({ types: ["space.read"] })).toBe("invalid_request");
  expect(await codeOf({ types: [] })).toBe("invalid_request");
  expect(await codeOf({ spaceIds: [ids.mint("spc")] })).toBe("unknown_reference");
  const elsewhere = await (await openHouse()).space("Elsewhere", []);
  expect(await codeOf({ spaceIds: [elsewhere.id] })).toBe("unknown_reference");
  for (let count = 1; count < maxEndpoints; count += 1) await openEndpoint({ types: ["entity.removed"] }, house);
  expect(await codeOf({})).toBe("limit_reached");
});
