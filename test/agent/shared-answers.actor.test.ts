import { env } from "cloudflare:workers";
import { expect, test, vi } from "vitest";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { call, type Script, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, ended, inboxOf, openHouse, runsOf, scripted, told, userTexts } from "./fixture.ts";

/** Several questions of one agent to the same people: what answers which of them, and whose the answers are. */
const stage = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const [husam, sara, tom] = [await house.person("Husam"), await house.person("Sara"), await house.person("Tom")];
  const timeline = { messaging: "threaded", continuity: "timeline" } as const;
  const analyst = await house.agent({ name: "Analyst", ...timeline, ...settings });
  const space = await house.space("Alpha", [husam, sara, tom, analyst]);
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  const agent = env.AGENT.getByName(analyst.id);
  const runs = () => runsOf(house.workspaceId, analyst);
  const inbox = () => inboxOf(house.workspaceId, analyst);
  /** Waits until its runs have these states, newest first. */
  const stand = (...statuses: string[]) =>
    vi.waitFor(async () => expect((await runs()).map(({ status }) => status)).toEqual(statuses), 5000);
  const reply = async (who: EntityRef, words: string, replyTo: string) => {
    unwrap(await space.stub().post(space.as(who), { text: words, replyTo }));
    await told(space.id);
  };
  const last = async () => (await space.messages()).at(-1)?.id ?? "";
  return { house, husam, sara, tom, analyst, space, key: house.key, agent, runs, inbox, stand, reply, last };
};

type Scene = Awaited<ReturnType<typeof stage>>;

/** Two runs that wait, the first for Sara and Tom, the second for `whom`. Answers their ids and their questions'. */
const bothWait = async ({ husam, space, stand, runs, last }: Scene, whom: string, then: Script) => {
  const later = typeof then === "function" ? then : () => step(text("Done."));
  const model = scripted((options, index) => {
    if (index === 0) return step(call("send_message", { text: "@Sara @Tom which colour?", wait: true }));
    return index === 1
      ? step(call("send_message", { text: `${whom} which size?`, wait: true }))
      : later(options, index - 2);
  });
  await space.post(husam, "@Analyst one");
  await stand("waiting_reply");
  const questions = [await last()];
  await space.post(husam, "@Analyst two");
  await stand("waiting_reply", "waiting_reply");
  questions.push(await last());
  const [second = "", first = ""] = (await runs()).map(({ id }) => id);
  return { model, first, second, questions };
};

const done: Script = () => step(text("Done."));

test("[K8] a reply to a question that was answered, or asked others, answers no other one", async () => {
  const scene = await stage();
  const { sara, tom, space, stand, reply, inbox } = scene;
  const { model, questions } = await bothWait(scene, "@Sara", done);
  const [colour = "", size = ""] = questions;
  await reply(sara, "Blue", colour);
  expect(await inbox()).toHaveLength(3);
  await reply(sara, "Yes, light blue", colour);
  await reply(tom, "Large", size);
  expect(await inbox()).toHaveLength(3);
  // A reply to somebody else is an answer by its place.
  await reply(sara, "Not so large", await scene.last());
  await stand("completed", "waiting_reply");
  expect(model.calls).toHaveLength(3);
  await space.post(tom, "Red");
  await stand("completed", "completed");
});

test("[K8] a reply to what a cycle said before answers none of its open questions", async () => {
  const { house, husam, sara, analyst, space, last, reply, inbox, stand } = await stage({
    continuity: "consciousness",
  });
  scripted((_, index) => {
    const enter = call("enter_space", { spaceId: space.id });
    if (index === 0) return step(enter, call("send_message", { text: "@Sara which colour?", wait: true }));
    return index === 2
      ? step(enter, call("send_message", { text: "@Sara may I delete the data base?", wait: true }))
      : step(text("Done."));
  });
  await space.post(husam, "@Analyst one");
  await stand("completed");
  const colour = await last();
  await reply(sara, "Blue", colour);
  await ended(house.workspaceId, analyst, 2);
  await space.post(husam, "@Analyst two");
  await ended(house.workspaceId, analyst, 3);
  await reply(sara, "Yes, light blue", colour);
  expect(await inbox()).toMatchObject([{ data: { message: { text: "Yes, light blue" } } }]);
  expect((await inbox())[0]?.data).not.toHaveProperty("answers");
  expect((await scene(house.workspaceId, analyst)).waiting.replies).toBe(1);
});

const scene = async (workspaceId: string, analyst: EntityRef) => {
  const { activity } = unwrap(await env.AGENT.getByName(analyst.id).describe(workspaceId));
  if (!activity) throw new Error("no activity");
  return activity;
};

