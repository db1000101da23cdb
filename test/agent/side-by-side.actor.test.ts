import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { createGate, type Gate } from "../support/gate.ts";
import { question } from "../support/question.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, holdSpeech, inboxOf, openHouse, runsOf, scripted, userTexts, waits } from "./fixture.ts";

const stage = async (limits = {}, wakePolicy: "every_message" | "addressed" = "every_message") => {
  const house = await openHouse();
  const [husam, designer] = [await house.person("Husam"), await house.person("Designer")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", messaging: "threaded", limits });
  const space = await house.space("Alpha", [husam, designer, analyst]);
  if (wakePolicy !== "every_message") {
    unwrap(await space.stub().update({ kind: "key", workspaceId: house.workspaceId, keyId: "key" }, { wakePolicy }));
  }
  return { house, husam, designer, analyst, space, agent: env.AGENT.getByName(analyst.id) };
};

test("[R7] a cycle is alone, though a run of the timeline that was before still waits", async () => {
  const { house, husam, designer, analyst, space, agent } = await stage();
  const gate = createGate();
  const model = scripted([
    step(call("send_message", { text: "@Designer?", wait: true })),
    step(waitAt(gate), text("As one mind.")),
    step(text("The answer came.")),
    step(text("And the other.")),
  ]);
  await space.post(husam, "Ask");
  await waits(house.workspaceId, analyst);
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness" }));
  await space.post(husam, "one");
  await gate.reached;
  await space.post(husam, "two");
  await space.post(designer, "Yes");
  await vi.waitUntil(async () => (await inboxOf(house.workspaceId, analyst)).length === 4);
  expect((await runsOf(house.workspaceId, analyst)).map((run) => run.status)).toEqual(["running", "waiting_reply"]);
  expect(model.calls).toHaveLength(2);
  gate.open();
  await vi.waitFor(async () =>
    expect((await runsOf(house.workspaceId, analyst)).map((run) => run.status)).toEqual(Array(3).fill("completed")),
  );
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[C10] where no more runs go on at a time, nobody's next one begins before another's first", async () => {
  const { house, husam, designer, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const gates = [createGate(), createGate()];
  scripted((_, index) => step(...(gates[index] ? [waitAt(gates[index])] : []), text("Read.")));
  for (const words of ["one", "two", "three"]) await space.post(husam, words);
  await Promise.all(gates.map((gate) => gate.reached));
  await space.post(designer, "four");
  gates[0]?.open();
  const begun = async () => (await runsOf(house.workspaceId, analyst)).map(({ trigger }) => trigger.text).reverse();
  await vi.waitFor(async () => expect(await begun()).toEqual(["one", "two", "four", "three"]));
  gates[1]?.open();
});

test("[B2] runs side by side reserve and are billed each for itself", async () => {
  const { house, husam, analyst, space, agent } = await stage({ maxConcurrentRuns: 2 });
  const gates = [createGate(), createGate()];
  scripted((_, index) => {
    const gate = gates[index];
    return { ...step(...(gate ? [waitAt(gate)] : []), text("Read.")), usage: { inputTokens: 700, outputTokens: 30 } };
  });
  await space.post(husam, "one");
  await space.post(husam, "two");
  await Promise.all(gates.map((gate) => gate.reached));
  gates[0]?.open();
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst)).at(-1)?.status).toBe("completed"));
  // The other's estimate is still reserved.
  expect(unwrap(await agent.describe(house.workspaceId)).activity?.tokensToday).toBeGreaterThan(1460);
  gates[1]?.open();
  await ended(house.workspaceId, analyst, 2);
  expect(unwrap(await agent.describe(house.workspaceId)).activity?.tokensToday).toBe(1460);
});

test("[R1] what a cycle left is acknowledged by the first run after the agent became stateless", async () => {
  const { house, husam, analyst, space, agent } = await stage({}, "addressed");
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness" }));
  scripted([step(text("Read."))]);
  await space.post(husam, "To nobody");
  await vi.waitUntil(async () => (await inboxOf(house.workspaceId, analyst)).length === 1);
  unwrap(await agent.update(house.workspaceId, { continuity: "timeline" }));
  await space.post(husam, "@Analyst look");
  await ended(house.workspaceId, analyst, 1);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[S4] a question that its space did not take is waited for by nobody", async () => {
  const { house, husam, analyst, space } = await stage();
  const elsewhere = await house.space("Beta", [husam]);
  const foreign = await elsewhere.post(husam, "Elsewhere");
  const gate = createGate();
  scripted([
    step(call("send_reply", { replyToMessageId: foreign.id, text: "@Designer?", wait: true })),
    step(waitAt(gate), text("Not asked.")),
    step(text("Read.")),
  ]);
  await space.post(husam, "Ask");
  await gate.reached;
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  expect((await runsOf(house.workspaceId, analyst)).map((run) => run.status)).toEqual(["completed"]);
});

test("[R5] what an absorbed run was saying when stopped is told to the run that absorbs it", async () => {
  const { house, husam, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const saying = createGate();
  holdSpeech(saying, "after");
  let firstRunId = "";
  const model = scripted((options, index) => {
    if (index === 0) return step(call("send_message", { text: "Half of it." }));
    if (options.prompt.some((message) => message.role === "tool")) return step(text("The rest was said."));
    return step(call("absorb_run", { runId: firstRunId }));
  });
  await space.post(husam, "one");
  await saying.reached;
  firstRunId = (await runsOf(house.workspaceId, analyst))[0]?.id ?? "";
  await space.post(husam, "two");
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst)).at(-1)?.status).toBe("absorbed"));
  saying.open();
  const [absorbed] = await ended(house.workspaceId, analyst, 2);
  expect(JSON.stringify(model.calls.at(-1)?.prompt.at(-1))).toContain("Half of it.");
  expect(absorbed?.steps[0]?.toolCalls).toMatchObject([{ status: "complete", output: { success: true } }]);
});

