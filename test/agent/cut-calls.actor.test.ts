import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, inject, test, vi } from "vitest";
import { cancelWaitMs, maxAttempts } from "../../src/agent/bounds.ts";
import type { CallOptions } from "../../src/models/language-model.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import {
  apiError,
  call,
  refusal,
  type ScriptedPart,
  scriptedModel,
  stall,
  step,
  text,
} from "../support/scripted-model.ts";
import { shorten } from "../support/shorten.ts";
import { deploy, eachTest, freshPath, playWith, requestsTo, scene, type Tool } from "./calls/scene.ts";
import { agentStub, ended, holdSpeech, inboxOf, passTime, rowsIn, runsOf } from "./fixture.ts";

/** Calls that were cut while they were carried out: whoever goes on from there is told that they may be done. */
eachTest();

const silent = (): string => `/silent/${crypto.randomUUID()}`;

const refund = (path: string, more: object = {}): Tool => ({
  ...deploy(path, { timeoutMs: 600_000, visible: false, ...more }),
  name: "refund",
});

const unknown = "whether it took effect is not known: find out before you do it again";
const unexecuted = "the run was canceled before this call was executed";

const promptOf = (options: CallOptions | undefined): string => JSON.stringify(options?.prompt);

const rejected = refusal(apiError(400));

type Continuity = "timeline" | "consciousness";
const both = ["timeline", "consciousness"] as const;

/** The first calls of a run of either kind, so that it is where its calls show. */
const entering = (continuity: Continuity, spaceId: string): ScriptedPart[] =>
  continuity === "timeline" ? [] : [call("enter_space", { spaceId })];

/** An agent whose first step pays, which its server never answers, and would then note it. */
const paying = async (continuity: Continuity, more: object = {}, limits: { maxRunMinutes?: number } = {}) => {
  const path = silent();
  const set = await scene({ continuity, tools: [refund(path, more)], steps: [], limits });
  set.model.push(
    step(
      ...entering(continuity, set.space.id),
      call("refund", { to: "ann" }),
      call("set_memories", { memories: [{ key: "paid", value: "yes" }] }),
    ),
    step(text("I look it up first.")),
  );
  await set.space.post(set.ann, "Refund me");
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  const { workspaceId, agent, space, ann, model } = set;
  return {
    ...set,
    stub: env.AGENT.getByName(agent.id),
    /** What the agent reads when it is asked again. */
    askedAgain: async (): Promise<string> => {
      await ended(workspaceId, agent, 1);
      const calls = model.calls.length;
      await space.post(ann, "Where is it?");
      await model.called(calls + 1);
      return promptOf(model.calls.at(-1));
    },
  };
};

describe.each(both)("of a %s agent", (continuity) => {
  test.each([
    ["shows nowhere", false],
    ["shows", true],
  ])("[R3] [R5] a call that %s, canceled midway, may be done; one not begun is not", async (_, visible) => {
    const { workspaceId, agent, stub, askedAgain } = await paying(continuity, { visible });
    const [run] = await runsOf(workspaceId, agent);
    const canceled = unwrap(await stub.cancelRun(workspaceId, run?.id ?? ""));
    expect(canceled.steps[0]?.toolCalls.filter(({ name }) => name !== "enter_space")).toMatchObject([
      { name: "refund", status: "error", output: { error: { code: "outcome_unknown" } } },
      { name: "set_memories", status: "error", output: { error: { message: unexecuted } } },
    ]);
    const prompt = await askedAgain();
    expect(prompt).toContain(unknown);
    expect(prompt.includes(unexecuted)).toBe(continuity === "consciousness");
  });

  test("[R2] [R3] an event that is retried by hand is shown what may have been done for it", async () => {
    const path = `/reset/${crypto.randomUUID()}`;
    const { workspaceId, agent, ann, space, model } = await scene({ continuity, tools: [refund(path)], steps: [] });
    model.push(step(...entering(continuity, space.id), call("refund", { to: "ann" })));
    model.push(...Array.from({ length: maxAttempts }, () => rejected), step(text("I look it up first.")));
    await space.post(ann, "Refund me");
    for (let tries = 1; tries < maxAttempts; tries += 1) {
      await model.called(tries + 1);
      await vi.waitFor(async () => {
        await passTime(agent, 60_000);
        expect(model.calls.length).toBeGreaterThan(tries + 1);
      });
    }
    await ended(workspaceId, agent, 1);
    const [dead] = await inboxOf(workspaceId, agent);
    expect(dead).toMatchObject({ status: "dead" });
    const calls = model.calls.length;
    unwrap(await env.AGENT.getByName(agent.id).retryEvent(workspaceId, dead?.eventId ?? ""));
    await model.called(calls + 1);
    expect(promptOf(model.calls.at(-1))).toContain(unknown);
    expect(await requestsTo(path)).toHaveLength(1);
  });
});

