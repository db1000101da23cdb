import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { Run } from "../../src/protocol/run.ts";
import { RegisteredWorkspace, WorkspaceOverview } from "../../src/protocol/workspace.ts";
import { armFault } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { undoLater } from "../agent/fixture.ts";
import { createGate } from "../support/gate.ts";
import { adminKey, type Call, call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { installModel, scriptedModel, step, text, call as toolCall } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

const restore = undoLater();
afterEach(() => {
  vi.useRealTimers();
});

const Overview = z.object({ workspace: WorkspaceOverview });
const List = z.object({ items: z.array(RegisteredWorkspace), nextCursor: z.string().nullable() });

const ask = (house: House, act = "", asked: Call = {}): Promise<Response> =>
  call(`/v1/operator/workspaces/${house.workspaceId}${act}`, { bearer: adminKey, ...asked });

/** The workspace once all its spaces and agents are told. */
const settled = (house: House) =>
  vi.waitFor(async () => {
    const { workspace } = await expectOk(Overview, ask(house));
    expect(workspace.waiting).toBe(0);
    return workspace;
  });

const suspend = async (house: House) => {
  await expectOk(Overview, ask(house, "/suspend", { body: { reason: "Unpaid" } }));
  return settled(house);
};

const resume = async (house: House) => {
  await expectOk(Overview, ask(house, "/resume", { method: "POST" }));
  return settled(house);
};

const listed = async (house: House) => {
  const path = "/v1/operator/workspaces?limit=100";
  const { items } = await expectOk(List, call(path, { bearer: adminKey }));
  return items.find(({ id }) => id === house.workspaceId);
};

const openSocket = async (spaceId: string, bearer: string): Promise<{ closed?: number }> => {
  const path = `/v1/spaces/${spaceId}/stream`;
  const { webSocket } = await call(path, { bearer, headers: { upgrade: "websocket" } });
  if (!webSocket) throw new Error("a socket was expected");
  const seen: { closed?: number } = {};
  webSocket.addEventListener("close", ({ code }) => {
    seen.closed = code;
  });
  webSocket.accept();
  return seen;
};

test("[L6] the operator lists all workspaces, as they are named and stand now, through a crash", async () => {
  const crashed = armFault("workspace.before-tell");
  const house = await openHouse("Registered");
  await crashed;
  await vi.waitFor(async () => expect(await listed(house)).toMatchObject({ name: "Registered" }), { timeout: 10_000 });
  await house.person("Mona");
  await house.service("Jira");
  const robot = await house.agent({ name: "Robo" });
  await house.space("Lab", [robot]);
  await call("/v1/workspace", { method: "PATCH", bearer: house.secretKey, body: { name: "Renamed" } });
  await vi.waitFor(async () => expect(await listed(house)).toMatchObject({ name: "Renamed" }));
  expect((await settled(house)).counts).toEqual({ people: 1, services: 1, agents: 1, spaces: 1, keys: 1 });
  const other = await openHouse("Newer");
  await vi.waitFor(async () => expect(await listed(other)).toBeDefined());
  const first = await expectOk(List, call("/v1/operator/workspaces?limit=1", { bearer: adminKey }));
  expect(first.items).toMatchObject([{ id: other.workspaceId }]);
  const second = `/v1/operator/workspaces?limit=1&cursor=${first.nextCursor}`;
  expect((await expectOk(List, call(second, { bearer: adminKey }))).items).toMatchObject([{ id: house.workspaceId }]);
});

test("[L6] a suspended workspace takes nothing and is read; resumed, it goes on", async () => {
  const house = await openHouse();
  const bearer = house.secretKey;
  const [mona, boss] = [await house.person("Mona"), await house.person("Boss", "admin")];
  const robot = await house.agent({ name: "Robo" });
  const { id: spaceId } = await house.space("Lab", [mona, robot]);
  const { id: messageId } = await house.say(spaceId, mona, "Before");
  const socket = await openSocket(spaceId, mona.token);
  await call(`/v1/agents/${robot.id}/blocks`, { bearer, body: { label: "notes", type: "core" } });
  const hook = await expectOk(
    z.object({ hookId: z.string(), secret: z.string() }),
    call(`/v1/agents/${robot.id}/hooks`, { bearer, body: { name: "monitor", scheme: "header" } }),
  );
  const beforeMs = Date.now();
  expect(await suspend(house)).toMatchObject({ suspended: { reason: "Unpaid" } });
  await vi.waitFor(() => expect(socket.closed).toBe(4503));
  expect(Date.now() - beforeMs).toBeLessThan(2000);

  const messages = `/v1/spaces/${spaceId}/messages`;
  const operation = { operations: [{ op: "append_text", text: "x" }] };
  const refused: [string, Call][] = [
    [messages, { bearer: mona.token, body: { text: "After" } }],
    [messages, { bearer, as: mona.id, body: { text: "After" } }],
    [`${messages}/${messageId}`, { method: "PATCH", bearer: mona.token, body: { text: "Other" } }],
    [`/v1/spaces/${spaceId}/read`, { bearer: mona.token, body: { messageId } }],
    [`/v1/spaces/${spaceId}/stream`, { bearer: mona.token, headers: { upgrade: "websocket" } }],
    [`/v1/spaces/${spaceId}`, { method: "PATCH", bearer, body: { name: "Other" } }],
    [`/v1/spaces/${spaceId}/members`, { bearer, body: { entityId: boss.id } }],
    ["/v1/spaces", { bearer, body: { name: "Another" } }],
    ["/v1/agents", { bearer, body: { name: "Another", model: { provider: "rehearsal" } } }],
    ["/v1/entities", { bearer, body: { type: "human", name: "Another" } }],
    ["/v1/workspace", { method: "PATCH", bearer: boss.token, body: { name: "Other" } }],
    ["/v1/workspace/keys", { bearer, body: {} }],
    ["/v1/workspace/secrets/NAME", { method: "PUT", bearer, body: { value: "x" } }],
    [`/v1/agents/${robot.id}/trigger`, { bearer, body: { serviceName: "jira", payload: 1 } }],
    [`/v1/agents/${robot.id}/blocks/notes/operations`, { bearer, body: operation }],
    [`/v1/agents/${robot.id}/blocks/notes/stream`, { bearer, headers: { upgrade: "websocket" } }],
    [`/v1/hooks/${hook.hookId}`, { headers: { "x-webhook-secret": hook.secret }, body: { event: 1 } }],
  ];
  for (const [path, asked] of refused) {
    const problem = await problemIn(await call(path, asked));
    expect(problem, `${asked.method ?? ""} ${path}`).toMatchObject({ status: 503, code: "suspended" });
    expect(problem.detail).toContain("operator");
  }
  const allowed: [string, Call][] = [
    [messages, { bearer: mona.token }],
    ["/v1/workspace", { bearer: boss.token }],
    ["/v1/workspace/audit", { bearer }],
    [`/v1/agents/${robot.id}`, { bearer }],
    [`${messages}/${messageId}`, { method: "DELETE", bearer: boss.token }],
    [`/v1/entities/${boss.id}`, { method: "DELETE", bearer }],
  ];
  for (const [path, asked] of allowed) expect((await call(path, asked)).status, path).toBeLessThan(300);

  const shown = z.object({ space: z.object({ suspended: z.literal(true).optional() }) });
  const isShown = async () =>
    (await expectOk(shown, call(`/v1/spaces/${spaceId}`, { bearer: mona.token }))).space.suspended;
  expect(await isShown()).toBe(true);
  await resume(house);
  expect(await isShown()).toBeUndefined();
  expect((await house.say(spaceId, mona, "After")).text).toBe("After");
  const actions = z.object({ items: z.array(z.object({ action: z.string(), actor: z.object({ id: z.string() }) })) });
  const noted = await expectOk(actions, call("/v1/workspace/audit?actor=operator", { bearer }));
  expect(noted.items.map(({ action }) => action)).toEqual([
    "workspace.resumed",
    "workspace.suspended",
    "workspace.created",
  ]);
});

test("[L6] a suspension that a crash cuts off comes to every space", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const made = [await house.space("One", [mona]), await house.space("Two", [mona]), await house.space("Three", [mona])];
  await settled(house);
  const crashed = armFault("workspace.before-tell", 1);
  await ask(house, "/suspend", { body: { reason: "Abuse" } }).catch(() => undefined);
  await crashed;
  await vi.waitFor(async () => expect((await settled(house)).suspended).toBeDefined(), { timeout: 15_000 });
  for (const { id } of made) {
    expect((await call(`/v1/spaces/${id}/messages`, { bearer: mona.token, body: { text: "x" } })).status).toBe(503);
  }
});

