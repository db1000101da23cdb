import { env } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import { maxInboxEvents } from "../../../src/agent/bounds.ts";
import type { PutPlan } from "../../../src/protocol/plan.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import type { Run } from "../../../src/protocol/run.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../../src/shared/fault.ts";
import { call, type ScriptedStep, step, text } from "../../support/scripted-model.ts";
import { ended, fillInbox, inboxOf, openHouse, passTime, rowsIn, runsOf, scripted, userTexts } from "../fixture.ts";

afterEach(() => {
  disarmFaults();
  vi.useRealTimers();
});

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const hasResult = (prompt: { role: string }[]): boolean => prompt.at(-1)?.role === "tool";

/** A model that does `first` where a cycle begins, and then ends it. */
const modelThat = (first: (index: number) => ScriptedStep = () => step(text("Done."))) => {
  const model = scripted((options, index) => (hasResult(options.prompt) ? step(text("Done.")) : first(index)));
  return model;
};

const openAgent = async (config: Partial<Parameters<Awaited<ReturnType<typeof openHouse>>["agent"]>[0]> = {}) => {
  vi.setSystemTime("2037-02-18T15:07:00.000Z");
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst", ...config });
  const husam = await house.person("Husam");
  const { workspaceId } = house;
  const stub = () => env.AGENT.getByName(agent.id);
  return {
    agent,
    husam,
    workspaceId,
    house,
    stub,
    put: async (id: string, plan: Partial<PutPlan>) =>
      unwrap(await stub().putPlan(workspaceId, id, { name: id, instruction: `Do ${id}`, ...plan })),
    plans: async () => unwrap(await stub().plans(workspaceId)),
    plan: async (id: string) => unwrap(await stub().plans(workspaceId)).find((each) => each.id === id),
    ended: (count: number): Promise<Run[]> => ended(workspaceId, agent, count),
    runs: () => runsOf(workspaceId, agent),
    pass: (milliseconds: number) => passTime(agent, milliseconds),
    sql: (query: string, ...values: (string | number)[]) => rowsIn(agent, query, ...values),
  };
};

/** Every alarm up to `milliseconds` from now goes off, late ones too; nothing more is under way then. */
const settle = async (agent: EntityRef, workspaceId: string): Promise<Run[]> => {
  await passTime(agent, 0);
  return vi.waitFor(async () => {
    const runs = await runsOf(workspaceId, agent);
    if (runs.some(({ status }) => status === "running") || (await inboxOf(workspaceId, agent)).length > 0) {
      throw new Error("still at work");
    }
    return runs.reverse();
  });
};

