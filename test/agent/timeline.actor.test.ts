import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, openScene, runsOf, scripted, userTexts, waits } from "./fixture.ts";

const stage = (limits = {}) => openScene({ continuity: "timeline", limits });

test("[R1] a stateless run reads the space as a timeline, answers, and acknowledges its event", async () => {
  const { house, analyst, space, ask } = await stage();
  const model = scripted([
    step(call("send_message", { text: "Which quarter?" })),
    step(text("Asked.")),
    step(call("send_message", { text: "Here is Q4." })),
    step(text("Answered.")),
  ]);
  await ask("The numbers, please");
  const [, second] = await ask("Q4", 2);
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

test("what a failed run took is [NEW] again, and what was acknowledged beside it stays [SEEN]", async () => {
  const { ask } = await stage({ maxConcurrentRuns: 1, maxSteps: 1 });
  const model = scripted([step(text("Read one.")), step(text("Read two.")), step(text("Read three."))]);
  for (const [index, words] of ["one", "two", "three"].entries()) {
    await ask(words, index + 1);
  }
  const marks = userTexts(model.calls[2])[0]
    ?.match(/\[(SEEN|NEW)\]/g)
    ?.slice(-3);
  expect(marks).toEqual(["[SEEN]", "[SEEN]", "[NEW]"]);
});

test("[R5] a run absorbs another, which stops at once, and answers for its message", async () => {
  const { house, husam, analyst, space, ask } = await stage({ maxConcurrentRuns: 2 });
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
  const [first, second] = await ask("two", 2);
  gate.open();
  expect(first?.status).toBe("absorbed");
  expect(second).toMatchObject({ status: "completed", outcome: "answered" });
  expect(await space.texts()).toEqual(["Husam: one", "Husam: two", "Analyst: Both, together."]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[S4] stopping or absorbing a run that is not its own and active is answered with why", async () => {
  const { house, ask } = await stage();
  const other = await house.agent({ name: "Other", continuity: "timeline" });
  const model = scripted([
    step(call("absorb_run", { runId: "run_of_another" })),
    step(call("stop_run", { runId: other.id })),
    step(call("skip", {})),
    step(call("get_my_runs", {})),
    step(text("No.")),
  ]);
  const [run] = await ask("Try it");
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
  const { ask } = await stage();
  const model = scripted([
    step(call("set_memories", { memories: [{ key: "quarter", value: "Q4" }] })),
    step(text("Kept.")),
    step(text("Read.")),
  ]);
  await ask("It is Q4");
  await ask("Thanks", 2);
  const [prompt = ""] = userTexts(model.calls[2]);
  expect(prompt.indexOf("It is Q4")).toBeLessThan(prompt.indexOf("You: called set_memories("));
  expect(prompt.indexOf("You: called set_memories(")).toBeLessThan(prompt.indexOf('"Thanks"'));
  expect(prompt).toContain('"quarter": "Q4"');
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

const threaded = async () => {
  const house = await openHouse();
  const [husam, designer, ahmad] = [
    await house.person("Husam"),
    await house.person("Designer"),
    await house.person("Ahmad"),
  ];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", messaging: "threaded" });
  const space = await house.space("Alpha", [husam, designer, ahmad, analyst]);
  return { house, husam, designer, ahmad, analyst, space, agent: env.AGENT.getByName(analyst.id) };
};

test("[R7] a run waits for all whom it asked, then goes on anew; the answers begin no run", async () => {
  const { house, husam, designer, ahmad, analyst, space } = await threaded();
  const model = scripted([
    step(call("send_message", { text: "@Designer @Ahmad is the mockup good?", wait: true })),
    step(call("send_message", { text: "All agree." })),
    step(text("Reported.")),
    step(text("Not for me.")),
  ]);
  const watching = await space.watch(husam);
  await space.post(husam, "Ask them");
  await waits(house.workspaceId, analyst);
  await vi.waitUntil(() => watching.some((frame) => frame.type === "run.waiting_reply"));
  const [, asked] = await space.messages();
  expect(asked).toMatchObject({ expectsReply: true, mentions: [designer.id, ahmad.id] });

  await space.post(designer, "Looks good");
  await waits(house.workspaceId, analyst);
  expect(model.calls).toHaveLength(1);
  await space.post(ahmad, "Ship it");
  const [run, ...others] = await ended(house.workspaceId, analyst, 1);
  expect(others).toEqual([]);
  expect(run).toMatchObject({ status: "completed", outcome: "answered" });
  expect(model.calls).toHaveLength(3);
  const [prompt = ""] = userTexts(model.calls[1]);
  expect(prompt).toMatch(/"Looks good" {2}\[NEW\] ← REPLY/);
  expect(prompt).toMatch(/← RESUME: .*"Designer".*"Ahmad".* replied\. Continue from here\./);
  expect(prompt).toContain("THIS RUN SO FAR:");
  // A fresh invocation: no call of the first one dangles in it.
  expect(model.calls[1]?.prompt.map((message) => message.role)).toEqual(["system", "user"]);
  expect(await space.texts()).toEqual([
    "Husam: Ask them",
    "Analyst: @Designer @Ahmad is the mockup good?",
    "Designer: Looks good",
    "Ahmad: Ship it",
    "Analyst: All agree.",
  ]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("while a run waits, others go on, and they see whom it waits for", async () => {
  const { house, husam, designer, analyst, space } = await threaded();
  const model = scripted((options, index) => {
    if (index === 0) return step(call("send_message", { text: "@Designer please review", wait: true }));
    if (index === 1) return step(text("Nothing to do."));
    return options.prompt.some((message) => message.role === "tool")
      ? step(text("Done."))
      : step(call("send_message", { text: "Thanks." }));
  });
  await space.post(husam, "Have it reviewed");
  await waits(house.workspaceId, analyst);
  await space.post(husam, "By the way, good morning");
  await vi.waitFor(async () => expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("completed"));
  expect(userTexts(model.calls[1])[0]).toMatch(
    /\(waiting_reply\) — sent "@Designer please review" in "Alpha", waiting for "Designer"/,
  );
  await space.post(designer, "Reviewed");
  const runs = await ended(house.workspaceId, analyst, 2);
  await vi.waitFor(async () => expect(await space.texts()).toContain("Analyst: Thanks."));
  expect(runs).toHaveLength(2);
});

test("[R5] a waiting run can be canceled, and a later answer begins a run of its own", async () => {
  const { house, husam, designer, analyst, space, agent } = await threaded();
  scripted([step(call("send_message", { text: "@Designer?", wait: true })), step(text("Read."))]);
  await space.post(husam, "Ask");
  await waits(house.workspaceId, analyst);
  const [waiting] = await runsOf(house.workspaceId, analyst);
  expect(unwrap(await agent.cancelRun(house.workspaceId, waiting?.id ?? "")).status).toBe("canceled");
  await space.post(designer, "Yes?");
  const runs = await ended(house.workspaceId, analyst, 2);
  expect(runs.map((run) => run.status)).toEqual(["canceled", "completed"]);
});
