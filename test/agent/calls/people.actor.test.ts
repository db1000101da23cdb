import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { maxOpenCalls } from "../../../src/agent/bounds.ts";
import { AgentConfig } from "../../../src/protocol/agent.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { armFault } from "../../../src/shared/fault.ts";
import { rowsWith } from "../../support/rows.ts";
import { answer, call, scriptedModel, step, text } from "../../support/scripted-model.ts";
import { agentStub, inboxOf, passTime, rowsIn, runsOf, userTexts } from "../fixture.ts";
import { approved, ask, deploy, eachTest, freshPath, outputs, playWith, requestsTo, scene, yes } from "./scene.ts";

eachTest();

describe("a call that shows", () => {
  test("[R2] stands in the space while it runs, then with its output", async () => {
    const path = freshPath();
    const { ann, space, toolCall, shown, run } = await scene({
      tools: [deploy(path)],
      steps: [step(call("deploy", { to: "prod" })), step(text("Done."))],
    });
    const frames = await space.watch(ann);
    await space.post(ann, "Deploy");
    await run("completed");
    const { output, input } = await shown("deploy", "complete");
    expect(input).toEqual({ to: "prod" });
    expect(output).toMatchObject({ body: JSON.stringify({ to: "prod" }) });
    const own = frames.filter((frame) => frame.type === "space.message" && frame.message.kind === "tool_call");
    expect(own).toHaveLength(1);
    expect(own[0]).toMatchObject({ message: { toolCall: { status: "running" } } });
    await vi.waitUntil(() => frames.some((frame) => frame.type === "space.message.updated"));
    expect((await toolCall("deploy")).status).toBe("complete");
    expect(await requestsTo(path)).toHaveLength(1);
  });

  test("[D4] its input streams as it is written, and ends with its message", async () => {
    const { ann, space, run } = await scene({
      tools: [deploy(freshPath())],
      steps: [step(call("deploy", { to: "prod" }, [4, 9])), step(text("Done."))],
    });
    const frames = await space.watch(ann);
    await space.post(ann, "Deploy");
    await run("completed");
    const start = frames.find((frame) => frame.type === "tool-call.start");
    if (start?.type !== "tool-call.start") throw new Error("no stream began");
    expect(start.toolName).toBe("deploy");
    const deltas = frames.flatMap((frame) =>
      frame.type === "tool-input-delta" && frame.streamId === start.streamId ? [frame.inputDelta] : [],
    );
    expect(JSON.parse(deltas.join(""))).toEqual({ to: "prod" });
    const shown = frames.find((frame) => frame.type === "space.message" && frame.message.kind === "tool_call");
    expect(shown).toMatchObject({ message: { streamId: start.streamId } });
    expect(frames.some((frame) => frame.type === "tool-call.error")).toBe(false);
  });

  test("tells what went wrong, to its space and to the model", async () => {
    const { ann, space, shown, run } = await scene({
      tools: [deploy("/answer?status=500&body=%22broken%22")],
      steps: [step(call("deploy", { to: "prod" })), step(text("Sorry."))],
    });
    await space.post(ann, "Deploy");
    const { error } = await shown("deploy", "error");
    expect(error).toMatchObject({ code: "tool_failed", message: expect.stringContaining("500") });
    expect(outputs(await run("completed"))).toMatchObject([["deploy", { success: false, error }]]);
  });

  test("without an active space it is refused, and nothing takes effect", async () => {
    const path = freshPath();
    const { agent, workspaceId, run } = await scene({
      tools: [deploy(path)],
      steps: [step(call("deploy", { to: "prod" })), step(text("Nowhere."))],
    });
    unwrap(await env.AGENT.getByName(agent.id).trigger(workspaceId, { serviceName: "ci", payload: {} }));
    expect(outputs(await run("completed"))).toMatchObject([["deploy", { error: { code: "no_active_space" } }]]);
    expect(await requestsTo(path)).toEqual([]);
  });

  test.each([
    ["before it took effect", "call.after-begin", false, "outcome_unknown"],
    ["before it took effect, and may be made again", "call.after-begin", true, undefined],
    ["once its outcome is known", "agent.after-effect", false, undefined],
  ] as const)("[R2] [R3] one that was cut %s", async (_, point, idempotent, error) => {
    const path = freshPath();
    const { agent, ann, space, shown, run } = await scene({
      tools: [deploy(path, { idempotent })],
      steps: [step(call("deploy", { to: "prod" })), step(text("Done."))],
    });
    const crashed = armFault(point);
    await space.post(ann, "Deploy");
    await crashed;
    await passTime(agent, 30_000);
    const [output] = outputs(await run("completed"));
    expect(output).toMatchObject(["deploy", error ? { error: { code: error } } : { method: "POST" }]);
    await shown("deploy", error ? "error" : "complete");
    expect(await requestsTo(path)).toHaveLength(error ? 0 : 1);
  });

  test("[R2] [R3] one that was cut before it showed shows before it takes effect", async () => {
    const { agent, ann, space, shown, run } = await scene({
      tools: [deploy(freshPath(), { idempotent: true })],
      steps: [step(call("deploy", { to: "prod" })), step(text("Done."))],
    });
    const frames = await space.watch(ann);
    const crashed = armFault("agent.after-call");
    await space.post(ann, "Deploy");
    await crashed;
    await passTime(agent, 30_000);
    await run("completed");
    await shown("deploy", "complete");
    const first = frames.find((frame) => frame.type === "space.message" && frame.message.kind === "tool_call");
    expect(first).toMatchObject({ message: { toolCall: { status: "running" } } });
  });

  test.each(["timeline", "consciousness"] as const)(
    "[R3] an internal one of a %s that was cut is made again: nothing is unknown",
    async (continuity) => {
      const { agent, model, ann, space, run } = await scene({
        continuity,
        tools: [{ name: "note", executionType: "internal", visible: true }],
        steps: [],
      });
      const enter = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
      model.push(...enter, step(call("note", { of: "it" })), step(text("Noted.")));
      const crashed = armFault("call.after-begin");
      await space.post(ann, "Note it");
      await crashed;
      await passTime(agent, 30_000);
      expect(outputs(await run("completed")).at(-1)).toEqual(["note", { of: "it" }]);
    },
  );
});

