import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { Agent } from "../../../src/agent/agent.ts";
import { maxInboxEvents, spaceAnswerMs } from "../../../src/agent/bounds.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { Space } from "../../../src/space/space.ts";
import { createGate } from "../../support/gate.ts";
import { call, rawCall, scriptedModel, stall, step, text } from "../../support/scripted-model.ts";
import { fillInbox, inboxOf, passTime, rowsIn, runsOf, userTexts } from "../fixture.ts";
import { approved, ask, deploy, eachTest, freshPath, playWith, requestsTo, scene, type Tool, yes } from "./scene.ts";

/** Calls whose run, agent or space ends before they do: nobody is asked any more, and nothing is left behind. */
eachTest();

const lookUp: Tool = { name: "act", executionType: "external" };
const open: [string, () => Tool, string][] = [
  ["a space tool", () => ({ ...ask, name: "act" }), "requires_action"],
  ["an approval", () => ({ ...deploy(freshPath(), approved()), name: "act" }), "requires_action"],
  ["an external tool", () => lookUp, "running"],
  ["a slow gateway", () => ({ ...deploy("/silent", { timeoutMs: 600_000 }), name: "act" }), "running"],
];

const callRows = async (agent: EntityRef): Promise<number> => (await rowsIn(agent, "select call_id from calls")).length;

test.each(
  open.flatMap(([name, tool, status]) =>
    (["stop_run", "absorb_run"] as const).map((by) => [name, by, tool, status] as const),
  ),
)("[R5] %s whose run %s ended asks nobody any more, and leaves nothing", async (_, by, tool, status) => {
  const { agent, ann, space, workspaceId, shown, run } = await scene({ tools: [tool()], steps: [] });
  const model = scriptedModel(async (_, index) => {
    if (index === 0) return step(call("act", { to: "prod" }));
    if (index > 1) return step(text("Ended."));
    const [first] = (await runsOf(workspaceId, agent)).filter(({ status: now }) => now !== "completed").reverse();
    return step(call(by, { runId: first?.id ?? "" }));
  });
  playWith(model);
  await space.post(ann, "Go");
  await shown("act", status);
  await space.post(ann, "Stop that");
  await run("completed");
  await shown("act", "canceled");
  const runs = await runsOf(workspaceId, agent);
  expect(runs.map((each) => each.status)).toEqual(["completed", by === "stop_run" ? "canceled" : "absorbed"]);
  // For a day, whoever answers an ended call is told that it is over.
  await passTime(agent, 25 * 60 * 60_000);
  await vi.waitFor(async () => expect(await callRows(agent)).toBe(0));
  expect(unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 10 })).items).toEqual([]);
  expect(await inboxOf(workspaceId, agent)).toEqual([]);
});

test.each(open)("[R5] %s that went on in the background ends when its run is canceled", async (_, tool, status) => {
  const { agent, model, ann, space, workspaceId, shown, run } = await scene({
    tools: [{ ...tool(), async: true }],
    steps: [step(call("act", { to: "prod" })), step(stall)],
  });
  await space.post(ann, "Go");
  await model.called(2);
  await shown("act", status);
  unwrap(await env.AGENT.getByName(agent.id).cancelRun(workspaceId, (await run("running")).id));
  await shown("act", "canceled");
  await passTime(agent, 25 * 60 * 60_000);
  await vi.waitFor(async () => expect(await callRows(agent)).toBe(0));
  expect(unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 10 })).items).toEqual([]);
  // Nothing came of it that would have woken the agent.
  expect(await inboxOf(workspaceId, agent)).toEqual([]);
  expect(await runsOf(workspaceId, agent)).toHaveLength(1);
});