test("[L6] a run stops at its next step while its workspace is suspended, then goes on", async () => {
  const held = createGate();
  const asked: number[] = [];
  restore.push(
    held.open,
    installModel(
      scriptedModel(async () => {
        asked.push(asked.length);
        if (asked.length > 1) return step(text("Done."));
        held.reach();
        await held.opened;
        return step(toolCall("set_memories", { memories: [{ key: "asked", value: "yes" }] }));
      }),
    ),
  );
  const house = await openHouse();
  const mona = await house.person("Mona");
  const robot = await house.agent({ name: "Robo" });
  const { id: spaceId } = await house.space("Lab", [mona, robot]);
  await house.say(spaceId, mona, "Begin");
  await held.reached;
  await suspend(house);
  held.open();
  const runs = async () =>
    (
      await expectOk(
        z.object({ items: z.array(Run) }),
        call(`/v1/agents/${robot.id}/runs`, { bearer: house.secretKey }),
      )
    ).items;
  await vi.waitFor(async () => {
    const activity = z.object({
      agent: z.object({ activity: z.object({ lastError: z.object({ code: z.string() }) }) }),
    });
    const { agent } = await expectOk(activity, call(`/v1/agents/${robot.id}`, { bearer: house.secretKey }));
    expect(agent.activity.lastError.code).toBe("suspended");
  });
  expect(asked).toHaveLength(1);
  expect(await runs()).toMatchObject([{ status: "running" }]);
  await resume(house);
  await vi.waitFor(async () => expect(await runs()).toMatchObject([{ status: "completed" }]));
  expect(asked).toHaveLength(2);
});

