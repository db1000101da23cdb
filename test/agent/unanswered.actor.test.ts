import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { ended, openHouse, openScene, runsOf, scripted, userTexts, waits } from "./fixture.ts";

/** Later runs know what was handled without an answer. Words that were said stay said, whatever else happens. */
afterEach(() => {
  disarmFaults();
  vi.useRealTimers();
});

test("[R5] a living agent whose cycle was canceled knows it read the message and said nothing", async () => {
  const { house, husam, analyst, space, agent, ask } = await openScene();
  const gate = createGate();
  const model = scripted([step(waitAt(gate)), step(text("Read."))]);
  await space.post(husam, "Tell Ahmad everything");
  await gate.reached;
  const [run] = await runsOf(house.workspaceId, analyst);
  unwrap(await agent.cancelRun(house.workspaceId, run?.id ?? ""));
  await ask("Never mind", 2);
  expect(userTexts(model.calls[1]).at(-1)).toMatch(
    /^READ, NOTHING SAID:\n .*"Tell Ahmad everything".*\nINBOX \(1 event,/,
  );
});

test.each([
  ["made a block", true, call("block_create", { label: "shopping", content: "milk" })],
  ["kept a fact", true, call("recall", { op: "insert", content: "Sara is allergic to nuts" })],
  ["only looked something up", false, call("recall", { op: "search", query: "nuts" })],
])("[R2] of a canceled cycle that %s a living agent remembers: %s", async (_, isKept, done) => {
  const { house, husam, analyst, space, agent, ask } = await openScene();
  const gate = createGate();
  const model = scripted([step(done), step(waitAt(gate)), step(text("Read."))]);
  await space.post(husam, "Do it");
  await gate.reached;
  const [run] = await runsOf(house.workspaceId, analyst);
  unwrap(await agent.cancelRun(house.workspaceId, run?.id ?? ""));
  await ask("Well?", 2);
  const roles = model.calls[2]?.prompt.map(({ role }) => role);
  expect(roles).toEqual(isKept ? ["system", "user", "assistant", "tool", "user"] : ["system", "user"]);
});

test("[B3] a living agent that reached a limit remembers what it did until then", async () => {
  const { ask } = await openScene({ limits: { maxSteps: 1 } });
  const model = scripted([step(call("get_memories", {})), step(text("Read."))]);
  const [first] = await ask("What do you know?");
  expect(first).toMatchObject({ status: "failed", error: { code: "step_limit" } });
  await ask("Hello?", 2);
  const roles = model.calls[1]?.prompt.map(({ role }) => role);
  expect(roles).toEqual(["system", "user", "assistant", "tool", "user"]);
  expect(userTexts(model.calls[1])[0]).toContain('"What do you know?"');
});

test("[B2] a change of config in the millisecond in which a budget ran out lets the agent go on", async () => {
  const { house, analyst, agent, ask } = await openScene({ limits: { maxTokensPerDay: 1000 } });
  scripted([step(text("Read."))]);
  vi.setSystemTime(Date.now());
  await ask("What does it cost?");
  unwrap(await agent.update(house.workspaceId, { limits: { maxTokensPerDay: 1_000_000 } }));
  const [, second] = await ended(house.workspaceId, analyst, 2);
  expect(second?.status).toBe("completed");
});

test("[R2] an agent that crashed after it spoke, and left the space, is told that it was said", async () => {
  const { house, husam, analyst, space } = await openScene({ continuity: "timeline" });
  const model = scripted([step(call("send_message", { text: "Said." })), step(text("Done."))]);
  const crashed = armFault("agent.after-effect");
  await space.post(husam, "Say it");
  await crashed;
  unwrap(await space.stub().removeMember(house.key, analyst.id));
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(await space.texts()).toEqual(["Husam: Say it", "Analyst: Said."]);
  expect(run?.steps[0]?.toolCalls[0]).toMatchObject({ status: "complete", output: { success: true } });
  expect(model.calls).toHaveLength(2);
});

test("a change of messaging takes effect with the next run; a run under way keeps its tools", async () => {
  const { house, husam, analyst, space, agent, ask } = await openScene({
    continuity: "timeline",
    messaging: "threaded",
  });
  const gate = createGate();
  scripted(async (_, index) => {
    // The post may not have answered yet.
    const [asked] = await space.messages();
    const reply = call("send_reply", { replyToMessageId: asked?.id ?? "", text: "To you." });
    return index === 0 ? step(waitAt(gate), reply) : step(index === 2 ? reply : text("Done."));
  });
  await space.post(husam, "Answer me");
  await gate.reached;
  unwrap(await agent.update(house.workspaceId, { messaging: "simple" }));
  gate.open();
  const [first] = await ended(house.workspaceId, analyst, 1);
  expect(first?.steps[0]?.toolCalls[0]?.status).toBe("complete");
  const [, second] = await ask("And again", 2);
  expect(second?.steps[0]?.toolCalls[0]).toMatchObject({
    status: "error",
    output: { error: { code: "tool_unknown" } },
  });
});

test("an answer in the space that it is given in has no origin, though the run began elsewhere", async () => {
  const house = await openHouse();
  const [husam, carol] = [await house.person("Husam"), await house.person("Carol")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline", messaging: "threaded" });
  const alpha = await house.space("Alpha", [husam, analyst]);
  const beta = await house.space("Beta", [carol, analyst]);
  scripted([
    step(call("enter_space", { spaceId: beta.id })),
    step(call("send_message", { text: "@Carol is it ready?", wait: true })),
    step(call("send_message", { text: "Thank you." })),
    step(text("Done.")),
  ]);
  await alpha.post(husam, "Ask Carol whether it is ready");
  await waits(house.workspaceId, analyst);
  await beta.post(carol, "It is");
  await vi.waitFor(async () => expect(await beta.texts()).toContain("Analyst: Thank you."));
  const [question, , thanks] = await beta.messages();
  expect(question?.origin).toMatchObject({ spaceId: alpha.id });
  expect(thanks?.origin).toBeUndefined();
});
