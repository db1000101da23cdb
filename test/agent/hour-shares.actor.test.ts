import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { maxHeldEvents, maxHeldEventsOfPerson } from "../../src/agent/bounds.ts";
import type { ServerFrame } from "../../src/protocol/events.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { apiError, refusal, step, text, waitAt } from "../support/scripted-model.ts";
import { openBoth } from "./compartment.ts";
import {
  type AgentSettings,
  agentStub,
  ended,
  inboxOf,
  openHouse,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  undoLater,
} from "./fixture.ts";

/** An agent of whose runs in an hour one person may begin two. */
undoLater();
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") }));

const minuteMs = 60_000;
const limits = { maxRunsPerHour: 8, maxShareOfPerson: 0.25 };

type Notice = Extract<ServerFrame, { type: "agent.budget_exhausted" }>;
const isNotice = (frame: ServerFrame): frame is Notice => frame.type === "agent.budget_exhausted";

const open = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const [alice, bob] = [await house.person("Alice"), await house.person("Bob")];
  const polaris = await house.agent({ name: "Polaris", ...settings, limits: { ...limits, ...settings.limits } });
  const space = await house.space("Alpha", [alice, bob, polaris]);
  const frames = await space.watch(alice);
  return {
    ...{ house, alice, bob, polaris, space },
    agent: env.AGENT.getByName(polaris.id),
    notices: () => frames.filter(isNotice),
    inbox: () => inboxOf(house.workspaceId, polaris),
    runs: () => runsOf(house.workspaceId, polaris),
    answered: (count: number) => ended(house.workspaceId, polaris, count),
    /** Bob begins as many runs as he may, and has one question more. */
    async askOn(): Promise<void> {
      for (const count of [1, 2]) {
        await space.post(bob, `Question ${count}`);
        await ended(house.workspaceId, polaris, count);
      }
      await space.post(bob, "Question 3");
    },
  };
};

describe.each(["consciousness", "timeline"] as const)("a %s", (continuity) => {
  test("[C10] answers others when one has begun their share of the hour, and tells that once", async () => {
    const { alice, bob, polaris, space, notices, inbox, answered, runs, askOn, agent, house } = await open({
      continuity,
    });
    scripted(() => step(text("Read.")));
    await askOn();
    await vi.waitFor(() => expect(notices()).toHaveLength(1));
    const resetsAt = expect.stringMatching(/^2031-03-03T13:00:0/);
    expect(notices()).toMatchObject([{ entityId: polaris.id, personId: bob.id, resetsAt, budget: "runs" }]);
    await space.post(bob, "Anybody?");
    await space.post(alice, "And me?");
    expect((await answered(3)).at(-1)).toMatchObject({ status: "completed", trigger: { text: "And me?" } });
    expect((await inbox()).map(({ status, attempts }) => [status, attempts])).toEqual([
      ["pending", 0],
      ["pending", 0],
    ]);
    expect(notices()).toHaveLength(1);
    expect(unwrap(await agent.describe(house.workspaceId)).activity).toMatchObject({ state: "idle" });
    // A person who comes later is told on arrival.
    const [welcome] = await space.watch(bob);
    expect(welcome).toMatchObject({ spent: [{ entityId: polaris.id, personId: bob.id, resetsAt, budget: "runs" }] });

    await passTime(polaris, 59 * minuteMs);
    expect(await runs()).toHaveLength(3);
    await passTime(polaris, minuteMs);
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    expect(await answered(continuity === "timeline" ? 5 : 4)).not.toContainEqual(
      expect.objectContaining({ status: "failed" }),
    );
    // A message that was held has woken the agent once (B1).
    expect(await rowsIn(polaris, "SELECT DISTINCT wakes FROM roots")).toEqual([{ wakes: 1 }]);
  });

  test("[C10] goes on at once when its owner allows one person more", async () => {
    const { house, agent, inbox, askOn, answered } = await open({ continuity });
    scripted(() => step(text("Read.")));
    await askOn();
    await vi.waitFor(async () => expect(await inbox()).toHaveLength(1));
    unwrap(await agent.update(house.workspaceId, { limits: { maxShareOfPerson: 0.3 } }));
    expect((await answered(3)).at(-1)).toMatchObject({ status: "completed", trigger: { text: "Question 3" } });
  });

  test("[C10] [R1] tries what failed again within its person's share", async () => {
    const { alice, bob, polaris, space, inbox, answered } = await open({
      continuity,
      limits: { maxRunsPerHour: 4 },
    });
    const model = scripted([refusal(apiError(400))]);
    await space.post(bob, "Question 1");
    await answered(1);
    model.push(step(text("Read.")), step(text("Read.")));
    await passTime(polaris, minuteMs);
    await space.post(alice, "And me?");
    expect((await answered(2)).map(({ trigger }) => trigger.text)).toEqual(["Question 1", "And me?"]);
    await passTime(polaris, 60 * minuteMs);
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    expect((await answered(3)).at(-1)).toMatchObject({ status: "completed", trigger: { text: "Question 1" } });
  });
});

