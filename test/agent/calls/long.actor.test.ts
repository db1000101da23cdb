import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, inject, test, vi } from "vitest";
import { watchdogMs } from "../../../src/agent/bounds.ts";
import type { EntityRef } from "../../../src/protocol/rpc.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { agentStub, inboxOf, passTime, rowsIn, runsOf, userTexts } from "../fixture.ts";
import { ask, deploy, eachTest, freshPath, outputs, playWith, requestsTo, scene, type Tool } from "./scene.ts";

/** Calls that wait long or answer much: no alarm spins, nothing is lost, nothing is too big. */
eachTest();

const lookUp: Tool = { name: "lookUp", executionType: "external", visible: false };

/** In how many milliseconds a timer of the agent is due. */
const dueIn = async (agent: EntityRef, timer: string): Promise<number> => {
  const [row] = await rowsIn(agent, "select due_at from timers where name = ?", timer);
  return Number(row?.due_at) - Date.now();
};

test.each(["timeline", "consciousness"] as const)(
  "[R1] a %s run that awaits two servers is looked at when each one's time is up",
  async (continuity) => {
    const slow = { ...lookUp, name: "lookLonger", timeoutMs: 600_000 };
    const { agent, ann, space, run } = await scene({
      continuity,
      tools: [{ ...lookUp, timeoutMs: 5000 }, slow],
      steps: [step(call("lookUp", {}), call("lookLonger", {})), step(text("Too slow, both."))],
    });
    await space.post(ann, "Look it up");
    await run("waiting_tool");
    await vi.waitFor(async () => expect(await dueIn(agent, "loop")).toBeGreaterThan(500_000));
    await passTime(agent, 6000);
    await vi.waitFor(async () => expect(await dueIn(agent, "loop")).toBeGreaterThan(500_000));
    await passTime(agent, 600_000);
    expect(outputs(await run("completed"))).toMatchObject([
      ["lookUp", { error: { code: "tool_timeout" } }],
      ["lookLonger", { error: { code: "tool_timeout" } }],
    ]);
  },
);

test("[B2] a run that waits holds no more of its day's budget than it was billed", async () => {
  const { agent, workspaceId, asked } = await scene({ tools: [ask], steps: [step(call("confirm", {}))] });
  await asked("confirm");
  const { activity } = unwrap(await env.AGENT.getByName(agent.id).describe(workspaceId));
  expect(activity?.tokensToday).toBe(110);
});

test("[R1] a run that waits for people too is not looked at because a server's time is up", async () => {
  const { agent, ann, bob, space, run, give } = await scene({
    tools: [{ ...lookUp, timeoutMs: 5000 }, ask],
    steps: [step(call("lookUp", {}), call("confirm", {})), step(text("Well."))],
  });
  await space.post(ann, "Look it up, and ask");
  await run("waiting_tool");
  await passTime(agent, 6000);
  await vi.waitFor(async () => expect(await dueIn(agent, "loop")).toBeNaN());
  unwrap(await give(bob, "confirm", { result: 1 }));
  expect(outputs(await run("completed"))).toMatchObject([
    ["lookUp", { error: { code: "tool_timeout" } }],
    ["confirm", 1],
  ]);
});

test("[R1] a slow call in the background does not make the agent's alarm go off again and again", async () => {
  const { agent, ann, space, run } = await scene({
    tools: [deploy("/silent", { async: true, timeoutMs: 600_000 })],
    steps: [step(call("deploy", { to: "prod" })), step(text("Begun."))],
  });
  await space.post(ann, "Deploy");
  await run("completed");
  await passTime(agent, 30_000);
  expect(await dueIn(agent, "calls")).toBeGreaterThan(0.8 * watchdogMs);
  await runDurableObjectAlarm(agentStub(agent));
});

test.each(["timeline", "consciousness"] as const)(
  "an async call of a %s that no server answers ends in an event that says so",
  async (continuity) => {
    const { agent, model, ann, space, workspaceId, run } = await scene({
      continuity,
      tools: [{ ...lookUp, async: true }],
      steps: [step(call("lookUp", {})), step(text("Begun.")), step(text("Never, then."))],
    });
    await space.post(ann, "Look it up");
    await run("completed");
    await passTime(agent, 25 * 60 * 60_000);
    await model.called(3);
    expect(userTexts(model.calls[2]).at(-1)).toContain("no server answered in time");
    await vi.waitFor(async () => expect(await inboxOf(workspaceId, agent)).toEqual([]));
  },
);

test("[B3] what a server answers is cut to what a result may hold, however much it is", async () => {
  const { agent, ann, space, workspaceId, run } = await scene({
    tools: [lookUp],
    steps: [step(call("lookUp", {})), step(text("A lot."))],
  });
  await space.post(ann, "Look it up");
  const toolCallId = (await run("waiting_tool")).steps[0]?.toolCalls[0]?.id ?? "";
  const given = { result: { quotes: '"'.repeat(400_000) } };
  const stub = env.AGENT.getByName(agent.id);
  expect(unwrap(await stub.answerToolCall(workspaceId, toolCallId, given)).created).toBe(true);
  const [[, output] = []] = outputs(await run("completed"));
  expect(JSON.stringify(output).length).toBeLessThan(300_000);
  expect(output).toMatchObject({ note: expect.stringContaining("maxToolOutputBytes") });
  expect(unwrap(await stub.answerToolCall(workspaceId, toolCallId, given)).created).toBe(false);
});

