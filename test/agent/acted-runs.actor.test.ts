import { env } from "cloudflare:workers";
import { describe, expect, inject, test, vi } from "vitest";
import { maxAttempts } from "../../src/agent/bounds.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import { CreateBlock } from "../../src/protocol/block.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import {
  apiError,
  call,
  refusal,
  type ScriptedPart,
  type ScriptedStep,
  scriptedModel,
  step,
  text,
  waitAt,
} from "../support/scripted-model.ts";
import { eachTest, freshPath, playWith, requestsTo } from "./calls/scene.ts";
import { ended, inboxOf, openHouse, openScene, passTime, runsOf, userTexts } from "./fixture.ts";

eachTest();

const rejected = (): ScriptedStep => refusal(apiError(400));

const maxTokensPerDay = 50_000;

type Continuity = "timeline" | "consciousness";

/** An agent that pays a refund and says so in its first step; what its model does next is for the test. */
const refunding = async (continuity: Continuity, next: ScriptedStep[], billedTokens = 100) => {
  const path = freshPath();
  const { tools } = AgentConfig.parse({
    name: "Worker",
    tools: [
      {
        name: "refund",
        description: "Pays",
        executionType: "gateway",
        visible: false,
        execution: { url: `${inject("remote")}${path}`, method: "POST", body: {} },
        inputSchema: { type: "object" },
      },
    ],
  });
  const { house, husam, analyst, space } = await openScene({ continuity, tools, limits: { maxTokensPerDay } });
  const enter: ScriptedPart[] = continuity === "timeline" ? [] : [call("enter_space", { spaceId: space.id })];
  const paid: ScriptedStep = {
    ...step(...enter, call("refund", {}), call("send_message", { text: "Refunded." })),
    usage: { inputTokens: billedTokens, outputTokens: 10 },
  };
  const model = scriptedModel([paid, ...next]);
  playWith(model);
  await space.post(husam, "Refund me");
  const agent = env.AGENT.getByName(analyst.id);
  const { workspaceId } = house;
  return {
    model,
    space,
    agent,
    workspaceId,
    refunds: async () => (await requestsTo(path)).length,
    runs: () => runsOf(workspaceId, analyst),
    inbox: () => inboxOf(workspaceId, analyst),
    ended: () => ended(workspaceId, analyst, 1),
    /** Waits until the model was asked so often and the run rests, then lets its pause pass. */
    triedAgain: async (calls: number) => {
      await vi.waitFor(async () => {
        expect(model.calls).toHaveLength(calls);
        expect(unwrap(await agent.describe(workspaceId)).activity?.state).toBe("backing_off");
      });
      await passTime(analyst, 60_000);
    },
  };
};

const said = ["Husam: Refund me", "Analyst: Refunded."];

