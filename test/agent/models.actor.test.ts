import { expect, test, vi } from "vitest";
import { maxStepBytes } from "../../src/agent/bounds.ts";
import type { ServerFrame } from "../../src/protocol/events.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import {
  answer,
  apiError,
  begunCall,
  call,
  reasoning,
  refusal,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { ended, openScene, passTime, runsOf, scripted } from "./fixture.ts";

/** What models and their providers do oddly. */
const stage = async () => {
  const scene = await openScene();
  const { agent, house } = scene;
  return { ...scene, tokensToday: async () => unwrap(await agent.describe(house.workspaceId)).activity?.tokensToday };
};

const given = (frames: ServerFrame[], type: ServerFrame["type"]) => frames.filter((frame) => frame.type === type);

test("[D4] words whose call never came are dropped with their step, not with the run", async () => {
  const { house, husam, analyst, space } = await stage();
  const gate = createGate();
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(begunCall("send_message", '{"text":"Well, '), call("get_memories", {})),
    step(waitAt(gate), text("Nothing to say.")),
  ]);
  const watching = await space.watch(husam);
  await space.post(husam, "Speak");
  await gate.reached;
  await vi.waitFor(() => expect(given(watching, "tool-call.error")).toHaveLength(1));
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  expect(await space.texts()).toEqual(["Husam: Speak"]);
});

test("[D4] [B2] an empty answer is asked for again, leaves no words behind, and both are billed", async () => {
  const { house, husam, analyst, space, tokensToday, ask } = await stage();
  const gate = createGate();
  scripted([
    ...answer(space.id, "Hello."),
    { ...step(begunCall("send_message", '{"text":"Well, ')), usage: { inputTokens: 500, outputTokens: 5 } },
    { ...step(waitAt(gate), text("Silence.")), usage: { inputTokens: 400, outputTokens: 4 } },
  ]);
  await ask("One");
  const before = (await tokensToday()) ?? 0;
  const watching = await space.watch(husam);
  await space.post(husam, "Two");
  await gate.reached;
  await vi.waitFor(() => expect(given(watching, "tool-call.error")).toHaveLength(1));
  gate.open();
  await ended(house.workspaceId, analyst, 2);
  expect((await tokensToday()) ?? 0).toBe(before + 909);
});

test("[R2] two calls of one step under the same id of the provider are two calls", async () => {
  const { space, ask } = await stage();
  scripted([
    step(call("enter_space", { spaceId: space.id })),
    step(
      { type: "call", toolName: "send_message", id: "call_0", deltas: ['{"text":"One."}'] },
      { type: "call", toolName: "send_message", id: "call_0", deltas: ['{"text":"Two."}'] },
    ),
    step(text("Said both.")),
  ]);
  const [run] = await ask("Count");
  expect(await space.texts()).toEqual(["Husam: Count", "Analyst: One.", "Analyst: Two."]);
  const ids = run?.steps[1]?.toolCalls.map((each) => each.id) ?? [];
  expect(new Set(ids).size).toBe(2);
});

test("[B3] a model that never ends its step is stopped by an error that names the bound", async () => {
  const { ask } = await stage();
  const words = "x".repeat(8 * 1024);
  const model = scripted([step(text(...Array.from({ length: maxStepBytes / words.length + 1 }, () => words)))]);
  const [run] = await ask("Speak");
  expect(model.calls[0]?.abortSignal?.aborted).toBe(true);
  expect(run).toMatchObject({ status: "failed", error: { code: "model_nonsense" } });
  expect(run?.error?.message).toContain("maxStepBytes");
});

test("[R4] [B3] a senseless call is told to the model in few words, however long it was", async () => {
  const { ask } = await stage();
  scripted([step(call("send_message", { text: "x".repeat(60_000) })), step(text("Never mind."))]);
  const [run] = await ask("Speak");
  expect(run?.status).toBe("completed");
  expect(run?.steps[0]?.toolCalls[0]?.status).toBe("error");
  expect(JSON.stringify(run?.steps[0]?.toolCalls[0]?.output).length).toBeLessThan(2000);
});

test("[R4] a model that only reasons is asked once more and is then silent", async () => {
  const { ask } = await stage();
  const model = scripted([step(reasoning("Hm.")), step(reasoning("Hm again."))]);
  const [run] = await ask("Hello");
  expect(run).toMatchObject({ status: "completed", outcome: "silent" });
  expect(model.calls).toHaveLength(2);
});

test("[B2] a provider that refuses for hours uses up no budget", async () => {
  const { house, husam, analyst, space, agent, tokensToday } = await stage();
  const busy = refusal(apiError(429));
  const model = scripted([
    ...[busy, busy, busy],
    { ...step(text("Read.")), usage: { inputTokens: 70, outputTokens: 3 } },
  ]);
  await space.post(husam, "Hello");
  for (let faults = 1; faults <= 3; faults += 1) {
    await model.called(faults);
    await vi.waitFor(async () => {
      const { activity } = unwrap(await agent.describe(house.workspaceId));
      expect(activity?.state).toBe("backing_off");
    });
    expect(await tokensToday()).toBe(0);
    await passTime(analyst, 60_000);
  }
  await ended(house.workspaceId, analyst, 1);
  expect(await tokensToday()).toBe(73);
  expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("completed");
});

test("[S4] a call that is refused in the middle changes nothing", async () => {
  const { house, agent, ask } = await stage();
  scripted([
    step(
      call("set_memories", {
        memories: [
          { key: "a", value: "1" },
          { key: "b", value: "x".repeat(5000) },
        ],
      }),
      call("set_goals", { goals: [{ id: "first", description: "One" }, { id: "second" }] }),
    ),
    step(text("Refused.")),
  ]);
  const [run] = await ask("Remember");
  expect(run?.steps[0]?.toolCalls.map((each) => each.status)).toEqual(["error", "error"]);
  expect(unwrap(await agent.memories(house.workspaceId))).toEqual([]);
  expect(unwrap(await agent.goals(house.workspaceId))).toEqual([]);
});
