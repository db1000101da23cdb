import { listDurableObjectIds } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { maxHooks, maxInboxEvents } from "../../src/agent/bounds.ts";
import { Hook, type HookScheme } from "../../src/protocol/hook.ts";
import { InboxItem } from "../../src/protocol/run.ts";
import { fillInbox, rowsIn, undoLater } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { call, expectOk, ids, openHouse } from "../support/house.ts";
import { installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { deliver, type Sent, signed } from "../support/webhook-sender.ts";
import { problemIn } from "./operations.ts";

const restore = undoLater();

const Created = z.object({ hook: Hook, hookId: z.string(), url: z.string(), secret: z.string() });
const Accepted = z.object({ eventId: z.string() });

/** An agent whose model does not answer while a test looks at its inbox. */
const openAgent = async () => {
  const held = createGate();
  restore.push(
    held.open,
    installModel(
      scriptedModel(async () => {
        await held.opened;
        return step(text("Read."));
      }),
    ),
  );
  const house = await openHouse();
  const { id: agentId } = await house.agent({ name: "Analyst" });
  const bearer = house.secretKey;
  const at = `/v1/agents/${agentId}`;
  return {
    house,
    agentId,
    at,
    create: (body: Record<string, unknown>) =>
      expectOk(Created, call(`${at}/hooks`, { bearer, body: { name: "sender", ...body } })),
    hook: (path: string, method: string, body?: unknown) =>
      call(`${at}/hooks/${path}`, { bearer, method, ...(body === undefined ? {} : { body }) }),
    list: async () => (await expectOk(z.object({ items: z.array(Hook) }), call(`${at}/hooks`, { bearer }))).items,
    inbox: async () =>
      (await expectOk(z.object({ items: z.array(InboxItem) }), call(`${at}/inbox`, { bearer }))).items.map(
        ({ eventId, data }) => ({ eventId, ...z.object({ serviceName: z.string(), payload: z.json() }).parse(data) }),
      ),
  };
};

const schemes: HookScheme[] = ["standard", "github", "header"];
const settings: Record<HookScheme, Record<string, unknown>> = {
  standard: { scheme: "standard" },
  github: { scheme: "github" },
  header: { scheme: "header", idHeader: "X-Id" },
};

describe.each(schemes)("a hook of scheme %s", (scheme) => {
  const send = signed[scheme];

  test("[D5] makes one event of one delivery, however often it is sent", async () => {
    const { create, inbox } = await openAgent();
    const { hookId, secret, url } = await create(settings[scheme]);
    expect(url).toBe(`https://colloquy.test/v1/hooks/${hookId}`);
    const answers = [];
    for (let times = 0; times < 3; times += 1) {
      const answer = await deliver(hookId, send(secret, "msg_1", '{"type":"a.b","n":1}'));
      expect(answer.status).toBe(202);
      answers.push(Accepted.parse(await answer.json()).eventId);
    }
    const { eventId } = await expectOk(Accepted, deliver(hookId, send(secret, "msg_2", '{"type":"a.b","n":1}')));
    expect(new Set(answers).size).toBe(1);
    const events = await inbox();
    expect(events.map((event) => event.eventId)).toEqual([answers[0], eventId]);
    const event = { standard: { event: "a.b" }, github: { event: "issues" }, header: {} }[scheme];
    expect(events[0]).toMatchObject({ serviceName: "sender", payload: { ...event, payload: { type: "a.b", n: 1 } } });
  });

  test("[D5] makes one event of deliveries of one id that come at once", async () => {
    const { create, inbox } = await openAgent();
    const { hookId, secret } = await create(settings[scheme]);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => expectOk(Accepted, deliver(hookId, send(secret, "msg_1", '{"type":"a.b"}')))),
    );
    expect(new Set(answers.map(({ eventId }) => eventId)).size).toBe(1);
    expect(await inbox()).toHaveLength(1);
  });

  test("[S4] [S5] refuses a delivery signed with another secret, and changes nothing", async () => {
    const { create, inbox } = await openAgent();
    const { hookId } = await create(settings[scheme]);
    const other = await create(settings[scheme]);
    for (const forged of [send(other.secret, "m", "{}"), { body: "{}", headers: {} }]) {
      expect(await problemIn(await deliver(hookId, forged))).toMatchObject({ status: 401, code: "unauthorized" });
    }
    expect(await inbox()).toEqual([]);
  });

  test("[S5] after a rotation takes both secrets until the grace is over, then the new one alone", async () => {
    vi.setSystemTime("2026-02-18T15:07:00.000Z");
    const { create, hook } = await openAgent();
    const first = await create(settings[scheme]);
    const Rotated = z.object({ hook: Hook, secret: z.string() });
    const rotate = (body: unknown) => expectOk(Rotated, hook(`${first.hookId}/rotate`, "POST", body));
    const status = async (secret: string) => (await deliver(first.hookId, send(secret, "m", "{}"))).status;
    const second = await rotate({});
    expect(second.hook.previousSecretUntil).toBe("2026-02-19T15:07:00.000Z");
    expect([await status(first.secret), await status(second.secret)]).toEqual([202, 202]);
    vi.setSystemTime("2026-02-19T15:06:59.000Z");
    expect([await status(first.secret), await status(second.secret)]).toEqual([202, 202]);
    vi.setSystemTime("2026-02-19T15:07:00.000Z");
    expect([await status(first.secret), await status(second.secret)]).toEqual([401, 202]);
    const third = await rotate({ graceSeconds: 60 });
    const fourth = await rotate({ graceSeconds: 60 });
    const all = [first, second, third, fourth];
    expect(await Promise.all(all.map(({ secret }) => status(secret)))).toEqual([401, 401, 202, 202]);
    const fifth = await rotate({ graceSeconds: 0 });
    expect(fifth.hook.previousSecretUntil).toBeUndefined();
    expect([await status(fourth.secret), await status(fifth.secret)]).toEqual([401, 202]);
  });

  test("[S3] its secret is shown once, and stored sealed", async () => {
    const { create, list, agentId, at, house } = await openAgent();
    const { hookId, secret } = await create(settings[scheme]);
    expect(JSON.stringify(await list())).not.toContain(secret);
    const rows = await rowsIn({ id: agentId }, "SELECT * FROM hooks");
    expect(rows).toHaveLength(1);
    expect(JSON.stringify(rows)).not.toContain(secret);
    await deliver(hookId, signed[scheme](secret, "m", "{}"));
    const runs = await call(`${at}/runs`, { bearer: house.secretKey });
    expect(await runs.text()).not.toContain(secret);
  });

  test("takes the sender's own secret where its form is right", async () => {
    const { create, at, house } = await openAgent();
    const secret = scheme === "standard" ? "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" : "It's a Secret to Everybody";
    const created = await create({ ...settings[scheme], secret });
    expect(created.secret).toBe(secret);
    expect((await deliver(created.hookId, send(secret, "m", "{}"))).status).toBe(202);
    const body = { ...settings[scheme], name: "x", secret: "short" };
    const refused = await problemIn(await call(`${at}/hooks`, { bearer: house.secretKey, body }));
    expect(refused).toMatchObject({ code: "invalid_request", issues: [{ path: "secret" }] });
  });
});