describe.each<Continuity>(["timeline", "consciousness"])("a %s that has acted", (continuity) => {
  test("[R2] [R3] [R4] goes on from its journal once its model fails for good; repeats nothing", async () => {
    const { triedAgain, refunds, space, ...scene } = await refunding(continuity, [
      rejected(),
      rejected(),
      step(text("Done.")),
    ]);
    await triedAgain(2);
    await triedAgain(3);
    expect(await scene.ended()).toMatchObject([{ status: "completed", outcome: "answered" }]);
    expect([await refunds(), await space.texts(), await scene.inbox()]).toEqual([1, said, []]);
  });

  test("[R1] [R2] [R4] is given up after five tries: its event is dead and only retried by hand", async () => {
    const { triedAgain, refunds, space, ...scene } = await refunding(
      continuity,
      Array.from({ length: maxAttempts }, rejected),
    );
    for (let tries = 1; tries < maxAttempts; tries += 1) await triedAgain(tries + 1);
    expect(await scene.ended()).toMatchObject([{ status: "failed", error: { code: "model_rejected" } }]);
    expect(scene.model.calls).toHaveLength(1 + maxAttempts);
    const [dead] = await scene.inbox();
    expect(dead).toMatchObject({ status: "dead", attempts: maxAttempts, lastError: { code: "model_rejected" } });
    expect([await refunds(), await space.texts()]).toEqual([1, said]);
    scene.model.push(step(text("It was paid before.")));
    unwrap(await scene.agent.retryEvent(scene.workspaceId, dead?.eventId ?? ""));
    await vi.waitFor(async () => expect(await scene.runs()).toHaveLength(2));
    await scene.ended();
    expect([await refunds(), await scene.inbox()]).toEqual([1, []]);
  });

  test("[R2] [R4] is given up at once when what its model answers is nonsense", async () => {
    const { refunds, space, ...scene } = await refunding(
      continuity,
      Array.from({ length: 3 }, () => step(call("fly", {}))),
    );
    expect(await scene.ended()).toMatchObject([{ status: "failed", error: { code: "model_nonsense" } }]);
    expect(await scene.inbox()).toMatchObject([{ status: "dead" }]);
    expect([await refunds(), await space.texts()]).toEqual([1, said]);
  });

  test("[R2] [B2] waits for the budget's reset where it stopped, and does nothing again", async () => {
    const { refunds, space, agent, workspaceId, ...scene } = await refunding(continuity, [], maxTokensPerDay);
    const activity = await vi.waitFor(async () => {
      const { activity: now } = unwrap(await agent.describe(workspaceId));
      expect(now?.state).toBe("budget_exhausted");
      return now;
    });
    expect(activity?.since).toBe(activity?.lastError?.at);
    expect(scene.model.calls).toHaveLength(1);
    scene.model.push(step(text("Done.")));
    unwrap(await agent.update(workspaceId, { limits: { maxTokensPerDay: 1_000_000 } }));
    expect(await scene.ended()).toMatchObject([{ status: "completed", outcome: "answered" }]);
    expect([await refunds(), await space.texts(), await scene.inbox()]).toEqual([1, said, []]);
  });
});

test.for(["stop_run", "block_pin", "block_unpin", "block_viewport"])(
  "[R2] [R3] after %s a run goes on if its model fails; later runs read of it",
  async (tool) => {
    const house = await openHouse();
    const { workspaceId } = house;
    const husam = await house.person("Husam");
    const limits = { maxConcurrentRuns: 2 };
    const analyst = await house.agent({ name: "Analyst", continuity: "timeline", limits });
    const space = await house.space("Alpha", [husam, analyst]);
    const notes = CreateBlock.parse({
      label: "notes",
      type: "working",
      content: "As it was.",
      pinned: tool === "block_unpin",
    });
    const agent = env.AGENT.getByName(analyst.id);
    unwrap(await agent.createBlock(workspaceId, notes, "system"));
    const gate = createGate();
    let input: object = { label: "notes" };
    const model = scriptedModel((_, index) => {
      if (index === 0) return step(waitAt(gate), text("Waited."));
      if (index === 1) return step(call(tool, input));
      if (index === 2) vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 1000 });
      return index === 2 ? rejected() : step(text("Done."));
    });
    playWith(model);
    await space.post(husam, "First");
    await gate.reached;
    if (tool === "stop_run") input = { runId: (await runsOf(workspaceId, analyst))[0]?.id };
    await space.post(husam, "Second");
    await vi.waitFor(() => expect(model.calls).toHaveLength(3));
    gate.open();
    await vi.waitFor(async () => {
      const second = (await runsOf(workspaceId, analyst)).find(({ trigger }) => trigger.text === "Second");
      const { activity } = unwrap(await agent.describe(workspaceId));
      expect([activity?.state, activity?.since === second?.startedAt]).toEqual(["backing_off", false]);
    });
    await passTime(analyst, 60_000);
    const runs = await ended(workspaceId, analyst, 2);
    expect(runs[1]).toMatchObject({
      status: "completed",
      steps: [{ toolCalls: [{ name: tool, status: "complete" }] }, {}],
    });
    await space.post(husam, "Third");
    await ended(workspaceId, analyst, 3);
    expect(userTexts(model.calls.at(-1)).join("\n")).toContain(`You: called ${tool}(`);
  },
);
