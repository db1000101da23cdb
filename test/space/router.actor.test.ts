import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeAll, expect, test, vi } from "vitest";
import { seal } from "../../src/auth/sealing.ts";
import { providers } from "../../src/models/models.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import type { RouterConfig } from "../../src/protocol/space.ts";
import { dayMs } from "../../src/shared/clock.ts";
import { ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import {
  maxRouterAsks,
  maxRouterHeld,
  maxRouterMessages,
  routerRetryMs,
  routerTimeoutMs,
} from "../../src/space/bounds.ts";
import { undoLater } from "../agent/fixture.ts";
import { createGate, type Gate } from "../support/gate.ts";
import { rowsWith } from "../support/rows.ts";
import {
  apiError,
  cutStream,
  installModel,
  refusal,
  type Script,
  type ScriptedModel,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { answers, deliveredTo, entity, type House, house, ids, recordReceivers, said, takenBy } from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const restore = undoLater();

const config: RouterConfig = { model: { provider: "rehearsal", deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
const wake = (...names: string[]) => step(text(JSON.stringify({ wake: names })));
const held = (gate: Gate, ...names: string[]) => step(waitAt(gate), text(JSON.stringify({ wake: names })));

const asked = (script: Script): ScriptedModel => {
  const model = scriptedModel(script);
  restore.push(installModel(model));
  return model;
};

/** Two people and two agents in a space with a router. */
const stage = async (router: RouterConfig = config, wakePolicy: "addressed" | "every_message" = "addressed") => {
  const [ann, bob] = [entity("human", "Ann"), entity("human", "Bob")];
  const [robo, hal] = [entity("agent", "Robo"), entity("agent", "Hal")];
  const home = await house([ann, bob, robo, hal], { wakePolicy, router });
  const post = async (words: string, who = ann) => unwrap(await home.rpc.post(home.as(who), { text: words })).message;
  return { ann, bob, robo, hal, home, post };
};

/** What an agent took, and why: "text: source". */
const sources = (agent: EntityRef): string[] =>
  deliveredTo(agent).flatMap(({ messages }) => messages.map((one) => `${one.message.text}: ${one.triggerSource}`));

const decided = (home: House, messageId: string) =>
  vi.waitFor(async () => {
    const routing = unwrap(await home.rpc.routing(home.key, messageId));
    expect(routing.outcome).not.toBe("pending");
    return routing;
  });

const rows = (home: House, query: string) =>
  runInDurableObject(home.stub, (_, { storage }) => storage.sql.exec(query).toArray());

/** The `message.routed` events of the log, each the only one of its message. */
const events = async (home: House) =>
  (await rows(home, "SELECT frame FROM log WHERE type = 'message.routed' ORDER BY seq")).map(({ frame }) =>
    JSON.parse(String(frame)),
  );

const spent = async (home: House): Promise<unknown[]> =>
  (await rows(home, "SELECT tokens FROM router_ledger")).map(({ tokens }) => tokens);

/** Lets time pass up to the object's alarm, and rings it. */
const ring = async (home: House, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(home.stub);
};

/** How many messages wait for another ask. */
const waiting = async (home: House): Promise<number> =>
  (await rows(home, "SELECT key FROM jobs WHERE kind = 'route' AND attempts = 0")).length;

/** Once no ask is under way: when the next one is due, or undefined where everything is decided. */
const rest = (home: House): Promise<number | undefined> =>
  vi.waitFor(() =>
    runInDurableObject(home.stub, (_, { storage }) => {
      const jobs = storage.sql.exec("SELECT attempts, due_at FROM jobs WHERE kind = 'route'").toArray();
      expect(jobs.every(({ attempts }) => attempts === 0)).toBe(true);
      return jobs.length === 0 ? undefined : Math.min(...jobs.map(({ due_at }) => Number(due_at)));
    }),
  );

test("those whom the router chooses wake, the others only read, and the space says so", async () => {
  const model = asked([wake("Robo")]);
  const { ann, robo, hal, home, post } = await stage();
  const socket = await listen(home, home.as(ann));
  const { id: messageId } = await post("who knows?");
  await vi.waitFor(() =>
    expect([sources(robo), sources(hal)]).toEqual([["who knows?: proactive_router"], ["who knows?: none"]]),
  );
  await socket.until("message.routed");
  expect(socket.of("message.routed")).toEqual([
    { type: "message.routed", cursor: 7, messageId, outcome: "woke", agents: [robo.id] },
  ]);
  expect(await decided(home, messageId)).toMatchObject({ outcome: "woke", agents: [robo.id], messageId });
  expect(model.calls).toHaveLength(1);
});

test("the post is answered and shown before the router has decided; agents wait for it", async () => {
  const gate = createGate();
  asked([held(gate, "Hal")]);
  const { ann, bob, robo, hal, home, post } = await stage();
  const socket = await listen(home, home.as(bob));
  const { id } = await post("anyone?", ann);
  await socket.until("space.message");
  await gate.reached;
  expect(unwrap(await home.rpc.routing(home.as(bob), id))).toEqual({ messageId: id, outcome: "pending", agents: [] });
  expect([sources(robo), sources(hal)]).toEqual([[], []]);
  gate.open();
  await vi.waitFor(() =>
    expect([sources(robo), sources(hal)]).toEqual([["anyone?: none"], ["anyone?: proactive_router"]]),
  );
});

test("the router reads the newest messages and the agents, and no more", async () => {
  const model = asked(() => wake());
  const { ann, hal, robo, home, post } = await stage();
  for (let index = 0; index < maxRouterMessages + 5; index += 1)
    await decided(home, (await post(`message ${index};`)).id);
  const prompt = JSON.stringify(model.calls.at(-1)?.prompt);
  expect(prompt).toContain(robo.id);
  expect(prompt).toContain(hal.id);
  expect(prompt).not.toContain(ann.id);
  expect(prompt).not.toContain("message 4;");
  expect(prompt).toContain("message 5;");
  expect(prompt).toContain("message 24;");
});

test("mentions, pairs, spaces where all wake, services and agents ask no router", async () => {
  const model = asked([]);
  const { robo, hal, home, post } = await stage();
  const bot = entity("service", "CI");
  unwrap(await home.rpc.addMember(home.key, bot));
  const mention = await post("@Hal hello");
  await post("the build broke", bot);
  unwrap(await home.rpc.append(said(home, robo, "I am here")));
  await vi.waitFor(() =>
    expect(sources(hal)).toEqual(["@Hal hello: mention", "the build broke: none", "I am here: none"]),
  );
  expect(await home.rpc.routing(home.key, mention.id)).toMatchObject({ problem: { code: "not_found" } });

  const open = await stage(config, "every_message");
  await open.post("hello");
  await vi.waitFor(() => expect(sources(open.hal)).toEqual(["hello: every_message"]));

  const [cyd, max] = [entity("human", "Cyd"), entity("agent", "Max")];
  const pair = await house([cyd, max], { wakePolicy: "addressed", router: config });
  unwrap(await pair.rpc.post(pair.as(cyd), { text: "hello" }));
  await vi.waitFor(() => expect(sources(max)).toEqual(["hello: auto"]));
  const people = await house([cyd, entity("human", "Dan"), entity("human", "Eve")], {
    wakePolicy: "addressed",
    router: config,
  });
  unwrap(await people.rpc.post(people.as(cyd), { text: "hello" }));
  expect(await events(people)).toEqual([]);
  expect(model.calls).toEqual([]);
});

test.each([
  ["refuses", [refusal(apiError(401))], "model_rejected"],
  ["talks nonsense", [step(text("I would wake Robo and Hal."))], "model_nonsense"],
  ["never stops", [step(text(...Array.from({ length: 20 }, () => "x".repeat(1000))))], "model_nonsense"],
])("[R4] a router whose model %s wakes nobody, and says so", async (_, script, code) => {
  asked(script);
  const { robo, hal, home, post } = await stage();
  const { id: messageId } = await post("hello?");
  await vi.waitFor(() => expect([sources(robo), sources(hal)]).toEqual([["hello?: none"], ["hello?: none"]]));
  const error = { code, message: expect.stringMatching(/./) };
  expect(await decided(home, messageId)).toMatchObject({ outcome: "failed", agents: [], error });
  expect(await events(home)).toMatchObject([{ messageId, outcome: "failed", agents: [], error }]);
});

test("[L1] [C7] a quote in the refusal of a router's provider is told to nobody, kept nowhere", async () => {
  const words = "the quinces of the old orchard";
  asked([refusal(apiError(400, { responseBody: JSON.stringify({ error: `unsafe: I like ${words}` }) }))]);
  const { home, post, ann } = await stage();
  const { id: messageId } = await post(`I like ${words}`);
  const { error } = await decided(home, messageId);
  unwrap(await home.rpc.deleteMessage(home.as(ann), messageId));
  await vi.waitFor(async () => expect(await rowsWith(home.stub, words)).toEqual([]));
  expect(error?.message).toBe("The model's provider refused the request (HTTP 400).");
});

test.each([
  ["is not there", refusal(apiError(503)), 1000],
  ["breaks off", step(text('{"wake": ["Ro'), cutStream()), 1000],
  ["is too busy", refusal(apiError(429, { responseHeaders: { "retry-after": "30" } })), 30_000],
])("[R4] a router whose model %s is asked again after a rest; nobody is told before", async (_, fault, restMs) => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  const model = asked([fault, wake("Robo")]);
  const { robo, hal, home, post } = await stage();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const { id } = await post("hello?");
  await rest(home);
  await ring(home, restMs - 1);
  expect(model.calls).toHaveLength(1);
  expect(unwrap(await home.rpc.routing(home.key, id)).outcome).toBe("pending");
  await ring(home, 1);
  expect(await decided(home, id)).toMatchObject({ outcome: "woke", agents: [robo.id] });
  await vi.waitFor(() =>
    expect([sources(robo), sources(hal)]).toEqual([["hello?: proactive_router"], ["hello?: none"]]),
  );
  expect(model.calls).toHaveLength(2);
  expect(await events(home)).toHaveLength(1);
});

test("[R4] a message that waits out a fault is asked about at once when another ask is answered", async () => {
  const [first, second] = [createGate(), createGate()];
  const fault = refusal(apiError(429, { responseHeaders: { "retry-after": "30" } }));
  const faulty = () => first.opened.then(() => fault);
  const model = asked((_, index) => [faulty(), held(second, "Hal")][index] ?? wake("Robo"));
  const { robo, home, post } = await stage();
  for (const words of ["one", "two"]) await post(words);
  await model.called(2);
  first.open();
  await vi.waitFor(async () => expect(await waiting(home)).toBe(1));
  await post("three");
  second.open();
  const told = ["one: proactive_router", "two: none", "three: proactive_router"];
  await vi.waitFor(() => expect(sources(robo)).toEqual(told));
});

test("[R4] [R1] a space that stops while its router's model rests asks again by its timer", async () => {
  const model = asked([refusal(apiError(503)), wake("Robo")]);
  const { robo, home, post } = await stage();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  await post("hello?");
  await rest(home);
  await evictDurableObject(home.stub);
  await ring(home, 1501);
  await vi.waitFor(() => expect(sources(robo)).toEqual(["hello?: proactive_router"]));
  expect(model.calls).toHaveLength(2);
});

test("[R4] a model that stays down is given up after routerRetryMs; later messages do not wait", async () => {
  const model = asked(() => refusal(apiError(503)));
  const { robo, home, post } = await stage();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const begunAt = Date.now();
  const { id } = await post("one");
  for (let dueAt = await rest(home); dueAt !== undefined; dueAt = await rest(home))
    await ring(home, dueAt - Date.now());
  expect(await decided(home, id)).toMatchObject({ outcome: "failed", error: { code: "model_unavailable" } });
  expect(Date.now() - begunAt).toBeLessThanOrEqual(routerRetryMs);
  const asks = model.calls.length;
  expect(asks).toBeGreaterThan(3);
  expect(await decided(home, (await post("two")).id)).toMatchObject({ outcome: "failed" });
  expect(model.calls).toHaveLength(asks + 1);
  await vi.waitFor(() => expect(sources(robo)).toEqual(["one: none", "two: none"]));
});

test("[R4] a router whose model never answers is given up, and holds nobody up any longer", async () => {
  const wait = globalThis.setTimeout;
  // The router's time passes at once; all other timers are as they are.
  const hurried = (handler: (...given: unknown[]) => void, delay?: number, ...given: unknown[]) =>
    wait(handler, delay === routerTimeoutMs ? 50 : delay, ...given);
  const spy = vi.spyOn(globalThis, "setTimeout").mockImplementation(hurried as typeof setTimeout);
  restore.push(() => spy.mockRestore());
  asked(() => new Promise(() => undefined));
  const { robo, home, post } = await stage();
  const { id } = await post("hello?");
  await post("@Robo you then");
  await vi.waitFor(() => expect(sources(robo)).toEqual(["hello?: none", "@Robo you then: mention"]));
  expect(await decided(home, id)).toMatchObject({ outcome: "failed", error: { code: "model_stalled" } });
});

test("[B2] the router's tokens a day are bounded: a call that does not fit is not made", async () => {
  const model = asked([{ ...wake("Robo"), usage: { inputTokens: 1400, outputTokens: 100 } }]);
  const { robo, home, post } = await stage({ ...config, maxTokensPerDay: 2000 });
  await decided(home, (await post("one")).id);
  expect(await spent(home)).toEqual([1500]);
  const second = await post("two");
  expect(await decided(home, second.id)).toMatchObject({ outcome: "failed", error: { code: "budget_exhausted" } });
  await vi.waitFor(() => expect(sources(robo)).toEqual(["one: proactive_router", "two: none"]));
  expect(model.calls).toHaveLength(1);
});

test("[B2] a call is billed as told, else by estimate, and not at all where it was refused", async () => {
  asked([
    { ...wake(), usage: null },
    refusal(apiError(400)),
    step(text('{"wake": []}'), cutStream()),
    { ...wake(), usage: null },
  ]);
  const { home, post } = await stage();
  await decided(home, (await post("one")).id);
  const [estimated = 0] = (await spent(home)).map(Number);
  expect(estimated).toBeGreaterThan(100);
  expect(estimated).toBeLessThan(1000);
  await decided(home, (await post("two")).id);
  expect(await spent(home)).toEqual([estimated]);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const { id } = await post("three");
  await rest(home);
  // Nobody knows what the call that broke off was billed: what was reserved stays.
  expect(Number((await spent(home))[0])).toBeGreaterThan(estimated + 1000);
  await ring(home, 1501);
  expect(await decided(home, id)).toMatchObject({ outcome: "nobody" });
});

test("[B2] an answer that a provider says it billed nothing for is estimated", async () => {
  asked([{ ...wake(), usage: { inputTokens: 50, outputTokens: 0 } }]);
  const { home, post } = await stage();
  await decided(home, (await post("one")).id);
  const [billed = 0] = (await spent(home)).map(Number);
  expect(billed).toBeGreaterThan(50);
  expect(billed).toBeLessThan(100);
});

test("[S3] a router whose secret is missing wakes nobody, and says which it is", async () => {
  const model = {
    provider: "openai-compatible",
    name: "m",
    baseUrl: "https://m.example/v1",
    apiKeySecret: "M_KEY",
  } as const;
  const { home, post } = await stage({ ...config, model });
  const { workspaceId: id } = home;
  unwrap(await env.WORKSPACE.getByName(id).create({ id, name: "W", keyId: ids.mint("key"), keyHash: id }));
  const routing = await decided(home, (await post("hello?")).id);
  expect(routing).toMatchObject({ outcome: "failed", error: { code: "model_misconfigured" } });
  expect(routing.error?.message).toContain("M_KEY");
});

/** A space whose router's model is given a secret. `keys`: what it was given. */
const withSecret = async () => {
  const keys: (string | undefined)[] = [];
  const before = providers["openai-compatible"];
  providers["openai-compatible"] = async ({ apiKey }) => {
    keys.push(apiKey);
    return scriptedModel([wake("Robo")]);
  };
  restore.push(() => {
    providers["openai-compatible"] = before;
  });
  const model = {
    provider: "openai-compatible",
    name: "m",
    baseUrl: "https://m.example/",
    apiKeySecret: "KEY",
  } as const;
  const staged = await stage({ ...config, model });
  const id = staged.home.workspaceId;
  const workspace = env.WORKSPACE.getByName(id);
  unwrap(await workspace.create({ id, name: "W", keyId: ids.mint("key"), keyHash: id }));
  unwrap(await workspace.putSecret("KEY", await seal(env, id, "KEY", "sk-hunter2")));
  return { ...staged, workspace, keys };
};

test("[C19] [L9] a confidential space's router is on record with the day, once that is over", async () => {
  const { home, post, workspace } = await withSecret();
  unwrap(await home.rpc.update(home.key, { confidential: true }));
  const { id, createdAt } = await post("hello?");
  await decided(home, id);
  unwrap(await home.rpc.deleteMessage(home.key, id));
  const noted = async () => unwrap(await workspace.audit({ limit: 9, actor: home.space.id })).items;
  const deleted = async () => unwrap(await workspace.audit({ limit: 9, action: "message.deleted" })).items;
  await vi.waitFor(async () => expect(await deleted()).toHaveLength(1));
  // Its place among the entries of before and after would tell when somebody spoke.
  expect(await noted()).toEqual([]);
  await ring(home, dayMs);
  await vi.waitFor(async () =>
    expect(await noted()).toMatchObject([{ action: "secret.used", at: `${createdAt.slice(0, 10)}T00:00:00.000Z` }]),
  );
  // Admins read the log. Where the router points, members alone are shown.
  expect(await noted()).toMatchObject([{ target: "KEY", detail: { kind: "router" } }]);
  expect(JSON.stringify(await noted())).not.toContain("m.example");
});

test("[S3] [L9] a router's model gets the secret that it names, on record, and shows it nowhere", async () => {
  const { robo, home, post, workspace, keys } = await withSecret();
  await decided(home, (await post("hello?")).id);
  expect(keys).toEqual(["sk-hunter2"]);
  await vi.waitFor(() => expect(sources(robo)).toEqual(["hello?: proactive_router"]));
  expect(JSON.stringify(unwrap(await home.rpc.describe(home.key)))).not.toContain("hunter2");
  await vi.waitFor(async () => {
    const noted = unwrap(await workspace.audit({ limit: 9, action: "secret.used" })).items;
    expect(noted).toMatchObject([{ actor: { id: home.space.id }, target: "KEY", detail: { host: "m.example" } }]);
    expect(JSON.stringify(noted)).not.toContain("hunter2");
  });
});

test("[D2] agents get everything in the log's order, however long the router takes over what", async () => {
  const [first, second] = [createGate(), createGate()];
  asked([held(first, "Robo"), held(second, "Hal")]);
  const { robo, hal, home, post } = await stage();
  await post("one");
  await first.reached;
  await post("two");
  await second.reached;
  await post("@Hal three");
  unwrap(await home.rpc.append(said(home, robo, "four")));
  second.open();
  await vi.waitFor(async () => expect(await events(home)).toHaveLength(1));
  expect([sources(robo), sources(hal)]).toEqual([[], []]);
  first.open();
  await vi.waitFor(() =>
    expect(sources(hal)).toEqual(["one: none", "two: proactive_router", "@Hal three: mention", "four: none"]),
  );
  expect(sources(robo)).toEqual(["one: proactive_router", "two: none", "@Hal three: none"]);
});

test("[D2] who leaves or comes while the router decides gets what was said while it was in", async () => {
  const gate = createGate();
  asked([held(gate, "Robo", "Hal")]);
  const { robo, hal, home, post } = await stage();
  const late = entity("agent", "Late");
  await post("one");
  await gate.reached;
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  unwrap(await home.rpc.addMember(home.key, late));
  unwrap(await home.rpc.removeMember(home.key, late.id));
  unwrap(await home.rpc.addMember(home.key, late));
  await post("@Late two");
  gate.open();
  await vi.waitFor(() => expect(sources(hal)).toEqual(["one: proactive_router", "@Late two: none"]));
  await vi.waitFor(() => expect(sources(late)).toEqual(["@Late two: mention"]));
  expect(sources(robo)).toEqual(["one: proactive_router"]);
  expect(deliveredTo(robo).at(-1)).toMatchObject({ left: true });
});

test("[R1] [D2] a crash before the decision is stored has the router asked again; one wake", async () => {
  const model = asked(() => wake("Robo"));
  const { robo, hal, home, post } = await stage();
  const crashed = armFault("space.before-decision");
  post("do not lose me").catch(() => undefined);
  await crashed;
  expect(sources(robo)).toEqual([]);
  await ring(home, 25_001);
  await vi.waitFor(() => expect(takenBy(robo)).toEqual(["do not lose me"]));
  await vi.waitFor(() => expect(sources(hal)).toEqual(["do not lose me: none"]));
  expect(sources(robo)).toEqual(["do not lose me: proactive_router"]);
  expect(await events(home)).toHaveLength(1);
  expect(model.calls).toHaveLength(2);
});

test("[D2] a crash between decision and delivery delivers as decided, and asks nobody again", async () => {
  const gate = createGate();
  const model = asked([held(gate, "Robo")]);
  const { robo, hal, home, post } = await stage();
  await post("once");
  await gate.reached;
  const crashed = armFault("space.after-append");
  gate.open();
  await crashed;
  expect([sources(robo), sources(hal)]).toEqual([[], []]);
  await ring(home, 25_001);
  await vi.waitFor(() => expect([sources(robo), sources(hal)]).toEqual([["once: proactive_router"], ["once: none"]]));
  expect(await events(home)).toMatchObject([{ outcome: "woke", agents: [robo.id] }]);
  expect(model.calls).toHaveLength(1);
});

test("[R1] a router that crashes its space again and again is given up, and says so", async () => {
  asked(() => wake("Robo"));
  const { robo, home, post } = await stage();
  const first = armFault("space.before-decision");
  post("poison").catch(() => undefined);
  await first;
  const second = armFault("space.before-decision");
  await ring(home, 25_001).catch(() => undefined);
  await second;
  await ring(home, 25_001);
  await vi.waitFor(() => expect(sources(robo)).toEqual(["poison: none"]));
  expect(await events(home)).toMatchObject([{ outcome: "failed", error: { code: "interrupted" } }]);
});

test("a router that is edited decides by its new settings, one that is removed is asked no more", async () => {
  const model = asked(() => wake("Robo"));
  const { robo, home, post } = await stage();
  await decided(home, (await post("one")).id);
  const edited = unwrap(await home.rpc.update(home.key, { router: { ...config, instructions: "Only for tea." } }));
  expect(edited.router?.instructions).toBe("Only for tea.");
  await decided(home, (await post("two")).id);
  expect(JSON.stringify(model.calls.map(({ prompt }) => prompt[0]))).toMatch(/Only for tea/);
  expect(JSON.stringify(model.calls[0]?.prompt[0])).not.toContain("Only for tea");
  expect(unwrap(await home.rpc.update(home.key, { router: null })).router).toBeUndefined();
  await post("three");
  await vi.waitFor(() =>
    expect(sources(robo)).toEqual(["one: proactive_router", "two: proactive_router", "three: none"]),
  );
  expect(model.calls).toHaveLength(2);
});

test("[S1] who runs a space without the workspace's rights sets no router", async () => {
  const ann = entity("human", "Ann");
  const home = await house([ann], { createdBy: ann });
  const refused = { ok: false, problem: { code: "forbidden" } };
  expect(await home.rpc.update(home.as(ann), { router: config })).toMatchObject(refused);
  expect(await home.rpc.update(home.as(ann), { router: null })).toMatchObject(refused);
  expect(unwrap(await home.rpc.update(home.as(ann, true), { router: config })).router).toEqual(config);
  expect(unwrap(await home.rpc.update(home.as(ann), { name: "Hall" })).router).toEqual(config);
});

test("[B3] [D2] the router is asked maxRouterAsks at a time; other messages wait in order", async () => {
  const gates = Array.from({ length: maxRouterAsks + 3 }, createGate);
  const model = asked((_, index) => {
    const gate = gates[index];
    if (!gate) throw new Error("asked too often");
    return held(gate, "Robo");
  });
  const { robo, home, post } = await stage();
  const texts = gates.map((_, index) => `message ${index}`);
  const messages = [];
  for (const each of texts) messages.push(await post(each));
  await model.called(maxRouterAsks);
  await post("@Robo and you");
  expect(model.calls).toHaveLength(maxRouterAsks);
  gates[7]?.open();
  await model.called(maxRouterAsks + 1);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain(`message ${maxRouterAsks}\\`);
  expect(model.calls).toHaveLength(maxRouterAsks + 1);
  for (const gate of gates) gate.open();
  for (const { id } of messages) expect(await decided(home, id)).toMatchObject({ outcome: "woke" });
  const all = [...texts.map((each) => `${each}: proactive_router`), "@Robo and you: mention"];
  await vi.waitFor(() => expect(sources(robo)).toEqual(all));
});

test("[B3] past maxRouterHeld undecided messages the router is not asked about another one", async () => {
  const gate = createGate();
  const model = asked(() => held(gate, "Robo"));
  const { ann, home, post } = await stage();
  for (let index = 0; index < maxRouterHeld; index += 1) {
    unwrap(await home.rpc.post(home.as(ann), { text: `message ${index}` }));
  }
  const over = await decided(home, (await post("one more")).id);
  expect(over).toMatchObject({ outcome: "failed", error: { code: "limit_reached" } });
  expect(over.error?.message).toContain("maxRouterHeld");
  gate.open();
  await vi.waitFor(async () => expect(await events(home)).toHaveLength(maxRouterHeld + 1), 15_000);
  expect(model.calls).toHaveLength(maxRouterHeld);
});

test("[D2] a space that is deleted while its router decides tells its agents all, and ends", async () => {
  const gate = createGate();
  asked([held(gate, "Robo")]);
  const { robo, home, post } = await stage();
  await post("last words");
  await gate.reached;
  unwrap(await home.rpc.remove(home.key));
  await vi.waitFor(() => expect(deliveredTo(robo).at(-1)).toMatchObject({ left: true }));
  expect(sources(robo)).toEqual(["last words: none"]);
  gate.open();
  const kept = () => rows(home, "SELECT (SELECT count(*) FROM log) + (SELECT count(*) FROM decisions) AS kept");
  await vi.waitFor(async () => expect(await kept()).toEqual([{ kept: 0 }]));
});

test("[D2] an agent that is out of reach gets its wake later, as it was decided", async () => {
  asked([wake("Robo")]);
  const { robo, home, post } = await stage();
  answers.set(robo.id, async () => refuse("unavailable", "not now"));
  await decided(home, (await post("one")).id);
  await vi.waitFor(() => expect(deliveredTo(robo).length).toBeGreaterThan(0));
  answers.set(robo.id, async ({ cursor }) => ok({ cursor }));
  await ring(home, 60_000);
  await vi.waitFor(() => expect(sources(robo).at(-1)).toBe("one: proactive_router"));
});

test("[L6] a router rests while its workspace is suspended, and then decides", async () => {
  const model = asked([refusal(apiError(503)), wake("Robo")]);
  const { home, robo, hal, post } = await stage();
  const { id } = await post("Who knows?");
  await vi.waitFor(() => expect(model.calls).toHaveLength(1));
  unwrap(await home.rpc.setSuspended(home.workspaceId, true));
  for (let hours = 0; hours < 3; hours += 1) await ring(home, 3_600_000);
  expect(model.calls).toHaveLength(1);
  unwrap(await home.rpc.setSuspended(home.workspaceId, false));
  expect(await decided(home, id)).toMatchObject({ outcome: "woke" });
  await vi.waitFor(() => expect([sources(robo).length, sources(hal).length]).toEqual([1, 1]));
});
