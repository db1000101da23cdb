import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/agent/agent.ts";
import { unseal } from "../../src/auth/sealing.ts";
import { AgentListItem } from "../../src/protocol/agent.ts";
import { InboxItem, Run } from "../../src/protocol/run.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, expectOk, type House, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

const list = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), nextCursor: z.string().nullable() });
/** What an agent's own object holds of the secrets. */
const secretsOf = (agentId: string): Promise<Record<string, string>> =>
  runInDurableObject(env.AGENT.getByName(agentId) as unknown as DurableObjectStub, (_, { storage }) =>
    z
      .record(z.string(), z.string())
      .parse(JSON.parse(String(storage.sql.exec("SELECT secrets FROM agent").one().secrets))),
  );

const create = (house: House, config: Record<string, unknown>) =>
  call("/v1/agents", { bearer: house.secretKey, body: config });

test("an agent is made, listed, changed and deleted, under a name of its own", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const agent = await house.agent({ name: "Analyst", instructions: "Count." });
  const agents = () => expectOk(list(AgentListItem), call("/v1/agents", { bearer }));
  expect((await agents()).items).toMatchObject([{ id: agent.id, name: "Analyst" }]);
  expect(await problemIn(await create(house, { name: "ANALYST" }))).toMatchObject({ code: "name_taken" });
  const other = await house.agent({ name: "Designer" });

  const patch = (id: string, body: unknown) => call(`/v1/agents/${id}`, { method: "PATCH", bearer, body });
  expect(await problemIn(await patch(other.id, { name: "analyst" }))).toMatchObject({ code: "name_taken" });
  const changed = await patch(agent.id, { name: "Counter", limits: { maxSteps: 3 } });
  expect(await changed.json()).toMatchObject({
    agent: { config: { name: "Counter", instructions: "Count.", limits: { maxSteps: 3, maxWakesPerRoot: 6 } } },
  });
  expect((await agents()).items.map(({ name }) => name)).toEqual(["Counter", "Designer"]);
  expect((await call(`/v1/entities/${agent.id}`, { method: "DELETE", bearer })).status).toBe(409);

  expect((await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer })).status).toBe(204);
  expect((await call(`/v1/agents/${agent.id}`, { method: "DELETE", bearer })).status).toBe(404);
  expect((await call(`/v1/agents/${agent.id}`, { bearer })).status).toBe(404);
  expect((await create(house, { name: "Counter" })).status).toBe(201);
});

test("[R5] an agent whose deletion is cut off in the middle ends all the same", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const agent = await house.agent({ name: "Analyst", heartbeat: { everyMinutes: 60 } });
  // As far as the route comes that is cut off.
  unwrap(await env.WORKSPACE.getByName(house.workspaceId).removeEntity(agent.id));
  const status = async () => (await call(`/v1/agents/${agent.id}`, { bearer })).status;
  await vi.waitFor(async () => expect(await status()).toBe(404), { timeout: 5000 });
});

test("[R5] an agent that cannot be reached is deleted for its caller, and ended once it can", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const { id } = await house.agent({ name: "Analyst" });
  const stub = env.AGENT.getByName(id);
  const written = [vi.spyOn(console, "warn"), vi.spyOn(console, "error")];
  const silent = written.map((spy) => spy.mockImplementation(() => undefined));
  const cut = vi.spyOn(Agent.prototype, "remove").mockRejectedValue(new Error("Network connection lost."));
  onTestFinished(() => {
    for (const spy of [...silent, cut]) spy.mockRestore();
    vi.useRealTimers();
  });
  const remove = () => call(`/v1/agents/${id}`, { method: "DELETE", bearer });
  expect((await remove()).status).toBe(204);
  expect((await remove()).status).toBe(404);
  // Its workspace did not reach it either.
  await vi.waitFor(() => expect(cut).toHaveBeenCalledTimes(2));
  expect((await stub.describe(house.workspaceId)).ok).toBe(true);
  cut.mockRestore();
  await vi.waitFor(async () => {
    vi.setSystemTime(Date.now() + 60_000);
    await runDurableObjectAlarm(env.WORKSPACE.getByName(house.workspaceId) as unknown as DurableObjectStub);
    expect(await stub.describe(house.workspaceId)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  });
});

