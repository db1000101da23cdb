import { expect, onTestFinished, test, vi } from "vitest";
import { maxAttempts, maxBatchEvents, maxDeadLetters, maxInboxEvents } from "../../src/agent/bounds.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { answer, apiError, refusal, step, text } from "../support/scripted-model.ts";
import { type AgentSettings, ended, inboxOf, openScene, passTime, rowsIn, scripted, userTexts } from "./fixture.ts";

/** What a model's provider answers to a key that was revoked. */
const revoked = () => refusal(apiError(401));
const dying = () => Array.from({ length: maxAttempts }, revoked);

const stage = async (settings: Partial<AgentSettings> = {}) => {
  const scene = await openScene(settings);
  const { house, analyst, agent } = scene;
  return {
    ...scene,
    activity: async () => unwrap(await agent.describe(house.workspaceId)).activity,
    /** Lets five runs fail after `before` others, so that what they took is dead. */
    fail: async (before: number) => {
      for (let run = 1; run < maxAttempts; run += 1) {
        await ended(house.workspaceId, analyst, before + run);
        await passTime(analyst, 60_000);
      }
      await ended(house.workspaceId, analyst, before + maxAttempts);
    },
  };
};

const farAhead = 1e15;
/** Services' events of the names `first`… that wait, for a try that does not come, or are dead. */
const fill = (agent: EntityRef, count: number, status: "pending" | "dead", at = 0, first = "x") =>
  rowsIn(
    agent,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO inbox (event_id, type, data, root_id, wakes, attempts, status, retry_at, received_at)
     SELECT '${first}' || i, 'service', '{"type":"service","serviceName":"s","payload":1,"root":{"id":"r","kind":"service"}}',
       'r', 1, ${maxAttempts}, '${status}', ${status === "dead" ? at : farAhead}, 0 FROM n`,
  );

const jira = { serviceName: "jira", payload: { issue: 7 } };

test("[R4] [B3] an agent whose key was revoked hears of its dead events once the key is mended", async () => {
  const { house, analyst, space, agent, activity, ask } = await stage();
  await fill(analyst, maxInboxEvents, "dead");
  scripted([step(text("Read.")), ...answer(space.id, "At last.")]);
  unwrap(await agent.trigger(house.workspaceId, jira));
  await ended(house.workspaceId, analyst, 1);
  await ask("Hello", 2);
  expect(await space.texts()).toEqual(["Husam: Hello", "Analyst: At last."]);
  expect(await activity()).toMatchObject({ waiting: { events: 0, dead: maxInboxEvents } });
});

test("[B3] [R1] beyond maxDeadLetters the first dead are dropped: messages told, others logged", async () => {
  const { husam, analyst, space, fail, activity, ask } = await stage();
  const warned = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  onTestFinished(() => warned.mockRestore());
  const model = scripted([...dying(), ...dying()]);
  await space.post(husam, "Lost");
  await fail(0);
  const letGo = () =>
    warned.mock.calls.map(([line]) => JSON.parse(String(line))).filter(({ event }) => event === "event.let_go");
  await rowsIn(analyst, "UPDATE inbox SET retry_at = 2");
  // It came early and died late.
  await fill(analyst, 1, "dead", 3, "retried");
  await fill(analyst, 1, "dead", 1, "first");
  await fill(analyst, maxDeadLetters - 2, "dead", 3);
  // One more than may be kept, until the next dies.
  expect((await activity())?.waiting.dead).toBe(maxDeadLetters + 1);
  expect(letGo()).toEqual([]);
  await space.post(husam, "Next");
  await fail(maxAttempts);
  expect((await activity())?.waiting.dead).toBe(maxDeadLetters);
  const [message] = await rowsIn(analyst, "SELECT data FROM inbox WHERE type = 'space_message'");
  expect(String(message?.data)).toContain("Next");
  const [first, ...more] = letGo();
  expect(more).toEqual([]);
  expect(first).toMatchObject({ level: "warn", agentId: analyst.id, eventId: "first1" });
  model.push(step(text("Read.")));
  await ask("Hello", 2 * maxAttempts + 1);
  expect(userTexts(model.calls.at(-1)).at(-1)).toContain(
    `["Alpha", ${space.id}] (1 earlier messages: read_messages shows them)`,
  );
});

test("[R1] [R4] events that failed together are retried together, even after unequal failures", async () => {
  const { house, analyst, agent } = await stage();
  scripted([revoked(), step(text("Read."))]);
  await fill(analyst, 2, "pending");
  await rowsIn(analyst, "UPDATE inbox SET retry_at = 0, attempts = seq - 1");
  unwrap(await agent.trigger(house.workspaceId, jira));
  await ended(house.workspaceId, analyst, 1);
  const waiting = await rowsIn(analyst, "SELECT attempts, retry_at FROM inbox ORDER BY seq");
  expect(waiting.map(({ attempts }) => attempts)).toEqual([1, 2, 1]);
  expect(new Set(waiting.map(({ retry_at }) => retry_at)).size).toBe(1);
});

test("[R1] [R4] all dead events are tried again at once, as if for the first time", async () => {
  const { house, analyst, agent, activity } = await stage();
  scripted([revoked(), step(text("Read.")), step(text("Read."))]);
  const many = maxBatchEvents + 50;
  expect(await agent.retryDeadEvents(house.workspaceId)).toEqual({ ok: true, value: { retried: 0 } });
  await fill(analyst, many, "dead");
  expect(await agent.retryDeadEvents(house.workspaceId)).toEqual({ ok: true, value: { retried: many } });
  // The first of them fail once more, the others do not.
  await ended(house.workspaceId, analyst, 2);
  const tried = await inboxOf(house.workspaceId, analyst);
  expect(tried).toHaveLength(maxBatchEvents);
  expect(tried[0]).toMatchObject({ status: "pending", attempts: 1 });
  await passTime(analyst, 60_000);
  const runs = await ended(house.workspaceId, analyst, 3);
  expect(runs.map(({ trigger }) => trigger.eventCount)).toEqual([maxBatchEvents, 50, maxBatchEvents]);
  expect((await activity())?.waiting).toMatchObject({ events: 0, dead: 0 });
});

test("[R1] a discarded dead event is gone, no stateless run reads it as new; no other can be", async () => {
  const { house, husam, analyst, space, agent, fail, ask } = await stage({ continuity: "timeline" });
  const model = scripted(dying());
  await space.post(husam, "Lost");
  await fail(0);
  const [dead] = await inboxOf(house.workspaceId, analyst);
  const discard = () => agent.discardEvent(house.workspaceId, dead?.eventId ?? "");
  await rowsIn(analyst, "UPDATE inbox SET status = 'pending', wakes = 0");
  expect(await discard()).toMatchObject({
    ok: false,
    problem: { code: "conflict", detail: expect.stringContaining("pending") },
  });
  await rowsIn(analyst, "UPDATE inbox SET status = 'dead'");
  unwrap(await discard());
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(await discard()).toMatchObject({ ok: false, problem: { code: "not_found" } });
  model.push(step(text("Read.")));
  await ask("Hello", maxAttempts + 1);
  const read = userTexts(model.calls.at(-1)).join("\n");
  expect(read).toMatch(/"Lost" {2}\[SEEN\]/);
  expect(read).toMatch(/"Hello" {2}\[NEW\]/);
});

test("[B3] an agent whose inbox is full says which bound refuses what comes", async () => {
  const { house, analyst, agent, activity } = await stage();
  scripted([step(text("Read."))]);
  await fill(analyst, maxInboxEvents - 1, "pending");
  await fill(analyst, maxDeadLetters, "dead", 0, "y");
  expect((await activity())?.refusing).toBeUndefined();
  await fill(analyst, 1, "pending", 0, "z");
  expect(await activity()).toMatchObject({
    state: "idle",
    refusing: "maxInboxEvents",
    waiting: { events: maxInboxEvents, dead: maxDeadLetters },
  });
  expect(await agent.trigger(house.workspaceId, jira)).toMatchObject({
    ok: false,
    problem: { code: "unavailable", detail: expect.stringContaining("maxInboxEvents") },
  });
  // Messages that wake nobody take no room.
  await rowsIn(
    analyst,
    `INSERT INTO overheard SELECT seq, event_id, type, data, root_id, received_at FROM inbox WHERE event_id = 'z1'`,
  );
  await rowsIn(analyst, "DELETE FROM inbox WHERE event_id = 'z1'");
  expect(await activity()).not.toHaveProperty("refusing");
  expect((await activity())?.waiting.events).toBe(maxInboxEvents);
});
