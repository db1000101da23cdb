import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, installModel, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, runsOf, userTexts } from "./fixture.ts";

const restore: (() => void)[] = [];
afterEach(() => {
  for (const undo of restore.splice(0)) undo();
});

const scripted = (...parameters: Parameters<typeof scriptedModel>) => {
  const model = scriptedModel(...parameters);
  restore.push(installModel(model));
  return model;
};

const stage = async (limits = {}) => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", limits });
  const space = await house.space("Alpha", [husam, analyst]);
  return { house, husam, analyst, space, agent: env.AGENT.getByName(analyst.id) };
};

test("[R1] a stateless run reads the space as a timeline, answers without entering it, and acknowledges its event", async () => {
  const { house, husam, analyst, space } = await stage();
  const model = scripted([
    step(call("send_message", { text: "Which quarter?" })),
    step(text("Asked.")),
    step(call("send_message", { text: "Here is Q4." })),
    step(text("Answered.")),
  ]);
  await space.post(husam, "The numbers, please");
  await ended(house.workspaceId, analyst, 1);
  await space.post(husam, "Q4");
  const [, second] = await ended(house.workspaceId, analyst, 2);
  expect(await space.texts()).toEqual([
    "Husam: The numbers, please",
    "Analyst: Which quarter?",
    "Husam: Q4",
    "Analyst: Here is Q4.",
  ]);
  const [prompt = ""] = userTexts(model.calls[2]);
  expect(prompt).toMatch(/"The numbers, please" {2}\[SEEN\]/);
  expect(prompt).toMatch(/You: "Which quarter\?" {2}\[SEEN\]/);
  expect(prompt).toMatch(/"Q4" {2}\[NEW\] ← TRIGGER/);
  expect(prompt).toContain("[auto-set from trigger]");
  expect(second).toMatchObject({ status: "completed", outcome: "answered" });
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("runs go on side by side up to the limit, each for its own message, and see each other", async () => {
  const { house, husam, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const gates = [createGate(), createGate(), createGate()];
  const model = scripted((_, index) => {
    const gate = gates[index];
    return gate ? step(call("send_message", { text: `Answer ${index}` }), waitAt(gate)) : step(text("Done."));
  });
  for (const words of ["one", "two", "three"]) await space.post(husam, words);
  await Promise.all([gates[0]?.reached, gates[1]?.reached]);
  expect((await runsOf(house.workspaceId, analyst)).map((run) => run.status)).toEqual(["running", "running"]);
  expect(model.calls).toHaveLength(2);
  expect(userTexts(model.calls[1])[0]).toMatch(/ACTIVE RUNS:\n.*\(running\).*"one"\n.*\(this run\).*"two"/);
  for (const gate of gates) gate.open();
  const runs = await ended(house.workspaceId, analyst, 3);
  expect(runs.map((run) => run.trigger.text)).toEqual(["one", "two", "three"]);
  expect(await space.texts()).toHaveLength(6);
});

test("what a run that failed took is [NEW] again, and what was acknowledged beside it stays [SEEN]", async () => {
  const { house, husam, analyst, space } = await stage({ maxConcurrentRuns: 1, maxSteps: 1 });
  const model = scripted([step(text("Read one.")), step(text("Read two.")), step(text("Read three."))]);
  for (const [index, words] of ["one", "two", "three"].entries()) {
    await space.post(husam, words);
    await ended(house.workspaceId, analyst, index + 1);
  }
  const marks = userTexts(model.calls[2])[0]
    ?.match(/\[(SEEN|NEW)\]/g)
    ?.slice(-3);
  expect(marks).toEqual(["[SEEN]", "[SEEN]", "[NEW]"]);
});

test("[R5] a run absorbs another: that one stops at once, and its message is answered for by this one", async () => {
  const { house, husam, analyst, space } = await stage({ maxConcurrentRuns: 2 });
  const gate = createGate();
  let firstRunId = "";
  scripted((options, index) => {
    if (index === 0) return step(call("send_message", { text: "never said" }), waitAt(gate));
    const results = options.prompt.filter((message) => message.role === "tool");
    if (results.length === 0) return step(call("absorb_run", { runId: firstRunId }));
    if (results.length === 1) return step(call("send_message", { text: "Both, together." }));
    return step(text("Answered both."));
  });
  await space.post(husam, "one");
  await gate.reached;
  firstRunId = (await runsOf(house.workspaceId, analyst))[0]?.id ?? "";
  await space.post(husam, "two");
  const [first, second] = await ended(house.workspaceId, analyst, 2);
  gate.open();
  expect(first?.status).toBe("absorbed");
  expect(second).toMatchObject({ status: "completed", outcome: "answered" });
  expect(await space.texts()).toEqual(["Husam: one", "Husam: two", "Analyst: Both, together."]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[S4] stopping or absorbing what is no active run of one's own is answered with the reason, and the run goes on", async () => {
  const { house, husam, analyst, space } = await stage();
  const other = await house.agent({ name: "Other", continuity: "timeline" });
  const model = scripted([
    step(call("absorb_run", { runId: "run_of_another" })),
    step(call("stop_run", { runId: other.id })),
    step(call("skip", {})),
    step(call("get_my_runs", {})),
    step(text("No.")),
  ]);
  await space.post(husam, "Try it");
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run?.status).toBe("completed");
  expect(run?.steps.map((each) => each.toolCalls[0]?.status)).toEqual([
    "error",
    "error",
    "error",
    "complete",
    undefined,
  ]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("get_my_runs lists yours");
  expect(JSON.stringify(model.calls[4]?.prompt)).toContain("thisRun");
});

test("what the agent did in silence in an earlier run shows between the messages, to it alone", async () => {
  const { house, husam, analyst, space } = await stage();
  const model = scripted([
    step(call("set_memories", { memories: [{ key: "quarter", value: "Q4" }] })),
    step(text("Kept.")),
    step(text("Read.")),
  ]);
  await space.post(husam, "It is Q4");
  await ended(house.workspaceId, analyst, 1);
  await space.post(husam, "Thanks");
  await ended(house.workspaceId, analyst, 2);
  const [prompt = ""] = userTexts(model.calls[2]);
  expect(prompt.indexOf("It is Q4")).toBeLessThan(prompt.indexOf("You: called set_memories("));
  expect(prompt.indexOf("You: called set_memories(")).toBeLessThan(prompt.indexOf('"Thanks"'));
  expect(prompt).toContain('"quarter": "Q4"');
});

test("the runs API shows the exact input of each step of a timeline run, and the context what the next would be", async () => {
  const { house, husam, analyst, space, agent } = await stage();
  const model = scripted([step(call("send_message", { text: "Hello." })), step(text("Greeted."))]);
  await space.post(husam, "Hi");
  const [listed] = await ended(house.workspaceId, analyst, 1);
  const run = unwrap(await agent.run(house.workspaceId, listed?.id ?? ""));
  for (const [index, each] of run.steps.entries()) {
    expect(model.calls[index]?.prompt[0]).toMatchObject({ role: "system", content: each.input?.instructions });
    expect(each.input?.messages).toHaveLength((model.calls[index]?.prompt.length ?? 0) - 1);
  }
  const view = unwrap(await agent.context(house.workspaceId));
  expect(view.instructions).toContain("TRIGGER says why you run now");
});

test("a change of continuity takes effect once what runs has ended", async () => {
  const { house, husam, analyst, space, agent } = await stage();
  const gate = createGate();
  const model = scripted([step(waitAt(gate), text("Late.")), step(text("As one mind."))]);
  await space.post(husam, "one");
  await gate.reached;
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness" }));
  await space.post(husam, "two");
  await vi.waitUntil(async () => (await inboxOf(house.workspaceId, analyst)).length === 2);
  expect(model.calls).toHaveLength(1);
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  expect(userTexts(model.calls[1])[0]).toMatch(/^INBOX \(1 event/);
});