test("[S4] unusable tools are refused with their path, create no agent and reserve no name", async () => {
  const house = await openHouse();
  const schema = { type: "object", properties: { id: { type: "string" } } };
  const tool = { name: "ask", description: "Asks", executionType: "gateway", inputSchema: schema };
  const body = { name: "Analyst", tools: [{ ...tool, execution: { url: "https://{{input.id}}/" } }] };
  const refused = await call("/v1/agents", {
    bearer: house.secretKey,
    body,
    headers: { "idempotency-key": "tools-1" },
  });
  expect(refused.status).toBe(400);
  expect(await problemIn(refused)).toMatchObject({
    code: "invalid_request",
    issues: [{ path: "tools.0.execution.url", message: expect.stringContaining("host") }],
  });
  const twice = { ...tool, execution: { url: "https://example.com/{{input.id}}" } };
  expect(await problemIn(await create(house, { name: "Analyst", tools: [twice, twice] }))).toMatchObject({
    issues: [{ path: "tools.1.name" }],
  });
  expect(await problemIn(await create(house, { name: "Analyst", tools: [{ ...twice, name: "a__b" }] }))).toMatchObject({
    issues: [{ path: "tools.0.name" }],
  });
  const looking = { ...schema, properties: { id: { type: "string", pattern: "^(?=a)" } } };
  const withPattern = { name: "Analyst", tools: [{ ...twice, inputSchema: looking }] };
  expect(await problemIn(await create(house, withPattern))).toMatchObject({
    issues: [{ path: "tools.0.inputSchema.properties.id.pattern", message: expect.stringContaining("RE2") }],
  });
  expect((await create(house, { name: "Analyst", tools: [twice] })).status).toBe(201);
});

test("[S4] a change that leaves something invalid is refused whole, the name too", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const agent = await house.agent({ name: "Analyst" });
  const body = { name: "Renamed", limits: { maxSteps: 1000 } };
  const refused = await call(`/v1/agents/${agent.id}`, { method: "PATCH", bearer, body });
  expect(await problemIn(refused)).toMatchObject({ code: "invalid_request" });
  expect(await (await call(`/v1/agents/${agent.id}`, { bearer })).json()).toMatchObject({
    agent: { config: { name: "Analyst", limits: { maxSteps: 20 } } },
  });
  expect(await (await call(`/v1/entities/${agent.id}`, { bearer })).json()).toMatchObject({
    entity: { name: "Analyst" },
  });
});

test("[S4] a tool whose approver is no person of the workspace is refused with its path", async () => {
  const house = await openHouse();
  const [mona, robot] = [await house.person("Mona"), await house.agent({ name: "Robot" })];
  const stranger = await (await openHouse()).person("Stranger");
  const tool = { name: "go", description: "Goes", executionType: "internal" };
  const asking = (...approvers: string[]) => ({ tools: [{ ...tool, approval: { approvers } }] });
  expect((await create(house, { name: "Asker", ...asking(mona.id) })).status).toBe(201);
  expect(await problemIn(await create(house, { name: "Other", ...asking(mona.id, robot.id) }))).toMatchObject({
    code: "invalid_request",
    issues: [{ path: "tools.0.approval.approvers.1", message: "must be a person" }],
  });
  expect(await problemIn(await create(house, { name: "Other", ...asking(stranger.id) }))).toMatchObject({
    code: "unknown_reference",
  });
  const question = { ...tool, executionType: "space", answer: { by: [robot.id] } };
  const patch = call(`/v1/agents/${robot.id}`, {
    method: "PATCH",
    bearer: house.secretKey,
    body: { tools: [question] },
  });
  expect(await problemIn(await patch)).toMatchObject({ issues: [{ path: "tools.0.answer.by.0" }] });
});

test("[S3] a model's address, secret and alias are checked before anything is made", async () => {
  const house = await openHouse();
  const model = (fields: Record<string, unknown>) =>
    create(house, { name: "Analyst", model: { provider: "openai-compatible", name: "m", ...fields } });
  for (const baseUrl of [
    "https://10.0.0.1/v1",
    "https://user:pw@api.example.com",
    "http://api.example.com",
    "https://a.internal",
  ]) {
    expect(await problemIn(await model({ baseUrl })), baseUrl).toMatchObject({
      code: "invalid_request",
      issues: [{ path: "model.baseUrl" }],
    });
  }
  const baseUrl = "https://api.example.com/v1";
  expect(await problemIn(await model({ baseUrl, apiKeySecret: "MISSING" }))).toMatchObject({
    code: "unknown_reference",
  });
  expect(await problemIn(await create(house, { name: "Analyst", model: { alias: "none" } }))).toMatchObject({
    code: "unknown_reference",
  });
  await call("/v1/workspace/secrets/MISSING", { method: "PUT", bearer: house.secretKey, body: { value: "s" } });
  expect((await model({ baseUrl, apiKeySecret: "MISSING" })).status).toBe(201);
  expect(
    (
      await create(house, {
        name: "Local",
        model: { provider: "openai-compatible", name: "m", baseUrl: "http://localhost:11434/v1" },
      })
    ).status,
  ).toBe(201);
});