describe("a timeline run that waits for people", () => {
  test("rests until somebody answers, and goes on with the answer as the call's result", async () => {
    const { agent, model, ann, bob, space, shown, run, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", { question: "Ship?" })), step(text("Shipped."))],
    });
    await space.post(ann, "Ask Bob");
    const asked = await shown("confirm", "requires_action");
    expect(asked.awaits).toMatchObject({ kind: "answer", quorum: 1 });
    await run("waiting_tool");
    await evictDurableObject(agentStub(agent));
    unwrap(await give(bob, "confirm", { result: { ok: true } }));
    const ended = await run("completed");
    expect(outputs(ended)).toEqual([["confirm", { ok: true }]]);
    expect((await shown("confirm", "complete")).output).toEqual({ ok: true });
    expect(model.calls).toHaveLength(2);
    const roles = model.calls[1]?.prompt.map(({ role }) => role);
    expect(roles).toEqual(["system", "user", "assistant", "tool"]);
  });

  test("[C2] an answer of who may give none by then is no answer", async () => {
    const { agent, ann, bob, workspaceId, run, asked, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", {})), step(text("Well."))],
    });
    await asked("confirm");
    const tool = { ...ask, description: "Does confirm", answer: { by: [bob.id] } };
    const { tools } = AgentConfig.parse({ name: "Worker", tools: [tool] });
    unwrap(await env.AGENT.getByName(agent.id).update(workspaceId, { tools }));
    unwrap(await give(ann, "confirm", { result: "yes" }));
    expect(outputs(await run("completed"))).toMatchObject([["confirm", { error: { code: "approval_changed" } }]]);
  });

  test("several calls of one step are answered in any order and resume it once", async () => {
    const { model, ann, bob, shown, run, asked, give } = await scene({
      tools: [ask, { ...ask, name: "choose" }],
      steps: [step(call("confirm", {}), call("choose", {}), call("set_goals", { goals: [] })), step(text("Done."))],
    });
    await asked("choose");
    unwrap(await give(bob, "choose", { result: "second" }));
    await shown("choose", "complete");
    expect((await run("waiting_tool")).steps).toHaveLength(1);
    unwrap(await give(ann, "confirm", { result: "first" }));
    expect(outputs(await run("completed")).slice(0, 2)).toEqual([
      ["confirm", "first"],
      ["choose", "second"],
    ]);
    expect(model.calls).toHaveLength(2);
  });

  test("what needs approval runs once enough have approved, and not before", async () => {
    const path = freshPath();
    const { ann, bob, shown, run, asked, give } = await scene({
      tools: [deploy(path, approved({ quorum: 2 }))],
      steps: [step(call("deploy", { to: "prod" })), step(text("Deployed."))],
    });
    await asked("deploy");
    unwrap(await give(ann, "deploy", yes));
    expect(await requestsTo(path)).toEqual([]);
    unwrap(await give(bob, "deploy", { result: { approved: true, note: "only to prod" } }));
    const ended = await run("completed");
    expect(outputs(ended)).toMatchObject([
      ["deploy", { result: { method: "POST" }, approval: { by: ["Ann", "Bob"], notes: ["only to prod"] } }],
    ]);
    await shown("deploy", "complete");
    expect(await requestsTo(path)).toHaveLength(1);
  });

  test("[C12] one person causes at most their share of the calls that wait", async () => {
    const { agent, model, ann, bob, space, run, asked } = await scene({
      tools: [deploy(freshPath(), approved()), { name: "note", executionType: "internal", visible: true }],
      steps: [step(call("deploy", { to: "prod" }))],
    });
    const { id } = await asked("deploy");
    const [{ names = "" } = {}] = await rowsIn(
      agent,
      "SELECT group_concat(name) AS names FROM pragma_table_info('calls')",
    );
    const copies = String(names).replace("call_id", "call_id || value");
    const numbers = JSON.stringify(Array.from({ length: maxOpenCalls / 4 - 1 }, (_, index) => index));
    await rowsIn(
      agent,
      `INSERT INTO calls (${names}) SELECT ${copies} FROM calls, (SELECT value FROM json_each(?)) WHERE call_id = ?`,
      numbers,
      id,
    );
    for (const [who, output] of [
      [ann, { error: { code: "limit_reached", message: expect.stringContaining("maxShareOfPerson") } }],
      [bob, { of: "it" }],
    ] as const) {
      model.push(step(call("note", { of: "it" })), step(text("Well.")));
      await space.post(who, "Note it");
      expect(outputs(await run("completed"))).toMatchObject([["note", output]]);
    }
  });

  test("[C12] one person's calls to a slow server keep no other person's from theirs", async () => {
    const path = `/silent/${crypto.randomUUID()}`;
    const slow = deploy(path, { async: true, visible: false, timeoutMs: 2000 });
    const { ann, bob, space } = await scene({ tools: [slow], steps: [] });
    const counts = { Ann: 8, Bob: 1 };
    const calls = (to: "Ann" | "Bob") => Array.from({ length: counts[to] }, () => call("deploy", { to }));
    playWith(
      scriptedModel((given) => {
        const [, trigger = ""] = userTexts(given).join().split("TRIGGER:");
        const who = (["Ann", "Bob"] as const).find((name) => trigger.includes(`sender: "${name}"`));
        return who && given.prompt.at(-1)?.role === "user" ? step(...calls(who)) : step(text("Well."));
      }),
    );
    const asked = async () => (await requestsTo(path)).map(({ body }) => JSON.parse(body).to);
    await space.post(ann, "Go");
    await vi.waitFor(async () => expect(await asked()).toHaveLength(4));
    await space.post(bob, "Go");
    await vi.waitFor(async () => expect(await asked()).toHaveLength(9), 10_000);
    expect((await asked()).indexOf("Bob")).toBeLessThan(8);
  });

  test("every word of those who approved reaches the agent, not only the last one's", async () => {
    const { ann, bob, space, shown, run, give } = await scene({
      tools: [deploy(freshPath(), approved({ quorum: 2 }))],
      steps: [step(call("deploy", { to: "prod" })), step(text("Done."))],
    });
    await space.post(ann, "Deploy");
    await shown("deploy", "requires_action");
    unwrap(await give(ann, "deploy", { result: { approved: true, note: "staging first" } }));
    unwrap(await give(bob, "deploy", yes));
    const [[, output] = []] = outputs(await run("completed"));
    expect(output).toMatchObject({ approval: { by: ["Ann", "Bob"], notes: ["staging first"] } });
  });

  test.for<[string, (note: string) => Record<string, string | boolean>]>([
    ["deploy", (note) => ({ approved: true, note })],
    ["confirm", (note) => ({ note })],
  ])("[L16] what who is erased answered to %s is gone from its space and agent", async ([name, answerOf]) => {
    const { agent, bob, space, workspaceId, asked, shown, run, give } = await scene({
      tools: [deploy(freshPath(), approved()), ask],
      steps: [step(call(name, { to: "prod" })), step(text("Done."))],
    });
    await asked(name);
    unwrap(await give(bob, name, { result: answerOf("quinces") }));
    await shown(name, "complete");
    await run("completed");
    vi.useRealTimers();
    const workspace = env.WORKSPACE.getByName(workspaceId);
    unwrap(await workspace.beginErasure({ kind: "person", id: bob.id }, { id: "key" }));
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(bob.id)).state).toBe("done"), 10_000);
    for (const object of [agentStub(agent), env.SPACE.getByName(space.id)]) {
      for (const word of ["quinces", "Bob"]) expect(await rowsWith(object, word)).toEqual([]);
    }
  });

  test("[L4] a short answer goes from the agent with the message of the call that it answers", async () => {
    const { house, agent, bob, space, asked, shown, run, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", {})), step(text("Done."))],
    });
    await asked("confirm");
    unwrap(await give(bob, "confirm", { result: { fruit: "quinces" } }));
    await shown("confirm", "complete");
    await run("completed");
    const id = (await space.messages()).find(({ toolCall }) => toolCall)?.id ?? "";
    await vi.waitFor(async () => unwrap(await space.stub().deleteMessage(house.key, id)));
    await vi.waitFor(async () => expect(await rowsWith(agentStub(agent), "quinces")).toEqual([]));
  });

  test("[L16] who approved without a word is named to nobody once they are erased", async () => {
    const { bob, ann, space, workspaceId, asked, shown, run, give, agent } = await scene({
      tools: [deploy(freshPath(), approved({ quorum: 2 }))],
      steps: [step(call("deploy", { to: "prod" })), step(text("Done."))],
    });
    await asked("deploy");
    unwrap(await give(ann, "deploy", { result: { approved: true, note: "staging first" } }));
    unwrap(await give(bob, "deploy", yes));
    await shown("deploy", "complete");
    await run("completed");
    vi.useRealTimers();
    const workspace = env.WORKSPACE.getByName(workspaceId);
    unwrap(await workspace.beginErasure({ kind: "person", id: bob.id }, { id: "key" }));
    await vi.waitFor(async () => expect(unwrap(await workspace.erasure(bob.id)).state).toBe("done"), 10_000);
    for (const object of [agentStub(agent), space.stub()]) expect(await rowsWith(object, "Bob")).toEqual([]);
    expect(await rowsWith(space.stub(), "staging first")).not.toEqual([]);
  });

  test("what is rejected does not run, and the agent is told by whom and why", async () => {
    const path = freshPath();
    const { ann, bob, space, shown, run, give } = await scene({
      tools: [deploy(path, approved())],
      steps: [step(call("deploy", { to: "prod" })), step(text("Not deployed."))],
    });
    await space.post(ann, "Deploy");
    await shown("deploy", "requires_action");
    unwrap(await give(bob, "deploy", { result: { approved: false, note: "freeze" } }));
    expect(outputs(await run("completed"))).toMatchObject([
      ["deploy", { error: { code: "approval_rejected", message: '"Bob" rejected it: "freeze"' } }],
    ]);
    expect(await requestsTo(path)).toEqual([]);
  });

  test("when the time is up it goes on with that as the result", async () => {
    const { agent, bob, space, shown, run, asked, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", {})), step(text("Nobody."))],
    });
    await asked("confirm");
    vi.setSystemTime(Date.now() + 11 * 60_000);
    await runDurableObjectAlarm(space.stub() as never);
    await passTime(agent, 0);
    expect(outputs(await run("completed"))).toMatchObject([["confirm", { error: { code: "gone" } }]]);
    await shown("confirm", "expired");
    expect(await give(bob, "confirm", { result: 1 })).toMatchObject({ ok: false, problem: { code: "gone" } });
  });

  test("[R5] a run that is canceled while it waits asks nobody; a late answer changes nothing", async () => {
    const { agent, model, ann, bob, space, workspaceId, shown, run, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", {})), step(text("Never."))],
    });
    await space.post(ann, "Ask");
    await shown("confirm", "requires_action");
    const waiting = await run("waiting_tool");
    unwrap(await env.AGENT.getByName(agent.id).cancelRun(workspaceId, waiting.id));
    await shown("confirm", "canceled");
    expect(await give(bob, "confirm", { result: 1 })).toMatchObject({ ok: false, problem: { code: "gone" } });
    expect(model.calls).toHaveLength(1);
  });

  test("[R1] an answer that comes while the agent crashes is not lost", async () => {
    const { agent, bob, run, asked, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", {})), step(text("Got it."))],
    });
    await asked("confirm");
    const crashed = armFault("agent.after-deliver");
    unwrap(await give(bob, "confirm", { result: "yes" }));
    await crashed;
    await passTime(agent, 30_000);
    expect(outputs(await run("completed"))).toEqual([["confirm", "yes"]]);
  });

  test("other messages begin other runs meanwhile, which see it wait", async () => {
    const { model, ann, bob, space, asked, give } = await scene({
      tools: [ask],
      steps: [step(call("confirm", { q: "Ship?" })), step(text("Second.")), step(text("First."))],
    });
    await asked("confirm");
    await space.post(ann, "And the weather?");
    await model.called(2);
    expect(userTexts(model.calls[1]).join("\n")).toMatch(
      /\(waiting_tool\) — called confirm\(\{"q":"Ship\?"\}\) in "Lab", waiting for somebody's answer/,
    );
    unwrap(await give(bob, "confirm", { result: 1 }));
    await model.called(3);
  });
});

