import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import type { env } from "cloudflare:workers";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { maxAttempts } from "../../src/agent/bounds.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { createGate } from "../support/gate.ts";
import { answer, apiError, call, cutStream, rawCall, refusal, step, text, waitAt } from "../support/scripted-model.ts";
import { agentStub, ended, inboxOf, openHouse, openScene, passTime, runsOf, scripted, userTexts } from "./fixture.ts";

afterEach(() => void vi.useRealTimers());

const backingOff = (workspaceId: string, agent: ReturnType<typeof env.AGENT.getByName>) =>
  vi.waitFor(async () => {
    const { activity } = unwrap(await agent.describe(workspaceId));
    expect(activity?.state).toBe("backing_off");
    return activity;
  });

test("[R4] a passing fault pauses the run, which honours Retry-After and then answers once", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  scripted([refusal(apiError(429, { responseHeaders: { "retry-after": "120" } })), ...answer(space.id, "Here.")]);
  await space.post(husam, "Hello");
  const activity = await backingOff(house.workspaceId, agent);
  expect(activity?.lastError?.code).toBe("model_unavailable");
  expect(Date.parse(activity?.nextDueAt ?? "") - Date.now()).toBeGreaterThan(100_000);
  await passTime(analyst, 60_000);
  expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("running");
  await passTime(analyst, 70_000);
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run?.status).toBe("completed");
  expect(await space.texts()).toEqual(["Husam: Hello", "Analyst: Here."]);
});

test("[R3] [R4] [D4] a stream cut mid-message drops its words, and the step is asked for again", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  const half = rawCall("send_message", '{"text":"Half a sen');
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(half, cutStream()),
    step(call("send_message", { text: "A whole sentence." })),
    step(text("Said it.")),
  ]);
  const watching = await space.watch(husam);
  await space.post(husam, "Say it");
  await backingOff(house.workspaceId, agent);
  await vi.waitUntil(() => watching.some((frame) => frame.type === "tool-call.error"));
  await passTime(analyst, 10_000);
  await ended(house.workspaceId, analyst, 1);
  expect(await space.texts()).toEqual(["Husam: Say it", "Analyst: A whole sentence."]);
});

test.each([
  ["", {}],
  [", its root used up", { maxWakesPerRoot: 1 }],
])("[R1] [R4] [B1] an event is dead after five failed runs, retried by hand%s", async (_, limits) => {
  const { house, husam, analyst, space, agent } = await openScene({ limits });
  const model = scripted(Array.from({ length: maxAttempts }, () => refusal(apiError(401))));
  await space.post(husam, "Hello");
  for (let attempt = 1; attempt < maxAttempts; attempt += 1) {
    await ended(house.workspaceId, analyst, attempt);
    await passTime(analyst, 60_000);
  }
  const runs = await ended(house.workspaceId, analyst, maxAttempts);
  expect(runs.map((run) => run.error?.code)).toEqual(Array(maxAttempts).fill("model_rejected"));
  const [dead] = await inboxOf(house.workspaceId, analyst);
  expect(dead).toMatchObject({ status: "dead", attempts: maxAttempts, lastError: { code: "model_rejected" } });

  model.push(...answer(space.id, "At last."));
  const retry = () => agent.retryEvent(house.workspaceId, dead?.eventId ?? "");
  unwrap(await retry());
  await ended(house.workspaceId, analyst, maxAttempts + 1);
  expect(await space.texts()).toEqual(["Husam: Hello", "Analyst: At last."]);
  expect(await retry()).toMatchObject({ ok: false, problem: { code: "not_found" } });
});