test("[S3] a secret is never read back, and reaches the agents sealed", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const secret = (method: string, name = "KEY") =>
    call(`/v1/workspace/secrets/${name}`, {
      method,
      bearer,
      ...(method === "PUT" ? { body: { value: "hunter2" } } : {}),
    });
  const before = await house.agent({ name: "Before" });
  expect((await secret("PUT")).status).toBe(204);
  const after = await house.agent({ name: "After" });
  const names = await call("/v1/workspace/secrets", { bearer });
  expect(await names.json()).toEqual({ items: [{ name: "KEY", updatedAt: expect.any(String) }], nextCursor: null });

  for (const { id } of [before, after]) {
    await vi.waitFor(async () => {
      const { KEY = "" } = await secretsOf(id);
      expect(KEY).not.toContain("hunter2");
      expect(await unseal(env, house.workspaceId, "KEY", KEY)).toBe("hunter2");
    });
  }
  expect((await secret("DELETE")).status).toBe(204);
  expect((await secret("DELETE")).status).toBe(404);
  await vi.waitFor(async () => expect(await secretsOf(before.id)).toEqual({}));
  expect((await secret("PUT", "not%20a%20label")).status).toBe(400);
});

test("an agent gets a secret that is changed while the agent is created", async () => {
  const house = await openHouse();
  const put = (value: string) =>
    call("/v1/workspace/secrets/KEY", { method: "PUT", bearer: house.secretKey, body: { value } });
  expect((await put("old")).status).toBe(204);
  const gate = createGate();
  const { setSecrets } = Agent.prototype;
  const brought = vi.spyOn(Agent.prototype, "setSecrets").mockImplementationOnce(async function (this: Agent, ...old) {
    gate.reach();
    await gate.opened;
    return setSecrets.apply(this, old);
  });
  onTestFinished(() => brought.mockRestore());
  const making = house.agent({ name: "Analyst" });
  await gate.reached;
  expect((await put("new")).status).toBe(204);
  await vi.waitFor(() => expect(brought.mock.settledResults[1]?.type).toBe("fulfilled"));
  gate.open();
  const { id } = await making;
  const { KEY = "" } = await secretsOf(id);
  expect(await unseal(env, house.workspaceId, "KEY", KEY)).toBe("new");
});

test("a service's event is taken in and shows in the runs that it caused", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const agent = await house.agent({ name: "Analyst" });
  const path = `/v1/agents/${agent.id}`;
  const accepted = await expectOk(
    z.object({ eventId: z.string() }),
    call(`${path}/trigger`, { bearer, body: { serviceName: "jira", payload: { issue: "PROJ-1" } } }),
  );
  const run = await vi.waitFor(async () => {
    const { items } = await expectOk(list(Run), call(`${path}/runs`, { bearer }));
    const [newest] = items;
    if (!newest || newest.status === "running") throw new Error("the run goes on");
    return newest;
  });
  expect(run.trigger).toMatchObject({ type: "service", eventId: accepted.eventId });
  const whole = await expectOk(z.object({ run: Run }), call(`${path}/runs/${run.id}`, { bearer }));
  expect(whole.run.steps[0]?.input?.messages.length).toBeGreaterThan(0);
  expect((await call(`${path}/runs?status=failed`, { bearer })).status).toBe(200);
  expect((await call(`${path}/runs?status=dancing`, { bearer })).status).toBe(400);
  expect(await expectOk(list(InboxItem), call(`${path}/inbox`, { bearer }))).toMatchObject({ items: [] });
  const retry = await call(`${path}/inbox/${accepted.eventId}/retry`, { method: "POST", bearer });
  expect([404, 409]).toContain(retry.status);
});