test("[L6] plans of all of an agent's minds wait while it is suspended, and fire once", async () => {
  restore.push(installModel(scriptedModel(() => step(text("Done.")))));
  const house = await openHouse();
  const mona = await house.person("Mona");
  const robot = await house.agent({ name: "Robo" });
  const { id: spaceId } = await house.space("Den", [mona, robot], { confidential: true });
  const bearer = house.secretKey;
  const read = (query: string) => call(`/v1/agents/${robot.id}/runs${query}`, { bearer });
  const runs = async (query: string) => (await expectOk(z.object({ items: z.array(Run) }), read(query))).items;
  const inDen = `?space=${spaceId}`;
  await house.say(spaceId, mona, "Begin");
  await vi.waitFor(async () => expect(await runs(inDen)).toMatchObject([{ status: "completed" }]));
  for (const query of ["", inDen]) {
    const body = { name: "Later", instruction: "Look", runAfter: "2 hours" };
    await expectOk(z.unknown(), call(`/v1/agents/${robot.id}/plans/later${query}`, { method: "PUT", bearer, body }));
  }
  await suspend(house);
  vi.setSystemTime(Date.now() + 3 * 3_600_000);
  const minds = [robot.id, compartmentId(ids, robot.id, spaceId)];
  // The platform's own clock knows nothing of the test's.
  const passAlarms = async (): Promise<void> => {
    for (const id of minds) {
      const stub: unknown = env.AGENT.getByName(id);
      await runDurableObjectAlarm(stub as DurableObjectStub);
    }
  };
  await passAlarms();
  expect([(await runs("")).length, (await runs(inDen)).length]).toEqual([0, 1]);
  await resume(house);
  const ended = async (query: string) => (await runs(query)).map(({ status }) => status);
  await vi.waitFor(async () => {
    await passAlarms();
    expect(await ended("")).toEqual(["completed"]);
    expect(await ended(inDen)).toEqual(["completed", "completed"]);
  });
});

test("[L6] only a suspended workspace is ended, and its spaces and agents with it", async () => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const robot = await house.agent({ name: "Robo" });
  const { id: spaceId } = await house.space("Lab", [mona, robot]);
  await house.say(spaceId, mona, "Soon gone");
  const early = await problemIn(await ask(house, "", { method: "DELETE" }));
  expect(early).toMatchObject({ status: 409, code: "conflict" });
  await suspend(house);
  expect((await ask(house, "", { method: "DELETE" })).status).toBe(202);
  expect(await settled(house)).toMatchObject({
    deletedAt: expect.any(String),
    counts: { agents: 0, spaces: 0 },
  });
  expect(await listed(house)).toMatchObject({ deletedAt: expect.any(String) });
  const found = await env.SPACE.getByName(spaceId).describe({
    kind: "key",
    workspaceId: house.workspaceId,
    keyId: house.keyId,
  });
  expect(found).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(await env.AGENT.getByName(robot.id).describe(house.workspaceId)).toMatchObject({ ok: false });
  expect((await call(`/v1/spaces/${spaceId}/messages`, { bearer: mona.token })).status).toBe(404);
  expect((await ask(house, "/resume", { method: "POST" })).status).toBe(404);
});

test("[L6] what the operator names and does not know is not_found, and a reason is needed", async () => {
  const unknown = ids.mint("wsp");
  for (const [method, act] of [
    ["GET", ""],
    ["POST", "/resume"],
    ["DELETE", ""],
  ] as const) {
    expect((await call(`/v1/operator/workspaces/${unknown}${act}`, { method, bearer: adminKey })).status).toBe(404);
  }
  const house = await openHouse();
  expect((await ask(house, "/suspend", { body: { reason: " " } })).status).toBe(400);
});