test("[R4] [S4] unknown tools and bad JSON are told to the model; three such steps fail the run", async () => {
  const { space, ask } = await openScene();
  const model = scripted([
    step(call("fly", { to: "moon" })),
    step(rawCall("send_message", '{"text": nonsense')),
    step(call("send_message", { words: 5 })),
  ]);
  const [run] = await ask("Hello");
  expect(run).toMatchObject({ status: "failed", outcome: "failed", error: { code: "model_nonsense" } });
  expect(run?.steps.map((each) => each.toolCalls[0]?.status)).toEqual(["error", "error", "error"]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("tool_unknown");
  expect(JSON.stringify(model.calls[2]?.prompt)).toContain("tool_input_invalid");
  expect(await space.texts()).toHaveLength(1);
});

test("[R4] one nonsense step is survived", async () => {
  const { space, ask } = await openScene();
  scripted([step(call("fly", {})), ...answer(space.id, "On foot, then.")]);
  const [run] = await ask("Come");
  expect(run?.status).toBe("completed");
});

test.each([
  ["first answer is asked for once more and is then silence", step()],
  ["later answer ends the run, and is not asked for again", step(call("get_memories", {}))],
])("[R4] an empty %s", async (_, first) => {
  const { ask } = await openScene();
  const model = scripted([first, step()]);
  const [run] = await ask("Hello");
  expect(run).toMatchObject({ status: "completed", outcome: "silent" });
  expect(model.calls).toHaveLength(2);
});

test("[R5] a run canceled mid-stream stops at once, shows nothing and acknowledges its event", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  const gate = createGate();
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(rawCall("send_message", '{"text":"You will nev'), waitAt(gate)),
  ]);
  const watching = await space.watch(husam);
  await space.post(husam, "Speak");
  await gate.reached;
  await vi.waitUntil(() => watching.some((frame) => frame.type === "tool-input-delta"));
  const [running] = await runsOf(house.workspaceId, analyst);
  const canceled = unwrap(await agent.cancelRun(house.workspaceId, running?.id ?? ""));
  expect(canceled.status).toBe("canceled");
  await vi.waitUntil(() => watching.some((frame) => frame.type === "tool-call.error"));
  await vi.waitUntil(() => watching.some((frame) => frame.type === "run.canceled"));
  gate.open();
  expect(await space.texts()).toEqual(["Husam: Speak"]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(await agent.cancelRun(house.workspaceId, running?.id ?? "")).toMatchObject({
    ok: false,
    problem: { code: "conflict" },
  });
});

test("[R5] deleting an agent ends its run and leaves its messages", async () => {
  const { house, husam, space, agent, ask } = await openScene();
  const gate = createGate();
  scripted([...answer(space.id, "First."), step(waitAt(gate))]);
  await ask("One");
  await space.post(husam, "Two");
  await gate.reached;
  unwrap(await agent.remove(house.workspaceId));
  gate.open();
  expect(await agent.describe(house.workspaceId)).toMatchObject({ ok: false, problem: { code: "not_found" } });
  expect(await space.texts()).toEqual(["Husam: One", "Analyst: First.", "Husam: Two"]);
});

test("[B1] two agents that always answer each other stop after maxWakesPerRoot wakes each", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxWakesPerRoot: 3 };
  const one = await house.agent({ name: "One", limits });
  const two = await house.agent({ name: "Two", limits });
  const space = await house.space("Alpha", [husam, one, two]);
  scripted((options) => {
    const last = options.prompt.at(-1);
    if (last?.role === "user" && !JSON.stringify(options.prompt).includes("enter_space({"))
      return JSON.stringify(last).includes("ACTIVE SPACE: none")
        ? step(call("enter_space", { spaceId: space.id }))
        : step(call("send_message", { text: "And you?" }));
    const spoken = JSON.stringify(last).includes("delivered");
    return spoken ? step(text("Answered.")) : step(call("send_message", { text: "And you?" }));
  });
  await space.post(husam, "Talk");
  const counts = await vi.waitFor(
    async () => {
      const runs = [await runsOf(house.workspaceId, one), await runsOf(house.workspaceId, two)];
      if (runs.some((list) => list.length < 3 || list.some((run) => run.status === "running"))) throw new Error("on");
      return runs.map((list) => list.length);
    },
    { timeout: 15_000 },
  );
  expect(counts).toEqual([3, 3]);
  const spoken = (await space.texts()).length;
  // A new message of a person begins a new root: both wake again.
  await space.post(husam, "Once more");
  for (const agent of [one, two]) expect(await ended(house.workspaceId, agent, 6)).toHaveLength(6);
  expect((await space.texts()).length).toBeGreaterThan(spoken);
});

