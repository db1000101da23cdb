import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { maxBatchEvents, maxOverheardEvents } from "../../src/agent/bounds.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { apiError, call, installModel, refusal, scriptedModel, step, text, waitAt } from "../support/scripted-model.ts";
import { ask, scene, yes } from "./calls/scene.ts";
import {
  type AgentSettings,
  ended,
  inboxOf,
  openHouse,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  userTexts,
} from "./fixture.ts";

/** Events that a root's bound has muted wake nobody, and delay nothing. */
test("[B1] muted events, however many, do not delay what a stateless agent hears next", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxConcurrentRuns: 1, maxWakesPerRoot: 1 };
  const listener = await house.agent({ name: "Listener", continuity: "timeline", model: named("listener"), limits });
  const chatter = await house.agent({ name: "Chatter", continuity: "timeline", model: named("chatter"), limits });
  const space = await house.space("Alpha", [husam, listener, chatter]);
  const words = (step_: number) => Array.from({ length: 30 }, (_, index) => `word ${step_}-${index}`);
  const listening = scriptedModel(() => step(text("Read.")));
  const chatting = scriptedModel((_, index) =>
    index < 4 ? step(...words(index).map((word) => call("send_message", { text: word }))) : step(text("Said enough.")),
  );
  onTestFinished(installModel(({ name }) => (name === "chatter" ? chatting : listening)));

  await space.post(husam, "Talk");
  await ended(house.workspaceId, chatter, 1);
  await ended(house.workspaceId, listener, 1);
  await space.post(husam, "Are you there?");
  const [, second] = await ended(house.workspaceId, listener, 2);
  expect(second?.trigger.text).toBe("Are you there?");
  expect(userTexts(listening.calls[1])[0]).toMatch(/"Are you there\?" {2}\[NEW\] ← TRIGGER/);
  expect(await inboxOf(house.workspaceId, listener)).toEqual([]);
  await space.post(husam, "And now?");
  await ended(house.workspaceId, listener, 3);
  expect(userTexts(listening.calls[2])[0]?.match(/\[NEW\]/g)).toHaveLength(1);
});

test("[B1] muted events, however many, do not delay what a living agent hears next", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const limits = { maxWakesPerRoot: 1 };
  const listener = await house.agent({ name: "Listener", model: named("listener"), limits });
  const chatter = await house.agent({ name: "Chatter", continuity: "timeline", model: named("chatter"), limits });
  const space = await house.space("Alpha", [husam, listener, chatter]);
  const many = 4 * 30;
  const listening = scriptedModel(() => step(text("Read.")));
  const chatting = scriptedModel((_, turn) => {
    const words = Array.from({ length: 30 }, (__, index) => call("send_message", { text: `word ${turn}-${index}` }));
    return turn < many / 30 ? step(...words) : step(text("Said enough."));
  });
  onTestFinished(installModel(({ name }) => (name === "chatter" ? chatting : listening)));
  await space.post(husam, "Talk");
  await ended(house.workspaceId, chatter, 1);
  await ended(house.workspaceId, listener, 1);
  const inbox = async () =>
    unwrap(await env.AGENT.getByName(listener.id).inbox(house.workspaceId, { limit: 500 })).items;
  await expect.poll(async () => (await inbox()).length).toBe(many);
  await space.post(husam, "Are you there?");
  const [, second] = await ended(house.workspaceId, listener, 2);
  expect(second?.trigger).toMatchObject({ text: "Are you there?", eventCount: maxBatchEvents });
  const read = userTexts(listening.calls[1]).at(-1);
  expect(read).toContain(`(${many + 1 - maxBatchEvents} earlier messages: read_messages shows them)`);
  expect(read).toContain('"Are you there?" [triggerSource: every_message]\nACTIVE');
  expect(await inbox()).toEqual([]);
  expect(await runsOf(house.workspaceId, listener)).toHaveLength(2);
});