test.each(["prompt", "messages"] as const)(
  "[K8] [K17] a run that goes on reads the answers its history has no room for (%s)",
  async (history) => {
    const { house, husam, sara, tom, analyst, space, agent, stand } = await stage({
      context: { historyMessages: 2, history },
    });
    let first = "";
    const model = scripted((_, index) => {
      if (index === 0) return step(call("send_message", { text: "@Sara @Tom which colour?", wait: true }));
      return index === 2 ? step(call("get_my_runs", { runId: first })) : step(text("Done."));
    });
    await space.post(husam, "@Analyst one");
    await stand("waiting_reply");
    const answer = await space.post(sara, "Ultramarine");
    for (let n = 0; n < 4; n += 1) await space.post(husam, `chatter ${n}`);
    await space.post(tom, "Vermilion");
    await stand("completed");
    const given = userTexts(model.calls[1]).join("\n");
    expect(given).toMatch(/ANSWERS .*:\n {2}- type: space_message\n.*\n(.*\n)* {4}message: "Ultramarine"/);
    expect(given.split("Vermilion")).toHaveLength(2);
    expect(given).toMatch(/"Vermilion" {2}.*← REPLY/);
    // And so do later runs, by the tool that `knows` names.
    [first] = (await ended(house.workspaceId, analyst, 1)).map(({ id }) => id) as [string];
    unwrap(await agent.trigger(house.workspaceId, { serviceName: "ci", payload: 1 }));
    const [, later] = await ended(house.workspaceId, analyst, 2);
    const { places } = unwrap(await agent.knows(house.workspaceId, { messageId: answer.id }));
    expect(places).toContainEqual({ how: "tool", tool: "get_my_runs", input: { runId: first } });
    expect(later?.steps[0]?.toolCalls[0]?.output).toMatchObject({
      runs: [
        {
          answers: [
            { from: "Sara", messageId: answer.id, text: "Ultramarine" },
            { from: "Tom", text: "Vermilion" },
          ],
        },
      ],
    });
  },
);

test.each([
  ["the first", [0, 1]],
  ["the second", [1, 0]],
] as const)("[K8] [R1] an answer to two runs is given back once both are canceled, %s first", async (_, order) => {
  const scene = await stage();
  const { house, sara, space, agent, inbox, stand } = scene;
  const { model, first, second } = await bothWait(scene, "@Sara @Tom", done);
  await space.post(sara, "@Analyst ultramarine and large");
  expect(await inbox()).toHaveLength(3);
  const both = [first, second];
  unwrap(await agent.cancelRun(house.workspaceId, both[order[0]] ?? ""));
  expect((await inbox()).map(({ status }) => status)).toEqual(["taken", "taken"]);
  unwrap(await agent.cancelRun(house.workspaceId, both[order[1]] ?? ""));
  await stand("completed", "canceled", "canceled");
  expect(userTexts(model.calls[2]).join("\n")).toMatch(/ultramarine and large" {2}\[NEW\] ← TRIGGER/);
  expect(await inbox()).toEqual([]);
});

test.each(["completes", "is canceled"])(
  "[K8] [R1] an answer one run has read is the other's until it %s; it begins none",
  async (how) => {
    const scene = await stage({ context: { historyMessages: 1 } });
    const { house, husam, sara, tom, space, agent, inbox, stand, runs } = scene;
    const { model, first } = await bothWait(scene, "@Sara", done);
    const answer = await space.post(sara, "@Analyst ultramarine and large");
    await stand("completed", "waiting_reply");
    expect(userTexts(model.calls[2]).join("\n")).toContain("ultramarine");
    expect((await inbox()).map(({ data }) => JSON.stringify(data).includes("ultramarine"))).toContain(true);
    if (how === "completes") {
      await space.post(husam, "chatter");
      await space.post(tom, "Red");
      await stand("completed", "completed");
      expect(userTexts(model.calls[3]).join("\n")).toMatch(/ {4}message: "@Analyst ultramarine and large"/);
    } else unwrap(await agent.cancelRun(house.workspaceId, first));
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    expect(await runs()).toHaveLength(2);
    const reads = async () => unwrap(await space.stub().reads(space.as(husam), answer.id)).map(({ runId }) => runId);
    await vi.waitFor(async () => expect(await reads()).toEqual([first]));
  },
);

test("[K4] [K8] a run that absorbs a waiting one is told an answer that is another run's too", async () => {
  const scene = await stage();
  const { house, sara, tom, space, agent, inbox, stand } = scene;
  let absorbed = "";
  const { model, second } = await bothWait(scene, "@Sara @Tom", (_, index) =>
    index === 0 ? step(call("absorb_run", { runId: absorbed })) : step(text("Done.")),
  );
  absorbed = second;
  await space.post(sara, "Ultramarine and large");
  unwrap(await agent.trigger(house.workspaceId, { serviceName: "jira", payload: { a: 1 } }));
  await stand("completed", "absorbed", "waiting_reply");
  expect(JSON.stringify(model.calls[3]?.prompt)).toContain('text":"Ultramarine and large"');
  await space.post(tom, "Red");
  await stand("completed", "absorbed", "completed");
  expect(userTexts(model.calls[4]).join("\n")).toMatch(/"Ultramarine and large" {2}\[NEW\] ← REPLY/);
  expect(await inbox()).toEqual([]);
});

test.each(["is removed from it", "loses it"])(
  "[K8] a timeline that waits in a space and %s is told it is there no more",
  async (how) => {
    const { husam, space, key, analyst, stand } = await stage();
    const question = call("send_message", { text: "@Sara which colour?", wait: true });
    const model = scripted([step(question), step(text("Done."))]);
    await space.post(husam, "@Analyst one");
    await stand("waiting_reply");
    unwrap(await (how === "loses it" ? space.stub().remove(key) : space.stub().removeMember(key, analyst.id)));
    await stand("completed");
    expect(userTexts(model.calls[1]).join("\n")).toContain(
      '← RESUME: "Sara" gave no reply: you are no longer in the space. Continue from here.',
    );
  },
);