test("[R5] of two runs that absorb each other one does, and takes over the other's event", async () => {
  const { house, husam, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const gates = [createGate(), createGate()];
  const runIds: string[] = [];
  scripted((options, index) => {
    const gate = gates[index];
    if (gate) return step(waitAt(gate), call("get_memories", {}));
    const results = options.prompt.filter((message) => message.role === "tool").length;
    const isFirst = userTexts(options)[0]?.includes('"one"  [NEW] ← TRIGGER') ?? false;
    if (results === 1) return step(call("absorb_run", { runId: runIds[isFirst ? 1 : 0] ?? "" }));
    return step(text("Done."));
  });
  await space.post(husam, "one");
  await space.post(husam, "two");
  await Promise.all(gates.map((gate) => gate.reached));
  runIds.push(...(await runsOf(house.workspaceId, analyst)).map((run) => run.id).reverse());
  for (const gate of gates) gate.open();
  const runs = await ended(house.workspaceId, analyst, 2);
  expect(runs.map((run) => run.status).sort()).toEqual(["absorbed", "completed"]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[S4] a question whose space cannot be reached is waited for by nobody", async () => {
  const { house, husam, designer, analyst, space } = await stage();
  const { append } = Space.prototype;
  const down = vi.spyOn(Space.prototype, "append").mockImplementation(async function (this: Space, message) {
    if (message.text === "@Husam?") throw new Error("overloaded");
    return append.call(this, message);
  });
  onTestFinished(() => down.mockRestore());
  scripted([
    step(call("send_message", { text: "@Husam?", wait: true })),
    step(call("send_message", { text: "@Designer?", wait: true })),
    step(text("He is there.")),
  ]);
  await space.post(husam, "Ask");
  await vi.waitFor(
    async () => expect((await runsOf(house.workspaceId, analyst)).at(-1)?.status).toBe("waiting_reply"),
    {
      timeout: 10_000,
    },
  );
  await space.post(designer, "Yes");
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst)).at(-1)?.status).toBe("completed"));
});

test("a tool call is no reply: who was asked is waited for until it says something", async () => {
  const { house, husam, designer, analyst, space } = await stage();
  scripted([
    step(call("send_message", { text: "@Designer?", wait: true })),
    step(text("He still waits.")),
    step(text("It is there.")),
  ]);
  const statuses = async () => (await runsOf(house.workspaceId, analyst)).map(({ status }) => status);
  await space.post(husam, "Ask");
  await waits(house.workspaceId, analyst);
  await question(house.workspaceId, space.id, designer.id);
  await space.post(husam, "Still there?");
  await vi.waitFor(async () => expect(await statuses()).toEqual(["completed", "waiting_reply"]));
  await space.post(designer, "Yes");
  await vi.waitFor(async () => expect(await statuses()).toEqual(["completed", "completed"]));
});

/** Nothing is delivered to agents until the gate is open. */
const holdDelivery = (gate: Gate) => {
  const { deliver } = Agent.prototype;
  const spy = vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, delivery) {
    gate.reach();
    await gate.opened;
    return deliver.call(this, delivery);
  });
  onTestFinished(() => spy.mockRestore());
};

test.each([
  ["once the run waits", "waiting"],
  ["while it is asked", "asking"],
])("[R7] what was said before a question and delivered %s is no answer to it", async (_, when) => {
  const { house, husam, designer, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const [thinking, delivering, asking] = [createGate(), createGate(), createGate()];
  const model = scripted((options, index) => {
    if (index === 0) return step(waitAt(thinking), call("send_message", { text: "@Designer good?", wait: true }));
    return step(text(userTexts(options)[0]?.includes("RESUME") ? "They agree." : "Read."));
  });
  await space.post(husam, "Ask");
  await thinking.reached;
  holdDelivery(delivering);
  await space.post(designer, "An old remark");
  await delivering.reached;
  if (when === "asking") holdSpeech(asking, "after");
  thinking.open();
  if (when === "asking") await asking.reached;
  else await waits(house.workspaceId, analyst);
  delivering.open();
  if (when === "asking") {
    await vi.waitUntil(async () => (await inboxOf(house.workspaceId, analyst)).length === 2);
    asking.open();
  }
  await vi.waitFor(async () =>
    expect((await runsOf(house.workspaceId, analyst)).map((run) => run.status)).toEqual(["completed", "waiting_reply"]),
  );
  expect(userTexts(model.calls[1])[0]).toMatch(/"An old remark" {2}\[NEW\] ← TRIGGER/);
  await space.post(designer, "Yes");
  const runs = await ended(house.workspaceId, analyst, 2);
  await vi.waitFor(() => expect(userTexts(model.calls[2])[0]).toMatch(/"Yes" {2}\[NEW\] ← REPLY/));
  expect(runs).toHaveLength(2);
  await vi.waitFor(async () => expect(await inboxOf(house.workspaceId, analyst)).toEqual([]));
});
