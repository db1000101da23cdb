import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { suspendedLookMs, watchdogMs } from "../../src/agent/bounds.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { SearchQuery } from "../../src/protocol/search.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault } from "../../src/shared/fault.ts";
import { createGate } from "../support/gate.ts";
import { call, installModel, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import { approved, deploy, eachTest, freshPath, outputs, requestsTo, scene, yes } from "./calls/scene.ts";
import { openBoth } from "./compartment.ts";
import { type AgentSettings, ended, inboxOf, openHouse, passTime, rowsIn, runsOf, scripted } from "./fixture.ts";
import { config, network, stage, url } from "./mcp/scene.ts";

/** An agent of a suspended workspace: what it does by itself rests, and goes on where it was. */
eachTest();

const suspend = async (workspaceId: string, agent: EntityRef, suspended = true): Promise<void> => {
  unwrap(await env.AGENT.getByName(agent.id).setSuspended(workspaceId, suspended));
};

/** Lets time pass and all that is due come due, a few times. */
const wait = async (agent: EntityRef): Promise<void> => {
  for (let hours = 0; hours < 3; hours += 1) await passTime(agent, suspendedLookMs);
};

describe.each(["timeline", "consciousness"] as const)("a call of a %s", (continuity) => {
  test.each(["gateway", "external"])(
    "[L6] of kind %s that is approved meanwhile is sent once it is resumed",
    async (kind) => {
      const path = freshPath();
      const secrets = { KEY: `whsec_${btoa("a secret of twenty-four b")}` };
      const external = { executionType: kind, execution: { url: `${inject("remote")}${path}`, secret: "KEY" } };
      const tool = deploy(path, { ...(kind === "external" && external), ...approved({ expiresInMinutes: 1440 }) });
      const { agent, workspaceId, space, model, asked, give, ann } = await scene({
        continuity,
        tools: [tool],
        steps: [],
        secrets,
      });
      const entering = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
      model.push(...entering, step(call("deploy", { to: "prod" })), step(text("Asked.")), step(text("Over.")));
      await asked("deploy");
      await suspend(workspaceId, agent);
      unwrap(await give(ann, "deploy", yes));
      await vi.waitFor(async () =>
        expect(await rowsIn(agent, "select phase from calls")).not.toEqual([{ phase: "asked" }]),
      );
      await wait(agent);
      expect(await requestsTo(path)).toHaveLength(0);
      await suspend(workspaceId, agent, false);
      await passTime(agent, 0);
      await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
      await wait(agent);
      expect(await requestsTo(path)).toHaveLength(1);
    },
  );
});

test("[L6] no MCP server is asked for its list meanwhile, and it is once it is resumed", async () => {
  let asked = 0;
  network({
    [new URL(url).origin]: {
      fetch: () => {
        asked += 1;
        return Promise.reject(new TypeError("down"));
      },
    },
  });
  const { house, nova } = await stage(config());
  await vi.waitFor(async () =>
    expect(await rowsIn(nova, "select failures from mcp_servers")).toEqual([{ failures: 1 }]),
  );
  await suspend(house.workspaceId, nova);
  const before = asked;
  await wait(nova);
  expect(asked).toBe(before);
  await suspend(house.workspaceId, nova, false);
  await passTime(nova, 0);
  await vi.waitFor(() => expect(asked).toBeGreaterThan(before));
});

test("[L6] the index rests meanwhile, and is kept up once it is resumed", async () => {
  const { agent, workspaceId, space, ann } = await scene({ tools: [], steps: [step(text("Read it."))] });
  await space.post(ann, "Quinces");
  await ended(workspaceId, agent, 1);
  unwrap(await env.AGENT.getByName(agent.id).search(workspaceId, SearchQuery.parse({ query: "quinces" })));
  await suspend(workspaceId, agent);
  const isDueIn = async (): Promise<number> => {
    const [row] = await rowsIn(agent, "select due_at as at from timers where name = 'search'");
    return Number(row?.at) - Date.now();
  };
  await wait(agent);
  expect(await isDueIn()).toBeGreaterThan(suspendedLookMs / 2);
  await suspend(workspaceId, agent, false);
  expect(await isDueIn()).toBeLessThanOrEqual(0);
});

const hourMs = 3_600_000;

/** An agent whose model ends each run at once, and whether it is at work. */
const planner = async (settings: Partial<AgentSettings> = {}) => {
  vi.setSystemTime("2026-02-18T15:07:00.000Z");
  scripted(() => step(text("Done.")));
  const { workspaceId, ...house } = await openHouse();
  const agent = await house.agent({ name: "Analyst", ...settings });
  /** How many runs there are once what is due now is over. */
  const runs = async (): Promise<number> => {
    await passTime(agent, 0);
    return vi.waitFor(async () => {
      const all = await runsOf(workspaceId, agent);
      if (all.some(({ status }) => status === "running") || (await inboxOf(workspaceId, agent)).length > 0) {
        throw new Error("at work");
      }
      return all.length;
    });
  };
  return {
    ...{ agent, workspaceId, runs },
    put: async (id: string, plan: object) =>
      unwrap(await env.AGENT.getByName(agent.id).putPlan(workspaceId, id, { name: id, instruction: "Look", ...plan })),
    next: async () => unwrap(await env.AGENT.getByName(agent.id).plans(workspaceId)).map((plan) => plan.nextRunAt),
    suspend: (suspended = true) => suspend(workspaceId, agent, suspended),
  };
};

test("[L6] [R6] of the times of a plan that pass meanwhile one fires, and then it keeps its own", async () => {
  const { agent, put, next, runs, suspend } = await planner();
  await put("hourly", { cron: "0 * * * *" });
  await suspend();
  await wait(agent);
  expect(await runs()).toBe(0);
  await suspend(false);
  expect(await runs()).toBe(1);
  expect(await next()).toEqual(["2026-02-18T19:00:00.000Z"]);
  await passTime(agent, hourMs);
  expect(await runs()).toBe(2);
});

test("[L6] [R6] a plan that fell due meanwhile fires once through a crash at the resumption", async () => {
  const { agent, put, runs, suspend } = await planner();
  await put("once", { runAfter: "30 minutes" });
  await suspend();
  await wait(agent);
  const crashed = armFault("plan.after-fire");
  await suspend(false);
  await passTime(agent, 0).catch(() => undefined);
  await crashed;
  await passTime(agent, 10_000);
  expect(await runs()).toBe(1);
  await wait(agent);
  expect(await runs()).toBe(1);
});

test("[L6] heartbeats rest meanwhile, none is made up for, and the next comes in its time", async () => {
  const { agent, runs, suspend } = await planner({ heartbeat: { everyMinutes: 30 } });
  await suspend();
  await wait(agent);
  expect(await runs()).toBe(0);
  await suspend(false);
  expect(await runs()).toBe(0);
  await passTime(agent, hourMs / 2);
  expect(await runs()).toBe(1);
});

const lastError = "select last_error ->> '$.code' as code from agent";

test("[L6] a run of a compartment stops at its next step, and goes on once from there", async () => {
  const { house, analyst, secret } = await openBoth({ continuity: "timeline" });
  const held = createGate();
  const model = scriptedModel([
    step(call("send_message", { text: "First" }), waitAt(held)),
    step(call("send_message", { text: "Second" })),
    step(text("Done.")),
  ]);
  onTestFinished(installModel(model));
  await secret.tell("Begin");
  await model.called(1);
  await suspend(house.workspaceId, analyst);
  const isTold = (suspended: number) =>
    vi.waitFor(async () => expect(await rowsIn(secret.mind, "select suspended from agent")).toEqual([{ suspended }]));
  await isTold(1);
  held.open();
  await vi.waitFor(async () => expect(await rowsIn(secret.mind, lastError)).toEqual([{ code: "suspended" }]));
  await wait(secret.mind);
  await secret.tell("And this");
  await wait(secret.mind);
  expect(model.calls).toHaveLength(1);
  expect((await secret.runs()).map(({ status }) => status)).toEqual(["running"]);
  model.push(step(text("Read.")));
  await suspend(house.workspaceId, analyst, false);
  await isTold(0);
  expect((await secret.ended(2)).map(({ status }) => status)).toEqual(["completed", "completed"]);
  await wait(secret.mind);
  expect(model.calls).toHaveLength(4);
  const said = (await secret.space.texts()).filter((line) => line.startsWith("Analyst"));
  expect(said).toEqual(["Analyst: First", "Analyst: Second"]);
});

describe.each(["timeline", "consciousness"] as const)("an approval that a %s waits for", (continuity) => {
  test("[L6] [R3] expires in its time meanwhile, is told once it is resumed, and is never sent", async () => {
    const path = freshPath();
    const tools = [deploy(path, approved({ expiresInMinutes: 60 }))];
    const { agent, workspaceId, space, model, asked, give, shown, run, ann } = await scene({
      ...{ continuity, tools, steps: [] },
    });
    const entering = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
    model.push(...entering, step(call("deploy", { to: "prod" })), step(text("Asked.")), step(text("Over.")));
    await asked("deploy");
    const before = model.calls.length;
    await suspend(workspaceId, agent);
    unwrap(await space.stub().setSuspended(workspaceId, true));
    expect(await give(ann, "deploy", yes)).toMatchObject({ ok: false, problem: { code: "suspended" } });
    await wait(agent);
    await runDurableObjectAlarm(space.stub() as never);
    await shown("deploy", "expired");
    await wait(agent);
    expect(model.calls).toHaveLength(before);
    unwrap(await space.stub().setSuspended(workspaceId, false));
    expect(await give(ann, "deploy", yes)).toMatchObject({ ok: false, problem: { code: "gone" } });
    await suspend(workspaceId, agent, false);
    await passTime(agent, 0);
    await vi.waitFor(() => expect(model.calls).toHaveLength(before + 1));
    expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain("nobody answered in time");
    const over = await run("completed");
    if (continuity === "timeline") expect(JSON.stringify(outputs(over))).toContain("gone");
    await wait(agent);
    expect(model.calls).toHaveLength(before + 1);
    expect(await requestsTo(path)).toHaveLength(0);
  });
});

test("[L6] a compartment that was not told yet makes no step until its agent is resumed", async () => {
  const { house, analyst, secret } = await openBoth({ continuity: "timeline" });
  const { workspaceId } = house;
  const held = createGate();
  const model = scriptedModel([step(call("get_my_runs", {}), waitAt(held)), step(text("Read."))]);
  onTestFinished(installModel(model));
  const unreachable = vi.spyOn(Agent.prototype, "configureCompartment").mockRejectedValue(new Error("unreachable"));
  onTestFinished(() => unreachable.mockRestore());
  await secret.tell("Begin");
  await model.called(1);
  await suspend(workspaceId, analyst);
  held.open();
  await vi.waitFor(async () => expect(await rowsIn(secret.mind, lastError)).toEqual([{ code: "suspended" }]));
  for (let tries = 0; tries < 3; tries += 1) await passTime(secret.mind, watchdogMs);
  expect(model.calls).toHaveLength(1);
  await suspend(workspaceId, analyst, false);
  await passTime(secret.mind, watchdogMs);
  expect((await secret.ended(1)).map(({ status }) => status)).toEqual(["completed"]);
  expect(model.calls).toHaveLength(2);
});