describe("[R6] a plan fires at its time, once", () => {
  test("a one-off plan, and then it is done", async () => {
    const { put, plans, plan, pass, ended, agent, workspaceId } = await openAgent();
    const model = modelThat();
    expect(await put("report", { runAfter: "2 hours" })).toEqual({
      id: "report",
      name: "report",
      instruction: "Do report",
      runAfter: "2 hours",
      nextRunAt: "2037-02-18T17:07:00.000Z",
      status: "active",
      setBy: "workspace",
      updatedAt: "2037-02-18T15:07:00.000Z",
    });
    await pass(hourMs);
    expect(await settle(agent, workspaceId)).toEqual([]);
    await pass(hourMs);
    const [run] = await ended(1);
    expect(run).toMatchObject({
      status: "completed",
      trigger: { type: "plan", senderName: "report", text: "Do report", eventCount: 1 },
    });
    expect(userTexts(model.calls[0]).at(-1)).toContain('  [Plan "report"] "Do report"\n');
    await pass(24 * hourMs);
    expect(await settle(agent, workspaceId)).toHaveLength(1);
    expect(await plan("report")).toMatchObject({ status: "done" });
    expect(await plans()).toHaveLength(1);
  });

  test("a recurring plan runs at each of its times; those missed asleep run once, not once each", async () => {
    const { put, plan, pass, ended, agent, workspaceId } = await openAgent();
    modelThat();
    await put("hourly", { cron: "0 * * * *" });
    await pass(53 * minuteMs);
    await ended(1);
    expect(await plan("hourly")).toMatchObject({ nextRunAt: "2037-02-18T17:00:00.000Z", status: "active" });
    await pass(10 * hourMs + 30 * minuteMs);
    await ended(2);
    expect(await settle(agent, workspaceId)).toHaveLength(2);
    expect(await plan("hourly")).toMatchObject({ nextRunAt: "2037-02-19T03:00:00.000Z" });
  });

  test("a clock that goes back fires nothing twice", async () => {
    const { put, plan, pass, ended, agent, workspaceId } = await openAgent();
    modelThat();
    await put("hourly", { cron: "0 * * * *" });
    await pass(53 * minuteMs);
    await ended(1);
    await pass(-30 * minuteMs);
    await put("hourly", { cron: "0 * * * *" });
    await pass(31 * minuteMs);
    expect(await settle(agent, workspaceId)).toHaveLength(1);
    expect(await plan("hourly")).toMatchObject({ nextRunAt: "2037-02-18T17:00:00.000Z" });
  });

  test("a crash after it fired loses nothing and fires nothing twice", async () => {
    const { put, pass, ended, agent, workspaceId, plan } = await openAgent();
    modelThat();
    await put("once", { runAfter: "1 hour" });
    await put("hourly", { cron: "7 * * * *" });
    const crashed = armFault("plan.after-fire");
    const firing = pass(hourMs).catch(() => undefined);
    await crashed;
    await firing;
    await vi.waitFor(async () => {
      await pass(26_000);
      if ((await ended(1)).length === 0) throw new Error("not yet");
    });
    const [run] = await settle(agent, workspaceId);
    expect(run).toMatchObject({ trigger: { eventCount: 2 } });
    expect(await plan("once")).toMatchObject({ status: "done" });
    expect(await plan("hourly")).toMatchObject({ nextRunAt: "2037-02-18T17:07:00.000Z" });
  });

  test("a deleted plan fires no more, and one that is set anew fires at its new time only", async () => {
    const { put, pass, workspaceId, stub, agent } = await openAgent();
    modelThat();
    await put("gone", { runAfter: "1 hour" });
    await put("moved", { runAfter: "1 hour" });
    unwrap(await stub().deletePlan(workspaceId, "gone"));
    await put("moved", { runAfter: "3 hours" });
    await pass(2 * hourMs);
    expect(await settle(agent, workspaceId)).toEqual([]);
    await pass(hourMs);
    expect(await settle(agent, workspaceId)).toMatchObject([{ trigger: { senderName: "moved" } }]);
    expect(await stub().deletePlan(workspaceId, "gone")).toMatchObject({ ok: false, problem: { code: "not_found" } });
  });
});

describe("[R6] a plan that fails delays no other", () => {
  test("whose event cannot be stored", async () => {
    const { put, plan, pass, ended, sql } = await openAgent();
    modelThat();
    await put("bad", { runAfter: "1 hour" });
    await put("good", { runAfter: "1 hour" });
    await sql(
      `CREATE TRIGGER broken BEFORE INSERT ON inbox WHEN new.data ->> 'planId' = 'bad'
       BEGIN SELECT RAISE(ABORT, 'broken'); END`,
    );
    await pass(hourMs);
    expect(await ended(1)).toMatchObject([{ trigger: { senderName: "good", eventCount: 1 } }]);
    expect(await plan("bad")).toMatchObject({ status: "active", lastError: { code: "internal" } });
    await sql("DROP TRIGGER broken");
    await pass(2 * minuteMs);
    expect(await ended(2)).toMatchObject([{}, { trigger: { senderName: "bad" } }]);
    expect((await plan("bad"))?.lastError).toBeUndefined();
  });

  test("whose next time cannot be told any more: it says so", async () => {
    const { put, plan, pass, ended, sql } = await openAgent();
    modelThat();
    await put("bad", { cron: "0 * * * *" });
    await sql("UPDATE plans SET timezone = 'Mars/Phobos' WHERE id = 'bad'");
    await put("good", { cron: "0 * * * *" });
    await pass(53 * minuteMs);
    expect(await ended(1)).toMatchObject([{ trigger: { eventCount: 2 } }]);
    expect(await plan("bad")).toMatchObject({ status: "failed", lastError: { code: "invalid_time" } });
    expect(await plan("good")).toMatchObject({ status: "active", nextRunAt: "2037-02-18T17:00:00.000Z" });
  });

  test("which finds the inbox full: it comes when there is room", async () => {
    const { put, plan, pass, ended, sql, agent } = await openAgent();
    modelThat();
    await put("late", { runAfter: "1 hour" });
    await fillInbox(agent, maxInboxEvents);
    await pass(hourMs);
    expect(await plan("late")).toMatchObject({ status: "active", lastError: { code: "unavailable" } });
    await sql("DELETE FROM inbox");
    await pass(2 * minuteMs);
    expect(await ended(1)).toMatchObject([{ trigger: { senderName: "late" } }]);
  });
});