test("[R5] a call that its space has not shown yet never shows once its run is ended", async () => {
  const gate = createGate();
  const { recordToolCall } = Space.prototype;
  const recorded = vi.fn<() => void>();
  const recording = vi.spyOn(Space.prototype, "recordToolCall").mockImplementation(async function (this: Space, said) {
    gate.reach();
    await gate.opened;
    return recordToolCall.call(this, said).finally(recorded);
  });
  onTestFinished(() => recording.mockRestore());
  const { agent, ann, space, workspaceId } = await scene({ tools: [lookUp], steps: [] });
  const runs = () => runsOf(workspaceId, agent);
  const stopFirst = async () => step(call("stop_run", { runId: (await runs()).at(-1)?.id ?? "" }));
  playWith(
    scriptedModel(async (_, index) =>
      index === 0 ? step(call("act", { to: "prod" })) : index === 1 ? stopFirst() : step(text("Ended.")),
    ),
  );
  await space.post(ann, "Go");
  await gate.reached;
  await space.post(ann, "Stop that");
  await vi.waitFor(async () => expect((await runs()).at(-1)?.status).toBe("canceled"));
  vi.setSystemTime(Date.now() + spaceAnswerMs);
  gate.open();
  await vi.waitFor(async () => expect(await rowsIn(agent, "select told from calls")).toEqual([{ told: "canceled" }]), {
    timeout: 10_000,
  });
  // Three records: a late result, the word that the call is over, and another late result.
  await vi.waitFor(() => expect(recorded).toHaveBeenCalledTimes(3));
  expect(await space.texts()).toEqual(["Ann: Go", "Ann: Stop that"]);
});

const asking: [string, (path: string) => Tool][] = [
  ["runs there", (path) => ({ ...deploy(path, { timeoutMs: 600_000 }), name: "act" })],
  ["is sent there", (path) => ({ ...lookUp, execution: { url: `${inject("remote")}${path}`, secret: "KEY" } })],
];

test.each(
  asking.flatMap(([name, tool]) =>
    (["its run is canceled", "the agent is deleted"] as const).map((end) => [name, end, tool] as const),
  ),
)("[R5] the server of a background call that %s is let go if %s", async (_, end, tool) => {
  const path = `/silent/${crypto.randomUUID()}`;
  const isCanceled = end === "its run is canceled";
  const { agent, ann, space, workspaceId, run } = await scene({
    tools: [{ ...tool(path), async: true }],
    steps: [step(call("act", { to: "prod" })), step(isCanceled ? stall : text("Begun."))],
    secrets: { KEY: `whsec_${btoa("a secret of twenty-four b")}` },
  });
  await space.post(ann, "Go");
  await vi.waitFor(async () => expect(await requestsTo(path)).toMatchObject([{ closed: false }]));
  const { id } = await run(isCanceled ? "running" : "completed");
  const stub = env.AGENT.getByName(agent.id);
  unwrap(isCanceled ? await stub.cancelRun(workspaceId, id) : await stub.remove(workspaceId));
  await vi.waitFor(async () => expect(await requestsTo(path)).toMatchObject([{ closed: true }]));
});

test("[R1] a server's answer reaches the agent while the server still holds the request", async () => {
  const path = `/silent/${crypto.randomUUID()}`;
  const { agent, model, ann, space, workspaceId, run, shown } = await scene({
    tools: [
      {
        ...{ ...lookUp, visible: true, async: true, timeoutMs: 600_000 },
        execution: { url: `${inject("remote")}${path}`, secret: "KEY" },
      },
    ],
    steps: [step(call("act", {})), step(text("Begun.")), step(text("It is seven."))],
    secrets: { KEY: `whsec_${btoa("a secret of twenty-four b")}` },
  });
  await space.post(ann, "Go");
  const begun = await run("completed");
  await vi.waitFor(async () => expect(await requestsTo(path)).toMatchObject([{ closed: false }]));
  const toolCallId = begun.steps[0]?.toolCalls[0]?.id ?? "";
  const stub = env.AGENT.getByName(agent.id);
  unwrap(await stub.answerToolCall(workspaceId, toolCallId, { result: "seven" }));
  await model.called(3);
  expect(userTexts(model.calls[2]).at(-1)).toContain('"seven"');
  await shown("act", "complete");
  expect(await requestsTo(path)).toHaveLength(1);
});

test.each(open)("[R5] %s whose space is deleted lets its run go on", async (_, tool, status) => {
  const asked = tool();
  // A tool that people answer has no time-out of its own.
  const timed = asked.executionType === "space" ? asked : { ...asked, timeoutMs: 5000 };
  const { agent, ann, space, workspaceId, shown, run } = await scene({
    tools: [timed],
    steps: [step(call("act", { to: "prod" })), step(text("Gone."))],
  });
  await space.post(ann, "Go");
  await shown("act", status);
  unwrap(await space.stub().remove({ kind: "key", workspaceId, keyId: "key" }));
  await vi.waitFor(async () => {
    await passTime(agent, 6000);
    expect((await runsOf(workspaceId, agent))[0]?.status).toBe("completed");
  }, 10_000);
  await run("completed");
});

