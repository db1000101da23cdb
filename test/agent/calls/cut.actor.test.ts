import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, inject, test, vi } from "vitest";
import { armFault, disarmFaults, type FaultPoint } from "../../../src/shared/fault.ts";
import { call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { agentStub, inboxOf, runsOf } from "../fixture.ts";
import { approved, ask, deploy, eachTest, freshPath, playWith, requestsTo, scene, type Tool, yes } from "./scene.ts";

/** Every kind of call, cut at every point: it ends once, shows how, and its agent knows. */
eachTest();

const points: FaultPoint[] = ["agent.after-call", "agent.after-effect", "call.after-begin", "call.after-hand-over"];

const key = `whsec_${btoa("a secret of twenty-four b")}`;
const kinds: Record<string, (path: string) => Tool> = {
  space: () => ({ ...ask, name: "act" }),
  approval: (path) => ({ ...deploy(path, approved()), name: "act" }),
  async: (path) => ({ ...deploy(path, { async: true }), name: "act" }),
  gateway: (path) => ({ ...deploy(path), name: "act" }),
  pulled: () => ({ name: "act", executionType: "external", timeoutMs: 600_000 }),
  pushed: (path) => ({
    ...{ name: "act", executionType: "external", timeoutMs: 600_000 },
    execution: { url: `${inject("remote")}${path}`, secret: "KEY" },
  }),
};

const matrix = Object.keys(kinds).flatMap((kind) =>
  (["timeline", "consciousness"] as const).flatMap((continuity) =>
    points.map((point) => [kind, continuity, point] as const),
  ),
);

test.each(matrix)("[R1] [R2] [R3] a call of kind %s of a %s agent, cut at %s", async (kind, continuity, point) => {
  const path = freshPath();
  const made = kinds[kind];
  if (!made) throw new Error(kind);
  const { agent, ann, space, workspaceId } = await scene({
    continuity,
    tools: [made(path)],
    steps: [],
    secrets: { KEY: key },
  });
  // Whatever was cut is generated anew: what to say follows from what it was given.
  const model = scriptedModel((options) => {
    const given = JSON.stringify(options.prompt.slice(-6));
    if (
      continuity === "consciousness" &&
      !given.includes('"toolName":"enter_space"') &&
      !given.includes("Tool result act")
    )
      return step(call("enter_space", { spaceId: space.id }));
    if (given.includes('"toolName":"act"') || given.includes("Tool result act") || given.includes("toolCallId: tc_"))
      return step(text("Done."));
    return step(call("act", { to: "prod" }));
  });
  playWith(model);
  // A call of some kinds never comes to some points: the other tests of crashes say which do.
  void armFault(point);
  await space.post(ann, "Go");
  const stub = env.AGENT.getByName(agent.id);
  const tick = async () => {
    vi.setSystemTime(Date.now() + 26_000);
    await runDurableObjectAlarm(agentStub(agent)).catch(() => undefined);
  };
  let rounds = 0;
  await vi.waitFor(
    async () => {
      rounds += 1;
      if (rounds % 4 === 0) await tick();
      const calls = (await space.messages()).flatMap(({ toolCall }) => toolCall ?? []);
      for (const one of calls) {
        if (one.status === "requires_action") {
          const given = kind === "space" ? { result: "sure" } : yes;
          await space
            .stub()
            .answerToolCall(space.as(ann), one.id, given)
            .catch(() => undefined);
        }
        if (one.status === "running" && (kind === "pulled" || kind === "pushed"))
          await stub.answerToolCall(workspaceId, one.id, { result: "done" }).catch(() => undefined);
      }
      expect(calls.length).toBeGreaterThan(0);
      for (const one of calls) expect(["complete", "error"]).toContain(one.status);
      const runs = await runsOf(workspaceId, agent);
      expect(runs.every(({ status }) => status === "completed")).toBe(true);
      expect(await inboxOf(workspaceId, agent)).toEqual([]);
      if (kind === "async" || (continuity === "consciousness" && (kind === "space" || kind === "approval")))
        expect(runs.some(({ trigger }) => trigger.type === "tool_result")).toBe(true);
    },
    { timeout: 15_000, interval: 20 },
  );
  disarmFaults();
  const calls = (await space.messages()).flatMap(({ toolCall }) => toolCall ?? []);
  expect(calls).toHaveLength(1);
  if (calls[0]?.status === "error") expect(calls[0].error?.code).toBe("outcome_unknown");
  else if (kind === "approval" || kind === "async" || kind === "gateway")
    expect(await requestsTo(path)).toHaveLength(1);
});