describe("a living agent that asks people", () => {
  test("goes on at once, and the answer comes as an event that wakes it", async () => {
    const { agent, model, ann, bob, space, workspaceId, shown, run, give } = await scene({
      continuity: "consciousness",
      tools: [ask],
      steps: [],
    });
    model.push(
      step(call("enter_space", { spaceId: space.id })),
      step(call("confirm", { q: "Ship?" })),
      step(text("Asked.")),
      ...answer(space.id, "Shipping."),
    );
    await space.post(ann, "Ask Bob");
    const asked = await shown("confirm", "requires_action");
    const first = await run("completed");
    expect(outputs(first)).toContainEqual(["confirm", { status: "pending", toolCallId: asked.id }]);
    await evictDurableObject(agentStub(agent));
    unwrap(await give(bob, "confirm", { result: { ok: true } }));
    await vi.waitFor(async () => expect(await space.texts()).toContain("Worker: Shipping."));
    const told = userTexts(model.calls[3]).at(-1) ?? "";
    expect(told).toContain(`[Tool result confirm, ${asked.id}] {"ok":true}`);
    expect(await inboxOf(workspaceId, agent)).toEqual([]);
  });

  /** A living agent that asks whether it may deploy, and says these words once it has. */
  const deploying = async (words: string) => {
    const path = freshPath();
    const set = await scene({ continuity: "consciousness", tools: [deploy(path, approved())], steps: [] });
    set.model.push(
      step(call("enter_space", { spaceId: set.space.id })),
      step(call("deploy", { to: "prod" })),
      step(text("Asked.")),
      step(call("send_message", { text: words })),
      step(text("Done.")),
    );
    return { ...set, path };
  };

  test("[R2] what was approved runs once in the background, and its result wakes it", async () => {
    const { path, model, ann, space, shown, asked, give } = await deploying("Deployed.");
    await asked("deploy");
    unwrap(await give(ann, "deploy", yes));
    await vi.waitFor(async () => expect(await space.texts()).toContain("Worker: Deployed."));
    await shown("deploy", "complete");
    expect(await requestsTo(path)).toHaveLength(1);
    expect(userTexts(model.calls[3]).at(-1)).toMatch(/\[Tool result deploy, tc_\w+\] \{"method":"POST"/);
  });

  test.each(["call.after-begin", "call.after-hand-over"] as const)(
    "[R1] [R2] [R3] a crash at %s loses nothing and makes nothing twice",
    async (point) => {
      const { path, agent, model, ann, space, shown, asked, give } = await deploying("Told.");
      await asked("deploy");
      const crashed = armFault(point);
      unwrap(await give(ann, "deploy", yes));
      await crashed;
      await passTime(agent, 30_000);
      await vi.waitFor(async () => expect(await space.texts()).toContain("Worker: Told."));
      const events = userTexts(model.calls[3]).at(-1) ?? "";
      expect(events).toMatch(/INBOX \(1 event/);
      const cut = point === "call.after-begin";
      expect(events.includes("outcome_unknown")).toBe(cut);
      expect(await requestsTo(path)).toHaveLength(cut ? 0 : 1);
      await shown("deploy", cut ? "error" : "complete");
    },
  );
});

test.each(["timeline", "consciousness"] as const)(
  "[B1] the result of a person's answer wakes a %s even beyond maxWakesPerRoot",
  async (continuity) => {
    const { agent, ann, space, workspaceId, model, shown, run, give } = await scene({
      continuity,
      limits: { maxWakesPerRoot: 1 },
      tools: [deploy(freshPath(), { ...approved(), async: true })],
      steps: [],
    });
    const enter = continuity === "consciousness" ? [step(call("enter_space", { spaceId: space.id }))] : [];
    model.push(...enter, step(call("deploy", { to: "prod" })), step(text("Asked.")));
    await space.post(ann, "Deploy");
    await shown("deploy", "requires_action");
    await run("completed");
    model.push(step(text("Read.")));
    unwrap(await give(ann, "deploy", yes));
    await vi.waitFor(async () => expect(await runsOf(workspaceId, agent)).toHaveLength(2), { timeout: 10_000 });
    await vi.waitFor(async () => expect(await inboxOf(workspaceId, agent)).toEqual([]), { timeout: 10_000 });
    const [second, first] = await runsOf(workspaceId, agent);
    expect(second).toMatchObject({ trigger: { type: "tool_result" }, roots: first?.roots });
  },
);