test("[B1] an agent that asks again whenever nobody answers comes to its root's bound", async () => {
  const { agent, ann, space, workspaceId } = await scene({
    tools: [{ ...ask, async: true, answer: { expiresInMinutes: 1 } }],
    steps: [],
    limits: { maxWakesPerRoot: 2 },
  });
  const model = scriptedModel((_, index) =>
    index % 2 === 0 ? step(call("confirm", { index })) : step(text("Asked.")),
  );
  playWith(model);
  await space.post(ann, "Ask");
  for (const count of [1, 2]) {
    await vi.waitFor(async () => {
      const runs = await runsOf(workspaceId, agent);
      expect(runs.filter(({ status }) => status === "completed")).toHaveLength(count);
      expect((await space.messages()).filter(({ toolCall }) => toolCall?.status === "requires_action")).toHaveLength(1);
    });
    vi.setSystemTime(Date.now() + 61_000);
    await runDurableObjectAlarm(space.stub() as never);
  }
  await vi.waitFor(async () => expect(await inboxOf(workspaceId, agent)).toHaveLength(1));
  expect(await runsOf(workspaceId, agent)).toHaveLength(2);
});

test("[S3] a secret that a server was sent is shown in no answer of it, however late it comes", async () => {
  const path = freshPath();
  const secret = `whsec_${btoa("a secret of twenty-four b")}`;
  const { agent, ann, space, workspaceId, run } = await scene({
    tools: [
      {
        ...lookUp,
        execution: {
          url: `${inject("remote")}${path}`,
          secret: "SIGN",
          headers: { Authorization: `Bearer \${secret.KEY}` },
        },
      },
    ],
    steps: [step(call("lookUp", {})), step(text("Found."))],
    secrets: { SIGN: secret, KEY: "sesame-open-sesame" },
  });
  await space.post(ann, "Look it up");
  const toolCallId = (await run("waiting_tool")).steps[0]?.toolCalls[0]?.id ?? "";
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  const given = { result: { got: "Bearer sesame-open-sesame", signed: secret } };
  const stub = env.AGENT.getByName(agent.id);
  unwrap(await stub.answerToolCall(workspaceId, toolCallId, given));
  expect(outputs(await run("completed"))).toEqual([["lookUp", { got: "Bearer [redacted]", signed: "[redacted]" }]]);
  expect(unwrap(await stub.answerToolCall(workspaceId, toolCallId, given)).created).toBe(false);
});

test("[S5] nothing is sent that is signed with what is no signing secret", async () => {
  const path = freshPath();
  const { ann, space, run } = await scene({
    tools: [{ ...lookUp, execution: { url: `${inject("remote")}${path}`, secret: "SIGN" } }],
    steps: [step(call("lookUp", {})), step(text("No."))],
    secrets: { SIGN: "abc123" },
  });
  await space.post(ann, "Look it up");
  expect(outputs(await run("completed"))).toMatchObject([["lookUp", { error: { code: "tool_misconfigured" } }]]);
  expect(await requestsTo(path)).toEqual([]);
});

test("an input that its server's request cannot hold is told at once, and nothing waits", async () => {
  const path = freshPath();
  const { ann, space, run } = await scene({
    tools: [
      {
        ...lookUp,
        execution: { url: `${inject("remote")}${path}`, secret: "SIGN", headers: { "X-Name": "{{input.name}}" } },
      },
    ],
    steps: [step(call("lookUp", { name: "two\r\nX-Admin: 1" })), step(text("No."))],
    secrets: { SIGN: `whsec_${btoa("a secret of twenty-four b")}` },
  });
  await space.post(ann, "Look it up");
  expect(outputs(await run("completed"))).toMatchObject([["lookUp", { error: { code: "tool_input_invalid" } }]]);
  expect(await requestsTo(path)).toEqual([]);
});

test("[R1] servers that take their time hold up no person's answer", async () => {
  const { agent, model, ann, space, run, give } = await scene({
    tools: [deploy("/silent", { async: true, timeoutMs: 600_000 }), { ...ask, async: true }],
    steps: [
      step(...Array.from({ length: 6 }, () => call("deploy", { to: "prod" })), call("confirm", {})),
      step(text("All under way.")),
      step(text("Heard.")),
    ],
  });
  await space.post(ann, "Deploy, and ask");
  await run("completed");
  unwrap(await give(ann, "confirm", { result: "sure" }));
  await passTime(agent, 1000);
  await model.called(3);
  expect(userTexts(model.calls[2]).at(-1)).toContain('"sure"');
});