test("memories and goals are written and deleted over HTTP, and show in the agent's context", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const path = `/v1/agents/${(await house.agent({ name: "Analyst" })).id}`;
  const put = (end: string, body: unknown) => call(`${path}/${end}`, { method: "PUT", bearer, body });
  expect(await (await put("memories/tea", { value: "green" })).json()).toMatchObject({
    memory: { key: "tea", value: "green" },
  });
  expect(await (await put("goals/q4", { description: "Finish" })).json()).toMatchObject({
    goal: { id: "q4", status: "active" },
  });
  expect((await put("goals/new", { status: "completed" })).status).toBe(400);
  expect(await (await call(`${path}/memories`, { bearer })).json()).toMatchObject({
    items: [{ key: "tea" }],
    nextCursor: null,
  });
  const view = await (await call(`${path}/context`, { bearer })).text();
  expect(view).toContain("green");
  for (const end of ["memories/tea", "goals/q4"]) {
    expect((await call(`${path}/${end}`, { method: "DELETE", bearer })).status).toBe(204);
    expect((await call(`${path}/${end}`, { method: "DELETE", bearer })).status).toBe(404);
  }
});

test("[S4] a model that fits no provider is refused with the issues of the nearest one", async () => {
  const house = await openHouse();
  for (const [model, path, message] of [
    [{ provider: "rehearsal", temprature: 1 }, "model", "temprature"],
    [{ provider: "workers-ai", name: "llama" }, "model.name", "@cf/"],
    [
      { provider: "openai-compatible", name: "m", baseUrl: "api.example.com", extra: 1 },
      "model.baseUrl",
      "http(s) URL",
    ],
    [{ alias: "fast", temperature: "hot" }, "model.temperature", "number"],
    [null, "model", "object"],
  ] as const) {
    const { issues } = await problemIn(await create(house, { name: "Analyst", model }));
    expect(issues?.[0], JSON.stringify(model)).toMatchObject({ path, message: expect.stringContaining(message) });
  }
  // A field that is spelled wrongly, not a kind of value that it is not.
  const context = { activity: { entry: 3 } };
  const { detail } = await problemIn(await create(house, { name: "A", model: { provider: "rehearsal" }, context }));
  expect(detail).toContain("context.activity.entries");
  const { id } = await house.agent({ name: "Clock", continuity: "timeline" });
  for (const [changes, path, why] of [
    [context, "context.activity", "entry"],
    [{ maxEvents: 5 }, "context.maxEvents", "belongs to a consciousness"],
  ] as const) {
    const body = { context: changes };
    const refused = await problemIn(await call(`/v1/agents/${id}`, { method: "PATCH", bearer: house.secretKey, body }));
    const told = refused.issues?.map((issue) => `${issue.path} ${issue.message}`).join();
    expect(told).toContain(path);
    expect(told).toContain(why);
  }
  const { issues } = await problemIn(await create(house, { name: "Analyst", model: { provider: "nobody" } }));
  expect(issues?.[0]?.path).toBe("model.provider");
});

test("[S4] a refused change never renames the agent, not even for a moment", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const mona = await house.person("Mona");
  const agent = await house.agent({ name: "Analyst" });
  const space = await house.space("Kitchen", [mona, agent]);
  const eventsOf = (): Promise<unknown[]> =>
    runInDurableObject(env.SPACE.getByName(space.id) as unknown as DurableObjectStub, (_, { storage }) =>
      storage.sql.exec("SELECT frame FROM log").toArray(),
    );
  const before = await eventsOf();
  const body = { name: "Counter", context: { nothing: "like it" } };
  const refused = await call(`/v1/agents/${agent.id}`, { method: "PATCH", bearer, body });
  expect(await problemIn(refused)).toMatchObject({ code: "invalid_request" });
  expect(await eventsOf()).toEqual(before);
});

test("[S4] [K12] a query or a field that is not known is refused with its name and what to do", async () => {
  const house = await openHouse();
  const { id } = await house.agent({ name: "Analyst" });
  const bearer = house.secretKey;
  const told = async (path: string, options = {}) => {
    const { detail, issues } = await problemIn(await call(`/v1/agents/${id}${path}`, { bearer, ...options }));
    expect(issues).toHaveLength(1);
    return detail;
  };
  const unknown = "has unknown fields, leave them out:";
  expect(await told("?foo=secret")).toBe(`The query ${unknown} foo; it may have space.`);
  expect(await told("/blocks?kind=core")).toBe(`The query ${unknown} kind; it may have type, space.`);
  const config = "the config would not be valid with these changes:";
  const maxStep = { method: "PATCH", body: { limits: { maxStep: 3 } } };
  expect(await told("", maxStep)).toBe(`${config} limits ${unknown} maxStep`);
  expect(await told("", { method: "PATCH", body: { nick: "A" } })).toBe(`In the body: it ${unknown} nick.`);
});