test("GitHub's own example of a delivery is read by a template", async () => {
  const { create, inbox } = await openAgent();
  const template =
    "{{event}} #{{payload.issue.number}} in {{payload.repository.full_name}} by {{payload.sender.login}}";
  const { hookId, secret } = await create({ scheme: "github", name: "github", template });
  const body = JSON.stringify({
    action: "opened",
    issue: { url: "https://api.github.com/repos/octocat/Hello-World/issues/1347", number: 1347 },
    repository: { id: 1296269, full_name: "octocat/Hello-World", owner: { login: "octocat", id: 1 } },
    sender: { login: "octocat", id: 1 },
  });
  await expectOk(Accepted, deliver(hookId, signed.github(secret, "72d3162e-cc78-11e3-81ab-4c9367dc0958", body)));
  const form = `payload=${encodeURIComponent(body)}`;
  const sent = signed.github(secret, "72d3162e-cc78-11e3-81ab-4c9367dc0959", form);
  sent.headers["content-type"] = "application/x-www-form-urlencoded";
  await expectOk(Accepted, deliver(hookId, sent));
  const read = { event: "issues.opened", text: "issues.opened #1347 in octocat/Hello-World by octocat" };
  expect((await inbox()).map(({ serviceName, payload }) => [serviceName, payload])).toEqual([
    ["github", read],
    ["github", read],
  ]);
});