describe("[B1] where the chain of what a plan causes begins", () => {
  const eachMinute = { plans: [{ id: "tick", name: "Tick", instruction: "Tick", cron: "* * * * *" }] };

  test("a plan that a person set begins a root at each due time", async () => {
    const { put, pass, ended } = await openAgent();
    modelThat();
    await put("tick", { cron: "* * * * *" });
    for (let count = 1; count <= 8; count += 1) {
      await pass(minuteMs);
      await ended(count);
    }
    const runs = await ended(8);
    expect(new Set(runs.flatMap(({ roots }) => roots)).size).toBe(8);
  });

  test("a one-off plan that the agent set inherits the root of the run that set it", async () => {
    const { pass, ended, house, husam, agent, plans } = await openAgent({ limits: { maxWakesPerRoot: 3 } });
    const space = await house.space("Alpha", [husam, agent]);
    modelThat(() =>
      step(call("set_plans", { plans: [{ name: "Again", instruction: "Again", runAfter: "1 minute" }] })),
    );
    await space.post(husam, "Start");
    for (let count = 1; count <= 3; count += 1) {
      await ended(count);
      await pass(minuteMs);
    }
    // The third plan is due, and wakes nobody: its root has woken this agent three times.
    await pass(10 * minuteMs);
    const runs = await ended(3);
    expect(runs).toHaveLength(3);
    expect(new Set(runs.flatMap(({ roots }) => roots)).size).toBe(1);
    expect(await inboxOf(house.workspaceId, agent)).toMatchObject([{ type: "plan", status: "pending" }]);
    expect(await plans()).toMatchObject([{ status: "done" }, { status: "done" }, { status: "done" }]);
    expect((await plans())[0]?.id).toMatch(/^pln_/);
  });

  test("a cron that the agent sets begins one root in five minutes, however often it is set", async () => {
    const { pass, ended, house, husam, agent } = await openAgent({ limits: { maxWakesPerRoot: 3 } });
    const space = await house.space("Alpha", [husam, agent]);
    modelThat(() => step(call("delete_plans", { planIds: ["tick"] }), call("set_plans", eachMinute)));
    await space.post(husam, "Start");
    await ended(1);
    for (let minute = 0; minute < 15; minute += 1) {
      await pass(minuteMs);
      await vi.waitFor(async () => expect((await runsOf(house.workspaceId, agent))[0]?.status).not.toBe("running"));
    }
    const [first, ...runs] = (await runsOf(house.workspaceId, agent)).reverse();
    const roots = [...new Set(runs.flatMap((run) => run.roots))].filter((id) => !first?.roots.includes(id));
    expect(roots).toHaveLength(3);
    expect(runs.length).toBeLessThanOrEqual(9);
    expect(runs.length).toBeGreaterThanOrEqual(6);
  });
});