test("[C10] what failed waits for its person's share, though another's run goes on beside it", async () => {
  const { alice, bob, polaris, space, answered, runs, inbox } = await open({
    continuity: "timeline",
    limits: { maxRunsPerHour: 16, maxConcurrentRuns: 2 },
  });
  const gates = new Map([3, 4, 6].map((call) => [call, createGate()] as const));
  scripted((_, index) => {
    const gate = gates.get(index);
    return index === 5 ? refusal(apiError(400)) : step(...(gate ? [waitAt(gate)] : []), text("Read."));
  });
  for (const count of [1, 2, 3]) {
    await space.post(bob, `Question ${count}`);
    await answered(count);
  }
  for (const words of ["One", "Two", "Three", "Four"]) await space.post(alice, words);
  await space.post(bob, "Question 4");
  const pending = async () => (await inbox()).filter(({ status }) => status === "pending");
  await vi.waitFor(async () => expect(await pending()).toHaveLength(3));
  gates.get(4)?.open();
  await gates.get(6)?.reached;
  await passTime(polaris, minuteMs);
  gates.get(3)?.open();
  await vi.waitFor(async () => expect(await runs()).toHaveLength(8));
  expect((await runs()).map(({ trigger }) => trigger.text).slice(0, 3)).toEqual(["Four", "Three", "Question 4"]);
  gates.get(6)?.open();
});

test("[C10] [C21] an old open run that a compartment is fed hides none of a person's runs there", async () => {
  const three = { ...limits, maxRunsPerHour: 12 };
  const { space, husam, secret, house, analyst } = await openBoth({ continuity: "timeline", limits: three });
  const gate = createGate();
  scripted((_, index) => step(...(index === 0 ? [waitAt(gate)] : []), text("Read.")));
  await space.post(husam, "A long one?");
  await gate.reached;
  vi.setSystemTime(Date.now() + 30 * minuteMs);
  await secret.ask("Question 1", 1);
  gate.open();
  await ended(house.workspaceId, analyst, 1);
  await secret.ask("Question 2", 2);
  vi.setSystemTime(Date.now() + 31 * minuteMs);
  await evictDurableObject(agentStub(secret.mind));
  await secret.ask("Question 3", 3);
  await secret.tell("Question 4");
  const held = "SELECT count(*) AS held FROM inbox WHERE status = 'pending' AND retry_at IS NOT NULL";
  await vi.waitFor(async () => expect(await rowsIn(secret.mind, held)).toEqual([{ held: 1 }]));
});

/** So many events of a person's wait. */
const fill = (agent: { id: string }, by: { id: string }, count: number) =>
  rowsIn(
    agent,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO inbox (event_id, type, data, root_id, wakes, status, received_at)
     SELECT 'x' || i, 'service', json_object('type', 'service', 'serviceName', 's', 'payload', i,
       'root', json_object('id', 'r' || i, 'kind', 'service', 'by', '${by.id}')), 'r' || i, 1, 'pending', 0 FROM n`,
  );

test("[C12] what is held for one person leaves room for what is held for another", async () => {
  const day = { maxTokensPerDay: 120_000, maxRunsPerHour: 600 };
  const { alice, bob, polaris, space, answered } = await open({ limits: day });
  scripted(() => ({ ...step(text("Read.")), usage: { inputTokens: day.maxTokensPerDay / 4, outputTokens: 0 } }));
  await space.post(alice, "One");
  await answered(1);
  await space.post(alice, "Two");
  await answered(2);
  await fill(polaris, bob, 1200);
  await space.post(bob, "Go");
  await answered(4);
  const held = (
    await rowsIn(polaris, "SELECT data FROM inbox WHERE status = 'pending' AND retry_at IS NOT NULL")
  ).filter(({ data }) => String(data).includes(bob.id));
  // The events of his last batch go back beside those that were held.
  expect(held.length).toBeGreaterThanOrEqual(maxHeldEventsOfPerson);
  expect(held.length).toBeLessThanOrEqual(maxHeldEventsOfPerson + 100);
  await space.post(alice, "Mine");
  expect(await rowsIn(polaris, `SELECT status, wakes FROM events WHERE data LIKE '%"Mine"%'`)).toEqual([
    { status: "pending", wakes: 1 },
  ]);
});

test("[C12] what waits of one person leaves room in the inbox for what waits of another", async () => {
  const { alice, bob, polaris, space } = await open();
  const gate = createGate();
  scripted(() => step(waitAt(gate), text("Read.")));
  await space.post(bob, "Go");
  await gate.reached;
  await fill(polaris, bob, maxHeldEvents);
  await space.post(bob, "More");
  await space.post(alice, "Mine");
  const newest = "SELECT data ->> '$.delivered.message.text' AS text, wakes FROM events ORDER BY seq DESC LIMIT 2";
  await vi.waitFor(async () =>
    expect(await rowsIn(polaris, newest)).toEqual([
      { text: "Mine", wakes: 1 },
      { text: "More", wakes: 0 },
    ]),
  );
  gate.open();
});