test("[R3] a call answered before its run was canceled is told as answered, another as unknown", async () => {
  const pay = (name: string): Tool => ({ name, executionType: "external", visible: false });
  const { workspaceId, agent, ann, space, run } = await scene({
    tools: [pay("first"), pay("second")],
    steps: [step(call("first", {}), call("second", {}))],
  });
  await space.post(ann, "Pay both");
  const { id, steps } = await run("waiting_tool");
  const stub = env.AGENT.getByName(agent.id);
  unwrap(await stub.answerToolCall(workspaceId, steps[0]?.toolCalls[0]?.id ?? "", { result: "paid" }));
  const canceled = unwrap(await stub.cancelRun(workspaceId, id));
  expect(canceled.steps[0]?.toolCalls).toMatchObject([
    { name: "first", status: "complete", output: "paid" },
    { name: "second", status: "error", output: { error: { code: "outcome_unknown" } } },
  ]);
});

test.each(both)("[R3] [B3] a call in which the minutes of a %s run were over may be done", async (continuity) => {
  const maxRunMinutes = 7.77;
  shorten(maxRunMinutes * 60_000, 500);
  const { workspaceId, agent, askedAgain } = await paying(continuity, {}, { maxRunMinutes });
  expect(await ended(workspaceId, agent, 1)).toMatchObject([{ status: "failed", error: { code: "time_limit" } }]);
  const prompt = await askedAgain();
  expect(prompt).toContain(unknown);
  expect(prompt.includes("thought for longer than maxRunMinutes")).toBe(continuity === "consciousness");
});

test.each([
  ["runs", silent, {}, unknown],
  ["a server has", silent, { executionType: "external", execution: undefined }, unknown],
  ["people were asked about", silent, { approval: { required: true } }, unexecuted],
])("[R3] [R5] a run that absorbs another is told of a call that %s", async (_, path, more, told) => {
  const tool = { ...refund(path()), ...more };
  const { workspaceId, agent, ann, space } = await scene({ tools: [tool], steps: [] });
  let first = "";
  const model = scriptedModel(({ prompt }, index) => {
    if (index === 0) return step(call("refund", { to: "ann" }));
    const isFresh = !prompt.some(({ role }) => role === "tool");
    return isFresh ? step(call("absorb_run", { runId: first })) : step(text("Taken over."));
  });
  playWith(model);
  await space.post(ann, "Refund me");
  await vi.waitFor(async () => {
    const [run] = await runsOf(workspaceId, agent);
    expect(run?.steps[0]?.toolCalls[0]?.status).toMatch(/started|waiting/);
    first = run?.id ?? "";
  });
  if (tool.executionType === "gateway" && !("approval" in more)) {
    const url = String((tool as { execution?: { url?: string } }).execution?.url).slice(inject("remote").length);
    await vi.waitFor(async () => expect(await requestsTo(url)).toHaveLength(1));
  }
  await space.post(ann, "And the fee");
  await model.called(3);
  const [result] = model.calls[2]?.prompt.findLast(({ role }) => role === "tool")?.content ?? [];
  expect(JSON.stringify(result)).toContain(told);
  expect(JSON.stringify(result)).not.toContain(told === unknown ? unexecuted : unknown);
  await ended(workspaceId, agent, 2);
});