test.each(["timeline", "consciousness"] as const)(
  "[B1] muted events wake a %s no more when the run that took them along fails",
  async (continuity) => {
    const house = await openHouse();
    const husam = await house.person("Husam");
    const limits = { maxConcurrentRuns: 1, maxWakesPerRoot: 1 };
    const listener = await house.agent({ name: "Listener", continuity, model: named("listener"), limits });
    const chatter = await house.agent({ name: "Chatter", continuity: "timeline", model: named("chatter"), limits });
    const space = await house.space("Alpha", [husam, listener, chatter]);
    const listening = scriptedModel((_, index) => (index === 1 ? refusal(apiError(400)) : step(text("Read."))));
    const words = Array.from({ length: 5 }, (_, index) => call("send_message", { text: `word ${index}` }));
    const chatting = scriptedModel((_, index) => (index === 0 ? step(...words) : step(text("Said enough."))));
    onTestFinished(installModel(({ name }) => (name === "chatter" ? chatting : listening)));
    await space.post(husam, "Talk");
    await ended(house.workspaceId, chatter, 1);
    await ended(house.workspaceId, listener, 1);
    await expect.poll(async () => (await inboxOf(house.workspaceId, listener)).length).toBe(words.length);
    await space.post(husam, "Are you there?");
    await ended(house.workspaceId, listener, 2);
    await passTime(listener, 10_000);
    onTestFinished(() => void vi.useRealTimers());
    const [, failed, answered] = await ended(house.workspaceId, listener, 3);
    expect([failed?.status, answered?.status]).toEqual(["failed", "completed"]);
    expect(answered?.trigger.text).toBe("Are you there?");
    await expect.poll(() => inboxOf(house.workspaceId, listener)).toEqual([]);
    expect(await runsOf(house.workspaceId, listener)).toHaveLength(3);
  },
);

/** A listener that reads "Talk" until the gate opens, and after it whatever comes. */
const readingTalk = async (limits: AgentSettings["limits"] = {}) => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const listener = await house.agent({ name: "Listener", limits });
  const space = await house.space("Alpha", [husam, listener]);
  const gate = createGate();
  scripted((_, index) => (index === 0 ? step(waitAt(gate), text("Read.")) : step(text("Read."))));
  await space.post(husam, "Talk");
  await gate.reached;
  return { house, husam, listener, space, gate };
};

test("[R1] [B1] a dead event that a person picks runs again, though its root's bound muted it", async () => {
  const { house, listener, gate } = await readingTalk();
  await rowsIn(
    listener,
    `INSERT INTO inbox (event_id, type, data, root_id, wakes, attempts, status, retry_at, received_at)
       SELECT 'evt_dead', type, data, root_id, 0, 5, 'dead', 0, 0 FROM inbox WHERE status = 'taken'`,
  );
  gate.open();
  await ended(house.workspaceId, listener, 1);
  unwrap(await env.AGENT.getByName(listener.id).retryEvent(house.workspaceId, "evt_dead"));
  await ended(house.workspaceId, listener, 2);
  expect(await inboxOf(house.workspaceId, listener)).toEqual([]);
});

test("[B1] events that wait when their root has woken the agent its last time wake it no more", async () => {
  const { house, husam, listener, space, gate } = await readingTalk({ maxWakesPerRoot: 1 });
  // So many answers to its message came while it was read, and a retry of one.
  const many = 10 * maxBatchEvents;
  await rowsIn(
    listener,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${many})
       INSERT INTO inbox (event_id, type, data, root_id, wakes, status, received_at)
       SELECT 'evt' || i, type, data, 'other', 1, 'pending', 0 FROM n, inbox WHERE status = 'taken'`,
  );
  gate.open();
  await ended(house.workspaceId, listener, 2);
  const waiting = await inboxOf(house.workspaceId, listener);
  expect(waiting.map(({ wakes }) => wakes)).toEqual(Array.from({ length: maxBatchEvents }, () => false));
  const heard = await rowsIn(listener, "SELECT seq FROM overheard");
  expect(heard).toHaveLength(maxOverheardEvents);
  await space.post(husam, "Are you there?");
  const [, second, third] = await ended(house.workspaceId, listener, 3);
  expect([second?.trigger.eventCount, third?.trigger.eventCount]).toEqual([maxBatchEvents, maxBatchEvents]);
  expect(third?.trigger.text).toBe("Are you there?");
  expect(await inboxOf(house.workspaceId, listener)).toEqual([]);
});

const mutedPlan = {
  planId: "p",
  planName: "p",
  instruction: "Again",
  scheduledAt: "2031-03-03T00:00:00.000Z",
  root: { id: "used", kind: "agent" },
};

/** So many events were overheard, `type1`…, whose root has woken the agent more often than it may. */
const fillMuted = (agent: EntityRef, count: number, type: "plan" | "space_message", data: object) =>
  rowsIn(
    agent,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO overheard (event_id, type, data, root_id, received_at) SELECT ?1 || i, ?1, ?2, 'used', 0 FROM n`,
    type,
    JSON.stringify({ type, ...data }),
  );

test("[R1] [B3] muted events over maxOverheardEvents are dropped, logged unless messages", async () => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const sara = await house.person("Sara");
  const listener = await house.agent({ name: "Listener" });
  const space = await house.space("Alpha", [husam, sara, listener]);
  const model = scripted(() => step(text("Read.")));
  const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  await fillMuted(listener, 3, "space_message", { delivered: { message: { spaceId: space.id } } });
  await fillMuted(listener, maxOverheardEvents + 6, "plan", mutedPlan);
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  await space.post(husam, "@Sara a word");
  await space.post(husam, "@Listener are you there?");
  await ended(house.workspaceId, listener, 1);
  const letGo = Array.from({ length: 7 }, (_, index) => ({
    level: "warn",
    event: "event.let_go",
    agentId: listener.id,
    eventId: `plan${index + 1}`,
    type: "plan",
    code: "maxWakesPerRoot",
  }));
  const told: { eventId: string }[] = warned.mock.calls.map(([line]) => JSON.parse(String(line)));
  expect(told).toEqual(letGo);
  expect(userTexts(model.calls[0]).at(-1)).toContain("(3 earlier messages: read_messages shows them)");
});