test("[R6] [C11] one person's recurring plans take no wakes from another's", async () => {
  const limits = { maxWakesPerRoot: 2 };
  const { pass, house, husam, agent, runs } = await openAgent({ continuity: "timeline", limits });
  const sara = await house.person("Sara");
  const space = await house.space("Alpha", [husam, sara, agent]);
  const planned = (...ids: string[]) =>
    step(call("set_plans", { plans: ids.map((id) => ({ id, name: id, instruction: id, cron: "* * * * *" })) }));
  const [done, husams, saras] = [step(text("Done.")), planned("daily", "hourly"), planned("sara")];
  modelThat((index) => [husams, done, saras][index] ?? done);
  await space.post(husam, "Plan two things");
  await ended(house.workspaceId, agent, 1);
  await space.post(sara, "Plan one thing");
  await ended(house.workspaceId, agent, 2);
  await pass(minuteMs);
  await ended(house.workspaceId, agent, 5);
  expect((await runs()).map(({ trigger }) => trigger.senderName)).toContain("sara");
});

describe("the tools", () => {
  test.each([
    ["a replayed call moves no time and sets nothing twice", "agent.after-effect", 1],
    ["a call that was begun before a crash counts from when it was begun", "agent.after-call", 0],
  ] as const)("[R2] %s", async (_, point, setBefore) => {
    const { pass, ended, house, husam, agent, plans } = await openAgent();
    const space = await house.space("Alpha", [husam, agent]);
    modelThat(() => step(call("set_plans", { plans: [{ name: "Later", instruction: "Later", runAfter: "1 hour" }] })));
    const crashed = armFault(point);
    const posted = space.post(husam, "Start").catch(() => undefined);
    await crashed;
    await posted;
    const before = await plans();
    expect(before).toHaveLength(setBefore);
    await vi.waitFor(async () => {
      await pass(26_000);
      await ended(1);
    });
    const after = await plans();
    expect(after).toMatchObject([{ nextRunAt: "2037-02-18T16:07:00.000Z" }]);
    if (setBefore > 0) expect(after).toEqual(before);
  });

  test("the state tells of plans, and get_plans reads them", async () => {
    const { ended, put, house, husam, agent } = await openAgent();
    const space = await house.space("Alpha", [husam, agent]);
    await put("report", { cron: "0 9 * * *", timezone: "Asia/Riyadh" });
    const model = modelThat(() => step(call("get_plans", {})));
    await space.post(husam, "What do you plan?");
    const [run] = await ended(1);
    expect(userTexts(model.calls[0]).join("\n")).toContain("next: 2037-02-19T06:00:00Z");
    expect(run?.steps[0]?.toolCalls[0]?.output).toMatchObject({
      plans: [{ id: "report", cron: "0 9 * * *", nextRunAt: "2037-02-19T06:00:00.000Z", status: "active" }],
    });
  });

  test.each([
    ["a cron that never fires", { cron: "0 0 31 2 *" }, "never comes"],
    ["a time in the past", { scheduledAt: "2037-02-18T15:00:00Z" }, "is past"],
    ["a zone that does not exist", { cron: "0 9 * * *", timezone: "Mars/Phobos" }, "no time zone"],
    ["two times at once", { cron: "0 9 * * *", runAfter: "1 hour" }, "only one of"],
    ["no time at all", {}, "say when"],
    ["a while that cannot be read", { runAfter: "soon" }, "cannot be read"],
    ["a cron with seconds", { cron: "*/5 * * * * *" }, "finer than a minute"],
    ["what is no time", { scheduledAt: "tomorrow" }, "scheduledAt"],
  ])("[S4] the model is told why %s is refused, and the run goes on", async (_, times, why) => {
    const { ended, house, husam, agent, plans } = await openAgent();
    const space = await house.space("Alpha", [husam, agent]);
    const good = { name: "Good", instruction: "Good", runAfter: "1 hour" };
    modelThat(() => step(call("set_plans", { plans: [good, { name: "Bad", instruction: "Bad", ...times }] })));
    await space.post(husam, "Start");
    const [run] = await ended(1);
    expect(run).toMatchObject({ status: "completed" });
    const [toolCall] = run?.steps[0]?.toolCalls ?? [];
    expect(toolCall?.status).toBe("error");
    expect(JSON.stringify(toolCall?.output)).toContain(why);
    expect(await plans()).toEqual([]);
  });

  test("[B3] past maxPlans a plan is refused by name; those that are over make room", async () => {
    const { put, stub, workspaceId, sql, pass, plans, agent } = await openAgent();
    modelThat();
    await put("first", { runAfter: "1 hour" });
    await sql(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99)
       INSERT INTO plans (id, name, instruction, run_after, set_by, status, due_at, try_at, updated_at)
       SELECT 'p' || i, name, instruction, run_after, set_by, status, due_at, try_at, updated_at FROM n, plans WHERE id = 'first'`,
    );
    // A write makes the agent read its plans anew.
    await put("first", { runAfter: "1 hour" });
    const more = { name: "More", instruction: "More", runAfter: "1 hour" };
    expect(await stub().putPlan(workspaceId, "more", more)).toMatchObject({
      ok: false,
      problem: { code: "limit_reached", detail: expect.stringContaining("maxPlans (100)") },
    });
    expect(await stub().putPlan(workspaceId, "first", more)).toMatchObject({ ok: true });
    await pass(hourMs);
    const [run] = await settle(agent, workspaceId);
    expect(run?.trigger.eventCount).toBe(100);
    expect(await plans()).toHaveLength(10);
    expect(await stub().putPlan(workspaceId, "more", more)).toMatchObject({ ok: true });
  });
});

describe("a heartbeat", () => {
  test("[R6] wakes the agent in its hours, once for each time", async () => {
    const { pass, ended, agent, workspaceId } = await openAgent({
      heartbeat: { everyMinutes: 120, activeHours: { start: 8, end: 22 }, timezone: "Asia/Riyadh" },
    });
    const model = modelThat(() => step(call("skip", { reason: "nothing is due" })));
    await pass(119 * minuteMs);
    expect(await settle(agent, workspaceId)).toEqual([]);
    await pass(minuteMs);
    expect(await ended(1)).toMatchObject([{ status: "skipped", trigger: { type: "plan", senderName: "heartbeat" } }]);
    expect(userTexts(model.calls[0]).at(-1)).toContain('[Plan "heartbeat"] "Look at your goals');
    // 20:07 in Riyadh; the next would be at 22:07, so it comes at eight in the morning.
    await pass(10 * hourMs);
    expect(await settle(agent, workspaceId)).toHaveLength(1);
    await pass(2 * hourMs);
    const runs = await ended(2);
    expect(runs[0]?.roots).not.toEqual(runs[1]?.roots);
  });

  test("is turned off and on by a change of the config", async () => {
    const { pass, ended, agent, workspaceId, stub } = await openAgent({ heartbeat: { everyMinutes: 5 } });
    modelThat();
    const off = unwrap(await stub().update(workspaceId, { heartbeat: null }));
    expect(off.config.heartbeat).toBeUndefined();
    await pass(hourMs);
    expect(await settle(agent, workspaceId)).toEqual([]);
    unwrap(await stub().update(workspaceId, { heartbeat: { everyMinutes: 30 } }));
    unwrap(await stub().update(workspaceId, { description: "Counts" }));
    await pass(31 * minuteMs);
    await ended(1);
  });

  test("does not pile up while the agent cannot work", async () => {
    const { pass, agent, workspaceId, stub } = await openAgent({
      heartbeat: { everyMinutes: 5 },
      limits: { maxTokensPerDay: 1000 },
    });
    modelThat();
    for (let count = 0; count < 4; count += 1) await pass(5 * minuteMs + 1000);
    await vi.waitFor(async () => {
      const { activity } = unwrap(await stub().describe(workspaceId));
      expect(activity?.state).toBe("budget_exhausted");
    });
    await pass(5 * minuteMs);
    expect(await inboxOf(workspaceId, agent)).toHaveLength(1);
  });
});
