import { abortAllDurableObjects } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, inject, onTestFinished, test, vi } from "vitest";
import { spaceAnswerMs } from "../../../src/agent/bounds.ts";
import { schemes } from "../../../src/auth/webhooks/schemes.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { Workspace } from "../../../src/workspace/workspace.ts";
import { call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { shorten } from "../../support/shorten.ts";
import { ids, inboxOf, passTime, rowsIn, runsOf, userTexts } from "../fixture.ts";
import { ask, deploy, eachTest, freshPath, outputs, playWith, requestsTo, scene, type Tool } from "./scene.ts";

eachTest();

test.each(["timeline", "consciousness"] as const)(
  "[B1] an async call of a %s is pending at once; its result comes by the inbox",
  async (continuity) => {
    const path = freshPath();
    const { agent, model, ann, space, workspaceId, shown, run } = await scene({
      continuity,
      tools: [deploy(path, { async: true })],
      steps: [],
    });
    const enter = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
    model.push(...enter, step(call("deploy", { to: "prod" })), step(text("Begun.")), step(text("Noted.")));
    const { id: root } = await space.post(ann, "Deploy");
    await model.called(enter.length + 3);
    const ended = await run("completed");
    await shown("deploy", "complete");
    expect(ended.trigger).toMatchObject({ type: "tool_result", senderName: "deploy" });
    expect(ended.roots).toEqual([root]);
    const [, first] = await runsOf(workspaceId, agent);
    expect(outputs(unwrap(await env.AGENT.getByName(agent.id).run(workspaceId, first?.id ?? "")))).toContainEqual([
      "deploy",
      { status: "pending", toolCallId: expect.stringMatching(/^tc_/) },
    ]);
    expect(await requestsTo(path)).toHaveLength(1);
  },
);

test("[B1] an agent that always calls again in the background comes to its root's bound", async () => {
  const { agent, ann, space, workspaceId } = await scene({
    tools: [{ name: "again", executionType: "internal", async: true }],
    steps: [],
    limits: { maxWakesPerRoot: 3 },
  });
  const model = scriptedModel((_, index) => (index % 2 === 0 ? step(call("again", { index })) : step(text("Again."))));
  playWith(model);
  await space.post(ann, "Go");
  await vi.waitFor(async () => {
    const runs = await runsOf(workspaceId, agent);
    expect(runs).toHaveLength(3);
    expect(runs.every(({ status }) => status === "completed")).toBe(true);
  });
  expect(await inboxOf(workspaceId, agent)).toEqual([]);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain("maxWakesPerRoot (3) is reached");
});

describe("an external tool", () => {
  const lookUp: Tool = { name: "lookUp", executionType: "external", visible: false };
  const listed = async (workspaceId: string) =>
    unwrap(await env.WORKSPACE.getByName(workspaceId).toolCalls({ limit: 10 })).items;

  test.each(["timeline", "consciousness"] as const)(
    "of a %s agent waits to be listed, claimed and answered",
    async (continuity) => {
      const { agent, model, ann, space, workspaceId, run } = await scene({
        continuity,
        tools: [lookUp],
        steps: [step(call("lookUp", { id: 7 })), step(text("Found."))],
      });
      await space.post(ann, "Look it up");
      await run("waiting_tool");
      const [waiting] = await vi.waitFor(async () => {
        const calls = await listed(workspaceId);
        expect(calls).toHaveLength(1);
        return calls;
      });
      if (!waiting) throw new Error("nothing waits");
      expect(waiting).toMatchObject({ agentId: agent.id, name: "lookUp", input: { id: 7 } });
      const stub = env.AGENT.getByName(agent.id);
      const { toolCallId } = waiting;
      unwrap(await stub.claimToolCall(workspaceId, toolCallId, { holder: "a", leaseSeconds: 60 }));
      expect(await stub.claimToolCall(workspaceId, toolCallId, { holder: "b", leaseSeconds: 60 })).toMatchObject({
        ok: false,
        problem: { code: "conflict" },
      });
      await vi.waitFor(async () => expect((await listed(workspaceId))[0]?.claim?.holder).toBe("a"));
      const given = { result: { name: "Seven" } };
      expect(unwrap(await stub.answerToolCall(workspaceId, toolCallId, given)).created).toBe(true);
      expect(outputs(await run("completed"))).toEqual([["lookUp", { name: "Seven" }]]);
      expect(model.calls).toHaveLength(2);
      expect(unwrap(await stub.answerToolCall(workspaceId, toolCallId, given)).created).toBe(false);
      expect(await stub.answerToolCall(workspaceId, toolCallId, { result: 1 })).toMatchObject({
        ok: false,
        problem: { code: "conflict" },
      });
      await vi.waitFor(async () => expect(await listed(workspaceId)).toEqual([]));
    },
  );

  test.each(["timeline", "consciousness"] as const)(
    "that answers a %s agent too late is heard through the inbox",
    async (continuity) => {
      const { agent, model, ann, space, workspaceId, run } = await scene({
        continuity,
        tools: [{ ...lookUp, timeoutMs: 5000 }],
        steps: [step(call("lookUp", { id: 7 })), step(text("Too slow.")), step(text("Late, but here."))],
      });
      await space.post(ann, "Look it up");
      const waiting = await run("waiting_tool");
      const toolCallId = waiting.steps[0]?.toolCalls[0]?.id ?? "";
      await passTime(agent, 6000);
      const ended = await run("completed");
      const message = expect.stringContaining("may be done all the same");
      expect(outputs(ended)).toMatchObject([["lookUp", { error: { code: "tool_timeout", message } }]]);
      const stub = env.AGENT.getByName(agent.id);
      unwrap(await stub.answerToolCall(workspaceId, toolCallId, { result: "seven" }));
      await model.called(3);
      expect(userTexts(model.calls[2]).at(-1)).toContain('"seven"');
      expect((await run("completed")).trigger.type).toBe("tool_result");
    },
  );

  test.each(["timeline", "consciousness"] as const)(
    "[B1] whose %s asks again whenever it was too late comes to its root's bound",
    async (continuity) => {
      const { agent, ann, space, workspaceId } = await scene({
        continuity,
        tools: [{ ...lookUp, timeoutMs: 5000 }],
        steps: [],
        limits: { maxWakesPerRoot: 2 },
      });
      playWith(scriptedModel((_, turn) => (turn % 2 === 0 ? step(call("lookUp", { turn })) : step(text("Too slow.")))));
      await space.post(ann, "Look it up");
      const newest = (count: number, status: string) =>
        vi.waitFor(async () => {
          const runs = await runsOf(workspaceId, agent);
          expect([runs.length, runs[0]?.status]).toEqual([count, status]);
          return runs[0]?.steps[0]?.toolCalls[0]?.id ?? "";
        });
      const stub = env.AGENT.getByName(agent.id);
      for (const count of [1, 2]) {
        const toolCallId = await newest(count, "waiting_tool");
        await passTime(agent, 6000);
        await newest(count, "completed");
        unwrap(await stub.answerToolCall(workspaceId, toolCallId, { result: "seven" }));
      }
      await vi.waitFor(async () => expect(await inboxOf(workspaceId, agent)).toHaveLength(1));
      expect(await inboxOf(workspaceId, agent)).toMatchObject([{ status: "pending" }]);
      expect(await runsOf(workspaceId, agent)).toHaveLength(2);
    },
  );

  test("[R1] whose workspace says nothing is listed once it does", async () => {
    shorten(spaceAnswerMs);
    const silent = vi
      .spyOn(Workspace.prototype, "noteToolCall")
      .mockImplementationOnce(() => new Promise(() => undefined));
    onTestFinished(() => silent.mockRestore());
    const { ann, space, workspaceId, run } = await scene({ tools: [lookUp], steps: [step(call("lookUp", {}))] });
    await space.post(ann, "Look it up");
    await run("waiting_tool");
    await vi.waitFor(async () => expect(await listed(workspaceId)).toHaveLength(1), { timeout: 4000 });
  });

  test("with an address is sent there, signed, and may be answered at once", async () => {
    const path = `/answer/${freshPath().slice(6)}?body=${encodeURIComponent(JSON.stringify({ result: { ok: 1 } }))}`;
    const secret = `whsec_${btoa("a secret of twenty-four b")}`;
    const { ann, space, run } = await scene({
      tools: [{ ...lookUp, execution: { url: `${inject("remote")}${path}`, secret: "LOOKUP" } }],
      steps: [step(call("lookUp", { id: 7 })), step(text("Found."))],
      secrets: { LOOKUP: secret },
    });
    await space.post(ann, "Look it up");
    const ended = await run("completed");
    expect(outputs(ended)).toEqual([["lookUp", { ok: 1 }]]);
    const [request] = await requestsTo(path);
    const headers = new Headers(
      Object.entries(request?.headers ?? {}).map(([name, value]) => [name, String(value)] as [string, string]),
    );
    const body = new TextEncoder().encode(request?.body);
    expect(schemes.standard.verify({ headers, body }, [secret], {}, Date.now())).toEqual({
      id: ended.steps[0]?.toolCalls[0]?.id,
    });
    expect(JSON.parse(request?.body ?? "")).toMatchObject({
      type: "tool_call",
      data: { name: "lookUp", input: { id: 7 } },
    });
  });
});

/** An agent that was asked to pay, by a tool of a server at this path. */
const paying = async (path: string, idempotent: boolean) => {
  const execution = { url: `${inject("remote")}${path}`, secret: "KEY" };
  const staged = await scene({
    tools: [{ name: "pay", executionType: "external", visible: false, idempotent, timeoutMs: 600_000, execution }],
    steps: [step(call("pay", {})), step(text("Well."))],
    secrets: { KEY: `whsec_${btoa("a secret of twenty-four b")}` },
  });
  await staged.space.post(staged.ann, "Pay");
  /** Lets time pass until it was sent again. */
  const refusedAgain = async (pauseMs: number, code: string) => {
    await vi.waitFor(
      async () => {
        await passTime(staged.agent, pauseMs);
        expect(await requestsTo(path)).toHaveLength(2);
      },
      { timeout: 5000 },
    );
    expect(outputs(await staged.run("completed"))).toMatchObject([["pay", { error: { code } }]]);
  };
  return { ...staged, refusedAgain };
};

test.each([
  [false, "outcome_unknown"],
  [true, "tool_failed"],
])("[R3] a server refuses what it may have had before, idempotent %s: %s", async (idempotent, code) => {
  const path = `/twice/${freshPath().slice(6)}`;
  const { refusedAgain } = await paying(path, idempotent);
  await vi.waitFor(async () => expect(await requestsTo(path)).not.toEqual([]));
  await refusedAgain(2000, code);
  const ids = (await requestsTo(path)).map(({ headers }) => headers["idempotency-key"]);
  expect(new Set(ids).size).toBe(1);
});

test.each([
  [false, "outcome_unknown"],
  [true, "tool_failed"],
])("[R3] a server refuses what it was sent before a crash, idempotent %s: %s", async (idempotent, code) => {
  const path = `/held/${freshPath().slice(6)}`;
  const { refusedAgain } = await paying(path, idempotent);
  await vi.waitFor(async () => expect(await requestsTo(path)).toHaveLength(1));
  await abortAllDurableObjects();
  await refusedAgain(26_000, code);
});

test.each([
  [false, "outcome_unknown"],
  [true, "tool_misconfigured"],
])("[R3] its secret is gone once a server may have a call, idempotent %s: %s", async (idempotent, code) => {
  const path = `/twice/${freshPath().slice(6)}`;
  const { agent, workspaceId, run } = await paying(path, idempotent);
  await vi.waitFor(async () => {
    expect(await rowsIn(agent, "SELECT failures FROM calls")).toEqual([{ failures: 1 }]);
  });
  unwrap(await env.AGENT.getByName(agent.id).setSecrets(workspaceId, {}));
  await passTime(agent, 2000);
  expect(outputs(await run("completed"))).toMatchObject([["pay", { error: { code } }]]);
  expect(await requestsTo(path)).toHaveLength(1);
});

test("an agent that leaves the space while it asks there is told that nobody can answer", async () => {
  const { agent, space, workspaceId, shown, run, asked } = await scene({
    tools: [ask],
    steps: [step(call("confirm", {})), step(text("Gone."))],
  });
  await asked("confirm");
  unwrap(await space.stub().removeMember({ kind: "key", workspaceId, keyId: "key" }, agent.id));
  expect(outputs(await run("completed"))).toMatchObject([["confirm", { error: { code: "not_a_member" } }]]);
  await shown("confirm", "canceled");
  expect(ids.isIssued("ent", agent.id)).toBe(true);
});