test("[D4] a call that is refused ends its stream and shows nothing", async () => {
  const path = freshPath();
  const { ann, space, run } = await scene({
    tools: [deploy(path), { ...ask, name: "second" }],
    toolRules: [{ tool: "second", rule: "requires_prior", tools: ["deploy"] }],
    steps: [
      step(call("second", {}, [1]), call("deploy", { to: 7 }, [3]), rawCall("deploy", '{"to":', "nonsense")),
      step(text("No.")),
    ],
  });
  const frames = await space.watch(ann);
  await space.post(ann, "Go");
  await run("completed");
  await vi.waitFor(() => {
    const begun = frames.flatMap((frame) => (frame.type === "tool-call.start" ? [frame.streamId] : []));
    const ended = frames.flatMap((frame) => (frame.type === "tool-call.error" ? [frame.streamId] : []));
    expect(begun).toHaveLength(3);
    expect(ended.toSorted()).toEqual(begun.toSorted());
  });
  expect((await space.messages()).filter(({ kind }) => kind === "tool_call")).toEqual([]);
  expect(await requestsTo(path)).toEqual([]);
});

test("[R1] a result that finds the inbox full comes when there is room", async () => {
  const path = freshPath();
  const { agent, model, ann, space, shown, asked, give } = await scene({
    continuity: "consciousness",
    tools: [deploy(path, approved())],
    steps: [],
  });
  model.push(
    step(call("enter_space", { spaceId: space.id })),
    step(call("deploy", { to: "prod" })),
    step(text("Asked.")),
    step(text("Noted.")),
  );
  await asked("deploy");
  await fillInbox(agent, maxInboxEvents);
  unwrap(await give(ann, "deploy", yes));
  await shown("deploy", "complete");
  await rowsIn(agent, "DELETE FROM inbox WHERE type = 'service'");
  await passTime(agent, 30_000);
  await model.called(4);
  expect(JSON.stringify(model.calls[3]?.prompt)).toContain("Tool result deploy");
});

test.each([
  ["attached", {}],
  ["detached", { async: true }],
])("[R5] removing an agent cancels its calls that were approved and not begun (%s)", async (_, more) => {
  const path = freshPath();
  const { agent, ann, space, workspaceId, run, shown, give } = await scene({
    tools: [deploy(path, { ...approved(), ...more })],
    steps: [],
  });
  const model = scriptedModel((_call, index) =>
    index === 0 ? step(call("deploy", { to: "prod" })) : step(text("Noted.")),
  );
  playWith(model);
  await space.post(ann, "Go");
  await shown("deploy", "requires_action");
  await run("async" in more ? "completed" : "waiting_tool");
  const { deliver } = Agent.prototype;
  let away = true;
  const delivering = vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, delivery) {
    if (away) throw new Error("away");
    return deliver.call(this, delivery);
  });
  onTestFinished(() => delivering.mockRestore());
  unwrap(await give(ann, "deploy", yes));
  unwrap(await space.stub().removeMember({ kind: "key", workspaceId, keyId: "key" }, agent.id));
  await shown("deploy", "canceled");
  await vi.waitFor(() => expect(delivering).toHaveBeenCalled());
  away = false;
  vi.setSystemTime(Date.now() + 60_000);
  await runDurableObjectAlarm(space.stub() as never);
  await model.called("async" in more ? 3 : 2);
  await run("completed");
  expect(await requestsTo(path)).toEqual([]);
});

test("[R3] [R5] a living agent knows that a canceled run's background call may be done", async () => {
  const path = `/silent/${crypto.randomUUID()}`;
  const { agent, model, ann, space, workspaceId, run } = await scene({
    continuity: "consciousness",
    tools: [{ ...deploy(path, { timeoutMs: 600_000, async: true }), visible: false }],
    steps: [step(call("deploy", { to: "prod" })), step(stall), step(text("I do not know."))],
  });
  await space.post(ann, "Go");
  await model.called(2);
  await vi.waitFor(async () => expect(await requestsTo(path)).toMatchObject([{ closed: false }]));
  unwrap(await env.AGENT.getByName(agent.id).cancelRun(workspaceId, (await run("running")).id));
  await space.post(ann, "Is it deployed?");
  await model.called(3);
  const told = JSON.stringify(model.calls[2]?.prompt);
  expect(told).toContain("pending");
  expect(told).toContain("whether it took effect is not known");
});