test("a greeting and an event that the hook does not want are acknowledged without an event", async () => {
  const { create, inbox, hook } = await openAgent();
  const { hookId, secret } = await create({ scheme: "github", events: ["issues.opened", "push"] });
  const send = async (event: string, payload: unknown): Promise<unknown> => {
    const sent = signed.github(secret, ids.mint("str"), JSON.stringify(payload));
    const answer = await deliver(hookId, { ...sent, headers: { ...sent.headers, "x-github-event": event } });
    expect(answer.status).toBe(202);
    return answer.json();
  };
  expect(await send("ping", { zen: "Design for failure." })).toEqual({ ignored: "greeting" });
  expect(await send("issues", { action: "closed" })).toEqual({ ignored: "event_type" });
  expect(await inbox()).toEqual([]);
  Accepted.parse(await send("issues", { action: "opened" }));
  Accepted.parse(await send("push", {}));
  await hook(hookId, "PATCH", { events: null });
  Accepted.parse(await send("issues", { action: "closed" }));
  expect(await inbox()).toHaveLength(3);
});

test("[D5] without an id, the same body within five minutes is the same delivery, later another", async () => {
  vi.setSystemTime("2026-02-18T15:08:20.000Z");
  const { create, inbox } = await openAgent();
  const { hookId, secret } = await create({ scheme: "header" });
  const send = async (body: string, time: string) => {
    vi.setSystemTime(`2026-02-18T${time}Z`);
    return (await expectOk(Accepted, deliver(hookId, signed.header(secret, "", body)))).eventId;
  };
  const first = await send('{"up":true}', "15:08:20.000");
  expect(await send('{"up":true}', "15:09:59.999")).toBe(first);
  expect(await send('{"up":true}', "15:13:19.999")).toBe(first);
  const other = await send('{"up":false}', "15:13:19.999");
  const second = await send('{"up":true}', "15:13:20.000");
  expect(await send('{"up":true}', "15:14:00.000")).toBe(second);
  expect(await send('{"up":true}', "15:18:19.999")).toBe(second);
  const third = await send('{"up":true}', "15:18:20.000");
  expect(new Set([first, other, second, third]).size).toBe(4);
  expect((await inbox()).map(({ eventId }) => eventId)).toEqual([first, other, second, third]);
});

describe("[S4] a bad delivery gets its typed answer and changes nothing", () => {
  test.each<[string, number, string, (secret: string) => Sent]>([
    ["six minutes old", 400, "delivery_expired", (s) => signed.standard(s, "m", "{}", Date.now() - 360_000)],
    ["six minutes ahead", 400, "delivery_expired", (s) => signed.standard(s, "m", "{}", Date.now() + 360_000)],
    ["no JSON", 400, "invalid_json", (s) => signed.standard(s, "m", "{")],
    [
      "nesting without end",
      400,
      "invalid_request",
      (s) => signed.standard(s, "m", `${"[".repeat(9999)}${"]".repeat(9999)}`),
    ],
    ["half a character", 400, "invalid_request", (s) => signed.standard(s, "m", '"\\ud800"')],
    ["an endless id", 400, "invalid_request", (s) => signed.standard(s, "m".repeat(300), "{}")],
    [
      "too large for an event",
      413,
      "payload_too_large",
      (s) => signed.standard(s, "m", JSON.stringify("x".repeat(70_000))),
    ],
    [
      "more than a MiB",
      413,
      "payload_too_large",
      (s) => signed.standard(s, "m", JSON.stringify("x".repeat(1024 * 1024))),
    ],
  ])("%s", async (_, status, code, send) => {
    const { create, inbox } = await openAgent();
    const { hookId, secret } = await create({ scheme: "standard" });
    expect(await problemIn(await deliver(hookId, send(secret)))).toMatchObject({ status, code });
    expect(await inbox()).toEqual([]);
  });

  test("[B3] a body without a length is read up to 1 MiB only", async () => {
    const { create } = await openAgent();
    const { hookId } = await create({ scheme: "standard" });
    let pulled = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1;
        controller.enqueue(new Uint8Array(64 * 1024));
      },
    });
    const answer = await exports.default.fetch(`https://colloquy.test/v1/hooks/${hookId}`, {
      method: "POST",
      body: endless,
    });
    expect(await problemIn(answer)).toMatchObject({ status: 413, code: "payload_too_large" });
    expect(pulled).toBeLessThan(32);
  });

  test("a payload too large for an event is refused with a hint to use a template", async () => {
    const { create, hook, inbox } = await openAgent();
    const { hookId, secret } = await create({ scheme: "standard" });
    const body = JSON.stringify({ type: "push", title: "Long", rest: "x".repeat(900_000) });
    const refused = await problemIn(await deliver(hookId, signed.standard(secret, "m", body)));
    expect(refused.detail).toMatch(/maxPayloadBytes is 65536.*template/);
    await hook(hookId, "PATCH", { template: "{{payload.title}} {{payload.rest}}" });
    await expectOk(Accepted, deliver(hookId, signed.standard(secret, "m", body)));
    const [event] = await inbox();
    expect(event?.payload).toEqual({
      event: "push",
      text: `Long ${"x".repeat(4000)}… (cut: 900000 characters in all)`,
    });
  });
});

