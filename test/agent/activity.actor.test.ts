import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { replyWaitMs } from "../../src/agent/bounds.ts";
import { type Agent, AgentConfig } from "../../src/protocol/agent.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import type { Run } from "../../src/protocol/run.ts";
import { refuse, unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { createGate } from "../support/gate.ts";
import { answer, apiError, call, step, text, waitAt } from "../support/scripted-model.ts";
import { approved, deploy } from "./calls/scene.ts";
import { type AgentSettings, ended, openScene, passTime, runsOf, scripted } from "./fixture.ts";

afterEach(() => void vi.useRealTimers());

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene(settings);
  const { house, agent: stub } = scene;
  return {
    ...scene,
    stub,
    activity: async (): Promise<NonNullable<Agent["activity"]>> => {
      const { activity } = unwrap(await stub.describe(house.workspaceId));
      if (!activity) throw new Error("no activity");
      return activity;
    },
  };
};

const nothing = { replies: 0, calls: 0, events: 0, dead: 0 };

test("an agent with nothing to do is idle since its last run, and tells when a plan is due", async () => {
  const { house, husam, analyst, space, stub, activity } = await stage();
  const made = unwrap(await stub.describe(house.workspaceId));
  const storage = { bytes: expect.any(Number), maxBytes: expect.any(Number), state: "ok" };
  expect(await activity()).toEqual({ state: "idle", since: made.createdAt, waiting: nothing, tokensToday: 0, storage });
  scripted(answer(space.id, "Hello."));
  await space.post(husam, "Hello");
  const [run] = await ended(house.workspaceId, analyst, 1);
  const plan = { name: "Later", instruction: "Look", runAfter: "2 hours" };
  const { nextRunAt } = unwrap(await stub.putPlan(house.workspaceId, "later", plan));
  const seen = await activity();
  expect(seen).toMatchObject({ state: "idle", since: run?.completedAt, waiting: nothing });
  expect(nextRunAt).toBeDefined();
  expect(seen.nextPlanAt).toBe(nextRunAt);
  expect(seen.nextDueAt).toBe(nextRunAt);
  expect(seen.nextRetryAt).toBeUndefined();
});

test("a run is told with its id and start; a paused one with its first fault and its next try", async () => {
  const { house, husam, analyst, space, activity } = await stage();
  const down = apiError(503, { responseHeaders: { "retry-after": "120" } });
  const held = createGate();
  onTestFinished(held.open);
  scripted(async () => {
    await held.opened;
    throw down;
  });
  await space.post(husam, "Hello");
  const seen = await vi.waitFor(async () => {
    const now = await activity();
    expect(now.state).toBe("running");
    return now;
  });
  held.open();
  const paused = await vi.waitFor(async () => {
    const now = await activity();
    expect(now.state).toBe("backing_off");
    return now;
  });
  const [run] = await runsOf(house.workspaceId, analyst);
  expect(seen).toMatchObject({ state: "running", runId: run?.id, since: run?.startedAt });
  expect(paused).toMatchObject({ runId: run?.id, lastError: { code: "model_unavailable" } });
  expect(paused.nextRetryAt).toBe(paused.nextDueAt);
  expect(Date.parse(paused.nextRetryAt ?? "") - Date.parse(paused.lastError?.at ?? "")).toBeGreaterThan(119_000);
  expect(Date.parse(paused.since)).toBeGreaterThanOrEqual(Date.parse(run?.startedAt ?? ""));
  scripted(answer(space.id, "Up again."));
  await passTime(analyst, 131_000);
  const [finished] = await ended(house.workspaceId, analyst, 1);
  expect(finished?.status).toBe("completed");
  expect(await activity()).toMatchObject({ state: "idle", since: finished?.completedAt, waiting: nothing });
});

test("a failed event that waits is counted with the time of its next try; a dead one as dead", async () => {
  const { house, husam, analyst, space, activity } = await stage();
  scripted(() => {
    throw apiError(400);
  });
  await space.post(husam, "Hello");
  for (let runs = 1; runs < 5; runs += 1) {
    await ended(house.workspaceId, analyst, runs);
    const seen = await activity();
    expect(seen).toMatchObject({ state: "idle", waiting: { ...nothing, events: 1 } });
    expect(seen.nextDueAt).toBe(seen.nextRetryAt);
    await passTime(analyst, Math.max(0, Date.parse(seen.nextRetryAt ?? "") - Date.now()) + 1);
  }
  await ended(house.workspaceId, analyst, 5);
  const seen = await activity();
  expect(seen.waiting).toEqual({ ...nothing, dead: 1 });
  expect(seen.nextRetryAt).toBeUndefined();
});

test("[B2] an agent whose budget is spent says so, since when, and when it goes on", async () => {
  const { house, husam, analyst, space, activity } = await stage({ limits: { maxTokensPerDay: 1000 } });
  scripted(answer(space.id, "Never said."));
  await space.post(husam, "Hello");
  const [run] = await ended(house.workspaceId, analyst, 1);
  const seen = await activity();
  expect(seen).toMatchObject({
    state: "budget_exhausted",
    since: run?.completedAt,
    waiting: { ...nothing, events: 1 },
  });
  expect(seen.nextDueAt).toMatch(/T00:00:00.000Z$/);
  expect(Date.parse(seen.nextDueAt ?? "")).toBeGreaterThan(Date.now());
});