test("[B2] a step beyond the day's budget does not start; its event waits for the reset", async () => {
  const { house, husam, analyst, space, agent, ask } = await openScene({
    name: "Analyst",
    limits: { maxTokensPerDay: 1000 },
  });
  const model = scripted(answer(space.id, "Affordable now."));
  const [run] = await ask("Hello");
  // It never will: no day has as many.
  const message = expect.stringMatching(/it may cost \d+ tokens: raise the limit$/);
  expect(run).toMatchObject({ status: "failed", error: { code: "budget_exhausted", message } });
  expect(model.calls).toHaveLength(0);
  const { activity } = unwrap(await agent.describe(house.workspaceId));
  expect(activity?.state).toBe("budget_exhausted");
  expect(await inboxOf(house.workspaceId, analyst)).toMatchObject([{ status: "pending", attempts: 0 }]);
  await space.post(husam, "Anyone?");
  expect(await runsOf(house.workspaceId, analyst)).toHaveLength(1);
  unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 1_000_000 } }));
  await ended(house.workspaceId, analyst, 2);
  expect(await space.texts()).toContain("Analyst: Affordable now.");
});

test.each([
  ["what was billed is what the ledger shows", 30, (tokens = 0) => tokens === 730],
  ["what a provider does not say that it billed for an answer is estimated", 0, (tokens = 0) => tokens > 703],
])("[B2] %s", async (_, outputTokens, isRight) => {
  const { house, agent, ask } = await openScene();
  scripted([{ ...step(text("These are five words, or six.")), usage: { inputTokens: 700, outputTokens } }]);
  await ask("Hello");
  const { activity } = unwrap(await agent.describe(house.workspaceId));
  expect(activity?.tokensToday).toSatisfy(isRight);
});

test("[B3] a run over maxSteps ends with an error that names it, and is not done again", async () => {
  const { house, analyst, ask } = await openScene({ name: "Analyst", limits: { maxSteps: 2 } });
  scripted(() => step(call("get_memories", {})));
  const [run] = await ask("Think");
  expect(run).toMatchObject({ status: "failed", error: { code: "step_limit" } });
  expect(run?.error?.message).toContain("maxSteps (2)");
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test.each([1, 10])(
  "[R4] an input that is too long is compacted once and tried again (minRecentCycles: %i)",
  async (minRecentCycles) => {
    const { space, ask } = await openScene({ name: "Analyst", context: { minRecentCycles } });
    const tooLong = apiError(400, { responseBody: '{"error":{"code":"context_length_exceeded"}}' });
    const model = scripted([
      ...answer(space.id, "One."),
      step(call("send_message", { text: "Two." })),
      step(text("Said two.")),
      refusal(tooLong),
      step(call("send_message", { text: "Three." })),
      step(text("Said three.")),
    ]);
    for (const [index, words] of ["a", "b", "c"].entries()) {
      await ask(words, index + 1);
    }
    expect(await space.texts()).toContain("Analyst: Three.");
    expect(userTexts(model.calls.at(-1))[0]).toBe(
      "EARLIER CYCLES (your own summaries, oldest first):\n  | - Answered.",
    );
  },
);

test("[R7] a delivery that comes twice makes one event", async () => {
  const { house, analyst, space, agent, ask } = await openScene();
  scripted(answer(space.id, "Once."));
  await ask("Hello");
  const [message] = await space.messages();
  if (!message) throw new Error("no message");
  const delivery = {
    space: {
      id: space.id,
      workspaceId: house.workspaceId,
      name: "Alpha",
      shareOrigin: "reference" as const,
      wakePolicy: "every_message" as const,
      createdAt: message.createdAt,
      version: 1,
      members: [],
    },
    messages: [{ message, root: { id: message.id, kind: "person" as const }, triggerSource: "every_message" as const }],
    after: 0,
    cursor: message.seq,
    left: false,
  };
  expect(unwrap(await agent.deliver(JSON.stringify(delivery))).cursor).toBeGreaterThanOrEqual(message.seq);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(await runsOf(house.workspaceId, analyst)).toHaveLength(1);
});

test("[R1] a paused run goes on when its alarm goes off at the very millisecond it waits for", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  scripted([refusal(apiError(503)), ...answer(space.id, "Back.")]);
  vi.spyOn(Math, "random").mockReturnValue(0.3337);
  onTestFinished(() => void vi.restoreAllMocks());
  await space.post(husam, "Hello");
  const activity = await backingOff(house.workspaceId, agent);
  const due = Date.parse(activity?.nextDueAt ?? "");
  await passTime(analyst, due - Date.now() - 1);
  expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("running");
  vi.setSystemTime(due);
  await runDurableObjectAlarm(agentStub(analyst));
  await vi.waitFor(async () => {
    await runDurableObjectAlarm(agentStub(analyst));
    expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("completed");
  });
});

test("[B1] [B2] an event whose root is used up is still answered after the budget's reset", async () => {
  const limits = { maxTokensPerDay: 1000, maxWakesPerRoot: 1 };
  const { house, analyst, space, agent, ask } = await openScene({ name: "Analyst", limits });
  scripted(answer(space.id, "Affordable now."));
  await ask("Hello");
  unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 1_000_000 } }));
  await ended(house.workspaceId, analyst, 2);
  expect(await space.texts()).toEqual(["Husam: Hello", "Analyst: Affordable now."]);
});