test("[S6] an invented hook, a closed one, and a deleted agent's answer 404 and wake nothing", async () => {
  const { create, hook, house, at } = await openAgent();
  const { hookId, secret } = await create({ scheme: "github" });
  const other = await create({ scheme: "github" });
  const before = (await listDurableObjectIds(env.AGENT as never)).length;
  const sent = signed.github(secret, "d", "{}");
  const nowhere = (id: string) => deliver(id, sent).then(problemIn);
  for (const invented of ["x", `${hookId.slice(0, -1)}_`, ids.mint("ent"), `${hookId}0`]) {
    expect(await nowhere(invented)).toMatchObject({ code: "not_found" });
  }
  const flipped = `${hookId.slice(0, -1)}${hookId.endsWith("0") ? "1" : "0"}`;
  expect(await nowhere(flipped)).toMatchObject({ code: "not_found" });
  expect((await listDurableObjectIds(env.AGENT as never)).length).toBe(before);
  expect(await nowhere(ids.mintOwned("hook", ids.mint("ent")))).toMatchObject({ code: "not_found" });
  expect((await hook(hookId, "DELETE")).status).toBe(204);
  expect((await hook(hookId, "DELETE")).status).toBe(404);
  expect(await nowhere(hookId)).toMatchObject({ code: "not_found" });
  await call(at, { method: "DELETE", bearer: house.secretKey });
  expect(await deliver(other.hookId, signed.github(other.secret, "d", "{}")).then(problemIn)).toMatchObject({
    code: "not_found",
  });
});

test("[B3] a full inbox answers 503 with Retry-After, and takes the delivery once there is room", async () => {
  const { create, agentId } = await openAgent();
  const { hookId, secret } = await create({ scheme: "github" });
  await fillInbox({ id: agentId }, maxInboxEvents);
  const answer = await deliver(hookId, signed.github(secret, "d", "{}"));
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await problemIn(answer)).toMatchObject({ status: 503, detail: expect.stringContaining("maxInboxEvents") });
  await rowsIn({ id: agentId }, "DELETE FROM inbox");
  expect((await deliver(hookId, signed.github(secret, "d", "{}"))).status).toBe(202);
});

test("[B3] an agent has at most maxHooks hooks", async () => {
  const { create, at, house, list } = await openAgent();
  for (let hooks = 0; hooks < maxHooks; hooks += 1) await create({ scheme: "github" });
  const body = { scheme: "github", name: "one more" };
  const refused = await problemIn(await call(`${at}/hooks`, { bearer: house.secretKey, body }));
  expect(refused).toMatchObject({ code: "limit_reached", detail: expect.stringContaining("maxHooks") });
  expect(await list()).toHaveLength(maxHooks);
});

test("a hook is changed, and created and rotated once for one Idempotency-Key", async () => {
  const { at, house, list, hook } = await openAgent();
  const bearer = house.secretKey;
  const post = (path: string, key: string, body: unknown) =>
    call(`${at}/hooks${path}`, { bearer, body, headers: { "idempotency-key": key } });
  const body = { scheme: "header", name: "monitor", header: "X-Token", eventHeader: "X-Event", events: ["up"] };
  const [first, again] = [await post("", "k", body), await post("", "k", body)];
  const created = Created.parse(await first.json());
  expect(await again.json()).toEqual(created);
  expect(await list()).toEqual([created.hook]);
  expect(created.hook).toMatchObject({ scheme: "header", header: "X-Token", eventHeader: "X-Event", events: ["up"] });
  const rotations = [
    await post(`/${created.hookId}/rotate`, "r", {}),
    await post(`/${created.hookId}/rotate`, "r", {}),
  ];
  const [one, two] = await Promise.all(rotations.map((answer) => answer.json()));
  expect(two).toEqual(one);
  const changed = await expectOk(
    z.object({ hook: Hook }),
    hook(created.hookId, "PATCH", { name: "up", events: null, template: "{{event}}" }),
  );
  expect(changed.hook).toMatchObject({ name: "up", template: "{{event}}" });
  expect(changed.hook.events).toBeUndefined();
  for (const bad of [{ template: "{{x}}" }, { events: [] }, { scheme: "github" }, { name: "" }, { secret: "x" }]) {
    expect(await problemIn(await hook(created.hookId, "PATCH", bad))).toMatchObject({ code: "invalid_request" });
  }
});