/** The root of whatever the agent has under way has woken it as often as it may. */
const useUp = (agent: EntityRef) => rowsIn(agent, "UPDATE roots SET wakes = 99");

test("[R1] a person's answer wakes the living agent that asked, though its root's bound is met", async () => {
  const { agent, model, ann, space, asked, give } = await scene({
    continuity: "consciousness",
    tools: [ask],
    steps: [],
  });
  model.push(step(call("enter_space", { spaceId: space.id })), step(call("confirm", {})), step(text("Asked.")));
  model.push(step(text("Noted.")));
  await asked("confirm");
  await useUp(agent);
  unwrap(await give(ann, "confirm", yes));
  await model.called(4);
  expect(userTexts(model.calls[3]).at(-1)).toContain("Tool result confirm");
});

test("[R1] a server's background result wakes its agent, though its root's bound is reached", async () => {
  const { agent, model, ann, space, workspaceId, run } = await scene({
    tools: [{ name: "lookUp", executionType: "external", visible: false, async: true }],
    steps: [step(call("lookUp", {})), step(text("Begun.")), step(text("Noted."))],
  });
  await space.post(ann, "Look it up");
  const begun = await run("completed");
  await useUp(agent);
  const toolCallId = begun.steps[0]?.toolCalls[0]?.id ?? "";
  unwrap(await env.AGENT.getByName(agent.id).answerToolCall(workspaceId, toolCallId, { result: "seven" }));
  await model.called(3);
  expect(userTexts(model.calls[2]).at(-1)).toContain('"seven"');
});

test("an agent that becomes living is told what woke nobody and no stateless run was shown", async () => {
  const house = await openHouse();
  const [husam, sara] = [await house.person("Husam"), await house.person("Sara")];
  const analyst = await house.agent({ name: "Analyst", continuity: "timeline" });
  const spaces = [
    await house.space("Alpha", [husam, sara, analyst]),
    await house.space("Beta", [husam, sara, analyst]),
  ] as const;
  const [alpha, beta] = spaces;
  for (const space of spaces) unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  scripted(() => step(text("Read.")));
  for (const aside of ["one", "two"]) await alpha.post(sara, aside);
  for (const aside of ["one", "two", "three"]) await beta.post(sara, aside);
  await beta.post(husam, "@Analyst look here");
  await ended(house.workspaceId, analyst, 1);
  await beta.post(sara, "four");
  const { seq } = await beta.post(sara, "five");
  const cursorIn = (spaceId: string) =>
    rowsIn(analyst, "select cursor from spaces where id = ?", spaceId).then(([row]) => row?.cursor);
  await expect.poll(() => cursorIn(beta.id)).toBeGreaterThanOrEqual(seq);
  const agent = env.AGENT.getByName(analyst.id);
  const told = async () =>
    JSON.stringify(unwrap(await agent.context(house.workspaceId)).messages.at(-1)).match(/\d+ earlier messages/g);
  unwrap(await agent.update(house.workspaceId, { continuity: "consciousness" }));
  await expect.poll(told).toEqual(["2 earlier messages", "2 earlier messages"]);
  await alpha.post(husam, "@Analyst and here");
  await ended(house.workspaceId, analyst, 2);
  expect(await told()).toBeNull();
});

function named(name: string) {
  return { provider: "rehearsal" as const, name, deltasPerSecond: 0 };
}