test("[R1] a run that makes no progress is taken up again from its journal", async () => {
  const { house, husam, analyst, space, agent } = await openScene();
  const gate = createGate();
  const model = scripted([step(waitAt(gate)), ...answer(space.id, "Awake.")]);
  await space.post(husam, "Hello");
  await gate.reached;
  await passTime(analyst, 100_000);
  expect((await backingOff(house.workspaceId, agent))?.lastError?.code).toBe("model_stalled");
  await passTime(analyst, 10_000);
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run?.status).toBe("completed");
  expect(model.calls.length).toBe(4);
  expect(await space.texts()).toEqual(["Husam: Hello", "Analyst: Awake."]);
});

test("[R5] an agent that was removed from the space mid-stream says nothing there any more", async () => {
  const { house, husam, analyst, space } = await openScene();
  const gate = createGate();
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(call("send_message", { text: "Too late." }), waitAt(gate)),
    step(text("I was removed.")),
  ]);
  await space.post(husam, "Speak");
  await gate.reached;
  unwrap(await space.stub().removeMember(house.key, analyst.id));
  gate.open();
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run?.steps[1]?.toolCalls[0]).toMatchObject({ status: "error" });
  expect(await space.texts()).toEqual(["Husam: Speak"]);
});

test("[R1] [R5] a space that never answers delays no run: it is canceled and says nothing twice", async () => {
  const { house, husam, analyst, space, agent, ask } = await openScene();
  scripted([...answer(space.id, "Hello."), step(text("On to the next."))]);
  const silent = Promise.withResolvers<never>();
  const asked = vi.spyOn(Space.prototype, "window").mockImplementation(() => silent.promise);
  onTestFinished(() => asked.mockRestore());
  await space.post(husam, "Hello");
  await vi.waitUntil(() => asked.mock.calls.length > 0);
  const [running] = await runsOf(house.workspaceId, analyst);
  const canceled = unwrap(await agent.cancelRun(house.workspaceId, running?.id ?? ""));
  expect(canceled.status).toBe("canceled");
  await vi.waitFor(async () => {
    const { activity } = unwrap(await agent.describe(house.workspaceId));
    expect(activity?.state).toBe("idle");
  });
  const runs = await ask("Still there?", 2);
  expect(runs.map((run) => run.status)).toEqual(["canceled", "completed"]);
});

test("[R4] an error of our own fails the run as internal, and nothing waits for a provider", async () => {
  scripted([step(text("Hello."))]);
  const { house, husam, analyst, space, agent } = await openScene();
  await runInDurableObject(agentStub(analyst), (_, { storage }) =>
    storage.sql.exec(`CREATE TRIGGER broken BEFORE INSERT ON journal WHEN new.kind = 'assistant'
      BEGIN SELECT raise(ABORT, 'fetch failed: database or disk is full'); END`),
  );
  await space.post(husam, "Hello?");
  await vi.waitFor(async () => {
    const [run] = unwrap(await agent.runs(house.workspaceId, { limit: 1 })).items;
    expect(run).toMatchObject({ status: "failed", error: { code: "internal" } });
    expect(run?.error?.message).not.toContain("disk");
  });
  const { activity } = unwrap(await agent.describe(house.workspaceId));
  expect(activity?.state).not.toBe("backing_off");
  const [event] = await inboxOf(house.workspaceId, analyst);
  expect(event).toMatchObject({ status: "pending", attempts: 1 });
});