test("[R2] [R4] an absorbed run's cause is not begun anew when the absorbing run fails for good", async () => {
  const path = freshPath();
  const { workspaceId, agent, ann, space } = await scene({ tools: [refund(path)], steps: [] });
  let first = "";
  const model = scriptedModel(({ prompt }, index) => {
    if (index === 0) return step(call("refund", { to: "ann" }));
    if (index === 1) return step(stall);
    if (index > 3) return step(text("It is paid."));
    return prompt.some(({ role }) => role === "tool") ? rejected : step(call("absorb_run", { runId: first }));
  });
  playWith(model);
  await space.post(ann, "Refund me");
  await model.called(2);
  first = (await runsOf(workspaceId, agent))[0]?.id ?? "";
  await space.post(ann, "And the fee");
  await model.called(4);
  await vi.waitFor(async () => {
    await passTime(agent, 10_000);
    expect(model.calls.length).toBeGreaterThan(4);
  });
  const runs = await ended(workspaceId, agent, 2);
  expect(runs.map(({ status }) => status)).toEqual(["absorbed", "completed"]);
  expect(await inboxOf(workspaceId, agent)).toEqual([]);
});

/** A run that says something, of which its space takes note once the gate opens, and that another run has stopped. */
const stopping = async () => {
  const gate = createGate();
  holdSpeech(gate, "before");
  const { workspaceId, agent, ann, space } = await scene({ tools: [], steps: [] });
  const runs = () => runsOf(workspaceId, agent);
  let first = "";
  playWith(
    scriptedModel((_, index) => {
      if (index === 0) return step(call("send_message", { text: "It is done." }));
      return index === 1 ? step(call("stop_run", { runId: first })) : step(text("Ended."));
    }),
  );
  await space.post(ann, "Do it");
  await gate.reached;
  first = (await runs())[0]?.id ?? "";
  await space.post(ann, "Stop that");
  await vi.waitFor(async () => expect((await runs()).at(-1)?.status).toBe("canceled"));
  return { workspaceId, agent, stub: env.AGENT.getByName(agent.id), gate, runs, first };
};

test.each(["is canceled", "goes on"])(
  "[R3] what a stopped run began is told as unknown if its stopper crashed and %s",
  async (then) => {
    const { workspaceId, agent, stub, gate, runs, first } = await stopping();
    await runInDurableObject(agentStub(agent), (_, state) => state.abort("crash")).catch(() => undefined);
    gate.open();
    const [second] = await runs();
    if (then === "is canceled") unwrap(await stub.cancelRun(workspaceId, second?.id ?? ""));
    else {
      await passTime(agent, 30_000);
      await ended(workspaceId, agent, 2);
    }
    const { status, steps } = unwrap(await stub.run(workspaceId, first));
    expect([status, steps[0]?.toolCalls]).toMatchObject([
      "canceled",
      [{ name: "send_message", status: "error", output: { error: { code: "outcome_unknown" } } }],
    ]);
  },
);

test("[R3] [R5] a run that absorbs another learns that its background call may be done", async () => {
  const path = silent();
  const { workspaceId, agent, ann, space } = await scene({ tools: [refund(path, { async: true })], steps: [] });
  let first = "";
  const model = scriptedModel(({ prompt }, index) => {
    if (index === 0) return step(call("refund", { to: "ann" }));
    if (index === 1) return step(stall);
    const isFresh = !prompt.some(({ role }) => role === "tool");
    return isFresh ? step(call("absorb_run", { runId: first })) : step(text("Taken over."));
  });
  playWith(model);
  await space.post(ann, "Refund me");
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  await model.called(2);
  first = (await runsOf(workspaceId, agent))[0]?.id ?? "";
  await space.post(ann, "And the fee");
  await model.called(4);
  const [result] = model.calls[3]?.prompt.findLast(({ role }) => role === "tool")?.content ?? [];
  expect(JSON.stringify(result)).toContain(unknown);
  await ended(workspaceId, agent, 2);
  expect(await inboxOf(workspaceId, agent)).toEqual([]);
});

test("[R3] a result that comes after its call was told as unknown is not told as well", async () => {
  shorten(cancelWaitMs);
  const { workspaceId, agent, stub, gate, first } = await stopping();
  await ended(workspaceId, agent, 2);
  gate.open();
  await vi.waitFor(async () => expect(await rowsIn(agent, "SELECT 1 FROM timers WHERE name = 'loop'")).toEqual([]));
  const { id } = unwrap(await stub.run(workspaceId, first)).steps[0]?.toolCalls[0] ?? {};
  const results = await rowsIn(
    agent,
    `SELECT meta FROM journal WHERE meta ->> 'kind' = 'result' AND meta ->> 'callId' = '${id}'`,
  );
  expect(results).toHaveLength(1);
});