test("runs that wait for answers are counted with their deadline; the loop is idle meanwhile", async () => {
  const { husam, house, analyst, space, activity } = await stage({ continuity: "timeline", messaging: "threaded" });
  scripted([step(call("send_message", { text: "@Husam?", wait: true })), step(text("Thanks."))]);
  const asked = Date.now() + 60_000;
  vi.setSystemTime(asked);
  await space.post(husam, "Ask me");
  await vi.waitFor(async () => expect(await activity()).toMatchObject({ state: "idle", waiting: { replies: 1 } }));
  const seen = await activity();
  expect(seen).toMatchObject({ state: "idle", waiting: { ...nothing, replies: 1 } });
  expect(Date.parse(seen.since)).toBeGreaterThanOrEqual(asked);
  expect(Date.parse(seen.nextDueAt ?? "") - Date.now()).toBeGreaterThan(replyWaitMs - 60_000);
  await space.post(husam, "@Analyst Here I am");
  await vi.waitFor(async () => {
    const runs = await runsOf(house.workspaceId, analyst);
    expect(runs.every((run) => run.status === "completed")).toBe(true);
  });
  expect((await activity()).waiting.replies).toBe(0);
});

test.each(["timeline", "consciousness"] as const)(
  "a %s run that waits for approval counts as a call; the loop is idle since then",
  async (continuity) => {
    const { tools } = AgentConfig.parse({
      name: "Analyst",
      tools: [{ description: "Deploys", ...deploy("/never-asked", approved()), visible: true }],
    });
    const { husam, space, stub, house, activity } = await stage({ continuity, tools });
    const enter = call("enter_space", { spaceId: space.id });
    const ask = call("deploy", { to: "prod" });
    scripted([...(continuity === "consciousness" ? [step(enter)] : []), step(ask), step(text("It waits."))]);
    const asked = Date.now() + 60_000;
    vi.setSystemTime(asked);
    await space.post(husam, "Deploy");
    await vi.waitFor(async () => expect(await activity()).toMatchObject({ state: "idle", waiting: { calls: 1 } }));
    expect((await activity()).waiting).toEqual({ ...nothing, calls: 1 });
    expect(Date.parse((await activity()).since)).toBeGreaterThanOrEqual(asked);
    unwrap(await stub.remove(house.workspaceId));
  },
);

/** What the log says from now on, each line parsed. */
const logged = (): (() => Record<string, unknown>[]) => {
  const lines: string[] = [];
  for (const level of ["log", "warn", "error"] as const) {
    const spy = vi.spyOn(console, level).mockImplementation((line) => void lines.push(String(line)));
    onTestFinished(() => spy.mockRestore());
  }
  return () => {
    expect(lines.join()).not.toContain("\n");
    expect(lines.join()).not.toContain("sesame");
    return lines.map((line) => JSON.parse(line));
  };
};

/** The lines about a run, once they are these; each with the ids by which it is followed. */
const saysOf = (run: Run | undefined, agent: EntityRef, lines: () => Record<string, unknown>[], events: string[]) =>
  vi.waitFor(() => {
    const own = lines().filter(({ runId }) => runId === run?.id);
    expect(own.map(({ event }) => event)).toEqual(events);
    for (const line of own) expect(line).toMatchObject({ agentId: agent.id, eventId: run?.trigger.eventId });
    return own;
  });

test("every log line about a run is one JSON object with agent, run and event ids, and no texts", async () => {
  const { house, husam, analyst, space, stub } = await stage();
  const lines = logged();
  const gate = createGate();
  scripted((_, index) => {
    if (index > 0) return step(waitAt(gate));
    throw apiError(503, { message: "sesame" });
  });
  await space.post(husam, "Open sesame");
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst))[0]).toBeDefined());
  const [run] = await runsOf(house.workspaceId, analyst);
  const begun = ["run.begun", "run.paused"];
  await saysOf(run, analyst, lines, begun);
  await passTime(analyst, 2000);
  await gate.reached;
  await passTime(analyst, 100_000);
  await saysOf(run, analyst, lines, [...begun, "run.stalled", "run.paused"]);
  unwrap(await stub.cancelRun(house.workspaceId, run?.id ?? ""));
  const [, , , , ended] = await saysOf(run, analyst, lines, [...begun, "run.stalled", "run.paused", "run.ended"]);
  expect(ended).toMatchObject({ status: "canceled" });
});

test("a run that waits, and is ended by another, is told as ended by the log", async () => {
  const { house, husam, analyst, space } = await stage({ continuity: "timeline", messaging: "threaded" });
  const lines = logged();
  const waiting = async (): Promise<Run | undefined> => (await runsOf(house.workspaceId, analyst)).at(-1);
  scripted(async (_, index) => {
    if (index === 0) return step(call("send_message", { text: "@Husam, which?", wait: true }));
    return index === 1 ? step(call("absorb_run", { runId: (await waiting())?.id ?? "" })) : step(text("Done."));
  });
  const sara = await house.person("Sara");
  unwrap(await space.stub().addMember(house.key, sara));
  await space.post(husam, "Ask me");
  await vi.waitFor(async () => expect((await waiting())?.status).toBe("waiting_reply"));
  const first = await waiting();
  await space.post(sara, "Let it be");
  await ended(house.workspaceId, analyst, 2);
  const [, over] = await saysOf(first, analyst, lines, ["run.begun", "run.ended"]);
  expect(over).toMatchObject({ status: "absorbed" });
});

test("what breaks between a run and its space is told with the run's ids", async () => {
  const { husam, house, analyst, space } = await stage();
  const lines = logged();
  const broken = vi.spyOn(Space.prototype, "speak").mockImplementation(async () => refuse("unavailable", "later"));
  onTestFinished(() => broken.mockRestore());
  scripted([step(text("Read."))]);
  await space.post(husam, "Hello");
  const [run] = await ended(house.workspaceId, analyst, 1);
  await vi.waitFor(() => {
    const told = lines().filter(({ event }) => String(event).startsWith("channel."));
    expect(told.length).toBeGreaterThan(0);
    for (const line of told) expect(line).toMatchObject({ agentId: analyst.id, runId: run?.id });
  });
});
