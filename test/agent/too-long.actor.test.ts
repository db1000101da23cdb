import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { UpdateAgent } from "../../src/protocol/agent.ts";
import { unwrap } from "../../src/shared/errors.ts";
import {
  apiError,
  call,
  errorPart,
  refusal,
  type ScriptedModel,
  type ScriptedStep,
  step,
  text,
} from "../support/scripted-model.ts";
import { ended, inboxOf, openHouse, openScene, passTime, runsOf, scripted, userTexts, waits } from "./fixture.ts";

/** An agent's model refuses an input as too long, whatever was known of it (R4). */
const tooLong = refusal(apiError(400, { responseBody: '{"error":{"code":"context_length_exceeded"}}' }));
const unavailable = refusal(apiError(503));

const lived = 6;
const paragraph = "The numbers of the quarter are these, and they have to be read with care. ".repeat(50);

/** An agent that has read a long conversation; then `script` is what its model does. */
const stage = async (script: ScriptedStep[] | (() => ScriptedStep), settings: UpdateAgent = {}) => {
  const house = await openHouse();
  const [husam, designer] = [await house.person("Husam"), await house.person("Designer")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline" });
  const space = await house.space("Alpha", [husam, designer, analyst]);
  scripted(() => step(text("Read.")));
  for (let count = 1; count <= lived; count += 1) {
    await space.post(husam, `Report ${count}. ${paragraph}`);
    await ended(house.workspaceId, analyst, count);
  }
  unwrap(await env.AGENT.getByName(analyst.id).update(house.workspaceId, settings));
  const model = scripted(script);
  return {
    ...{ house, husam, designer, analyst, space, model },
    run: async () => {
      await space.post(husam, "And what of it?");
      return (await ended(house.workspaceId, analyst, lived + 1)).slice(lived);
    },
  };
};

const lengths = (model: ScriptedModel) => model.calls.map(({ prompt }) => JSON.stringify(prompt).length);
const said = [step(call("send_message", { text: "This." })), step(text("Said."))];

test.each(["prompt", "messages"] as const)(
  "[R4] a too long timeline input is shortened and answered in the same run (%s)",
  async (history) => {
    const { run, model, space, house, analyst } = await stage([tooLong, ...said], { context: { history } });
    expect(await run()).toMatchObject([{ status: "completed", outcome: "answered" }]);
    const [long = 0, short = 0] = lengths(model);
    expect(short).toBeLessThan(long * 0.7);
    const shorter = userTexts(model.calls[1]).join("\n");
    expect(shorter).toContain("And what of it?");
    expect(shorter).toContain(`Report ${lived}.`);
    expect(shorter).not.toContain("Report 1.");
    // A refused input is no part of the next one.
    expect(JSON.stringify(model.calls[2]?.prompt)).not.toContain("Report 1.");
    expect((await space.texts()).filter((each) => each === "Analyst: This.")).toHaveLength(1);
    expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  },
);

test("[R4] a timeline's too long input is tried twice a run, then fails the run, typed", async () => {
  const { run, model, house, analyst } = await stage(() => tooLong);
  expect(await run()).toMatchObject([{ status: "failed", error: { code: "context_overflow" } }]);
  expect(model.calls).toHaveLength(2);
  await passTime(analyst, 5000);
  await ended(house.workspaceId, analyst, lived + 2);
  expect(model.calls).toHaveLength(4);
});

test("[R4] a living agent's too long input is compacted once a run, then fails the run, typed", async () => {
  const { house, husam, analyst, space } = await openScene({ context: { minRecentCycles: 3 } });
  scripted((_, index) =>
    index === 0
      ? step(call("enter_space", { spaceId: space.id }))
      : step(index % 2 === 1 ? call("send_message", { text: `Answer ${index}` }) : text("Said.")),
  );
  for (let count = 1; count <= lived; count += 1) {
    await space.post(husam, `Report ${count}. ${paragraph}`);
    await ended(house.workspaceId, analyst, count);
  }
  const model = scripted(() => tooLong);
  await space.post(husam, "And what of it?");
  const runs = await ended(house.workspaceId, analyst, lived + 1);
  expect(runs.at(-1)).toMatchObject({ status: "failed", error: { code: "context_overflow" } });
  expect(model.calls).toHaveLength(2);
  const [long = 0, short = 0] = lengths(model);
  expect(short).toBeLessThan(long);
});

test("[R3] [R4] an input shortened after a refusal is kept: a run that paused goes on with it", async () => {
  const { model, house, analyst, space, husam } = await stage([tooLong, unavailable, tooLong]);
  await space.post(husam, "And what of it?");
  await vi.waitFor(() => expect(model.calls).toHaveLength(2));
  await vi.waitFor(async () => {
    await passTime(analyst, 5000);
    expect((await runsOf(house.workspaceId, analyst))[0]?.status).toBe("failed");
  });
  expect(model.calls[2]?.prompt).toEqual(model.calls[1]?.prompt);
  const [run] = await runsOf(house.workspaceId, analyst);
  expect(run).toMatchObject({ status: "failed", error: { code: "context_overflow" } });
  expect(model.calls).toHaveLength(3);
});

test("[R3] [R4] a timeline run refused midway goes on from what it did, and repeats nothing", async () => {
  const { run, model, house, analyst } = await stage(
    [step(call("set_memories", { memories: [{ key: "all", value: paragraph.slice(0, 3000) }] })), tooLong, ...said],
    { toolRules: [] },
  );
  const [only] = await run();
  expect(only).toMatchObject({ status: "completed", outcome: "answered" });
  expect(only?.steps.map(({ toolCalls }) => toolCalls.map(({ name, status }) => `${name} ${status}`))).toEqual([
    ["set_memories complete"],
    ["send_message complete"],
    [],
  ]);
  const [first = 0, grown = 0, shorter = 0] = lengths(model);
  expect(grown).toBeGreaterThan(first);
  expect(shorter).toBeLessThan(grown * 0.7);
  expect(model.calls[2]?.prompt.map(({ role }) => role)).toEqual(["system", "user"]);
  expect(userTexts(model.calls[2])[0]).toMatch(/THIS RUN SO FAR:\n {2}- called set_memories\(/);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
});

test("[R4] [D4] words streamed before an input was refused are taken back before the next try", async () => {
  const begun = { type: "begun", toolName: "send_message", deltas: ['{"text": "Half of'] } as const;
  const cut = step({ ...begun, deltas: [...begun.deltas] }, errorPart(tooLong.refusal));
  const { run, space, husam } = await stage([cut, ...said]);
  const watching = await space.watch(husam);
  expect(await run()).toMatchObject([{ status: "completed", outcome: "answered" }]);
  await vi.waitUntil(() => watching.some((frame) => frame.type === "space.message" && frame.message.text === "This."));
  const ofStreams = watching.flatMap(({ type }) =>
    ["tool-call.start", "tool-call.error"].includes(type) ? [type] : [],
  );
  expect(ofStreams.slice(0, 2)).toEqual(["tool-call.start", "tool-call.error"]);
  expect(ofStreams.filter((type) => type === "tool-call.error")).toHaveLength(1);
});

test("[R4] a reminder of a rule is said again where the input that held it was too long", async () => {
  const { run, model } = await stage([step(text("Nothing.")), tooLong, ...said], {
    toolRules: [{ rule: "required_before_exit", tool: "send_message" }],
  });
  expect(await run()).toMatchObject([{ status: "completed", outcome: "answered" }]);
  expect(userTexts(model.calls[1]).at(-1)).toContain("REMINDER:");
  expect(userTexts(model.calls[2]).at(-1)).toContain("REMINDER:");
});

test("[R4] refused as it goes on after a wait, a timeline run is told again who answered", async () => {
  const question = step(call("send_message", { text: "@Designer is it good?", wait: true }));
  const { model, house, analyst, space, husam, designer } = await stage([question, tooLong, ...said], {
    messaging: "threaded",
  });
  await space.post(husam, "Ask");
  await waits(house.workspaceId, analyst);
  await space.post(designer, "It is");
  expect((await ended(house.workspaceId, analyst, lived + 1)).at(-1)).toMatchObject({ status: "completed" });
  for (const at of [1, 2]) expect(userTexts(model.calls[at])[0]).toMatch(/← RESUME: .*"Designer".* replied\./);
  expect(userTexts(model.calls[2])[0]).toMatch(/"It is" {2}\[NEW\] ← REPLY/);
  const [, long = 0, short = 0] = lengths(model);
  expect(short).toBeLessThan(long * 0.7);
});
