import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { maxHeldEvents, tellBudgetAgainMs } from "../../src/agent/bounds.ts";
import { createLedger } from "../../src/agent/ledger.ts";
import type { ServerFrame } from "../../src/protocol/events.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { Space } from "../../src/space/space.ts";
import { createGate } from "../support/gate.ts";
import { call, type ScriptedStep, step, text, waitAt } from "../support/scripted-model.ts";
import {
  type AgentSettings,
  accountsOf,
  agentStub,
  ended,
  ids,
  inboxOf,
  openHouse,
  passTime,
  rowsIn,
  runsOf,
  scripted,
  undoLater,
} from "./fixture.ts";

/** An agent whose day is shared: a quarter of it is what one person may use. Its steps are billed 9,000 tokens each. */
undoLater();
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") }));

const midnight = "2031-03-04T00:00:00.000Z";
const maxTokensPerDay = 120_000;
const share = maxTokensPerDay / 4;
const usage = { inputTokens: 8990, outputTokens: 10 };
const billed = (made: ScriptedStep): ScriptedStep => ({ ...made, usage });

const open = async (settings: Partial<AgentSettings> = {}) => {
  const house = await openHouse();
  const alice = await house.person("Alice");
  const bob = await house.person("Bob");
  const polaris = await house.agent({
    ...{ name: "Polaris", ...settings },
    limits: { maxTokensPerDay, maxConcurrentRuns: 2, ...settings.limits },
  });
  const space = await house.space("Alpha", [alice, bob, polaris]);
  const frames = await space.watch(alice);
  const agent = env.AGENT.getByName(polaris.id);
  const runs = () => runsOf(house.workspaceId, polaris);
  return {
    ...{ house, alice, bob, polaris, space, frames, agent, runs },
    notices: () => frames.filter(isNotice),
    inbox: () => inboxOf(house.workspaceId, polaris),
    answered: (count: number) => ended(house.workspaceId, polaris, count),
    activity: async () => unwrap(await agent.describe(house.workspaceId)).activity,
    spent: async () => {
      const accounts = await accountsOf(polaris);
      return new Map(accounts.map(([of, spent, reserved]) => [of, { spent, reserved }]));
    },
    /** Bob asks until he gets no more answers today. Answers how many he got. */
    askOn: async (): Promise<number> => {
      for (let count = 1; ; count += 1) {
        if (count > 5) throw new Error("he is answered beyond his share");
        await space.post(bob, `Question ${count}`);
        const held = await vi.waitFor(async () => {
          const [all, waiting] = [await runs(), await inboxOf(house.workspaceId, polaris)];
          expect(all.some(({ status }) => status === "running")).toBe(false);
          const isHeld = waiting.length > 0 && all.some(({ error }) => error?.code === "budget_exhausted");
          expect(isHeld || all.filter(({ status }) => status === "completed").length === count).toBe(true);
          return isHeld;
        });
        if (held) return count - 1;
      }
    },
  };
};

type Notice = Extract<ServerFrame, { type: "agent.budget_exhausted" }>;
const isNotice = (frame: ServerFrame): frame is Notice => frame.type === "agent.budget_exhausted";

const both = ["consciousness", "timeline"] as const;

describe.each(both)("a %s", (continuity) => {
  test("[C11] answers others when one's share is used up, says so once, and goes on at midnight", async () => {
    const { alice, bob, polaris, space, askOn, answered, notices, inbox, activity, runs } = await open({ continuity });
    scripted(() => billed(step(text("Read."))));
    const answers = await askOn();
    expect(answers).toBeGreaterThan(1);
    expect((answers - 1) * 9000).toBeLessThan(share);
    const [before] = await runs();
    expect(before?.error?.message).toMatch(
      /^maxShareOfPerson \(0.25 of 120000 tokens\) .* after the reset at 00:00 UTC$/,
    );
    await vi.waitFor(() => expect(notices()).toHaveLength(1));
    expect(notices()).toMatchObject([{ entityId: polaris.id, personId: bob.id, resetsAt: midnight }]);
    expect((await activity())?.state).toBe("idle");

    await space.post(bob, "Anybody?");
    await space.post(alice, "And me?");
    const all = await answered(answers + 2);
    expect(all.slice(answers + 1)).toMatchObject([{ status: "completed", trigger: { text: "And me?" } }]);
    const held = await inbox();
    expect(held.map(({ status, attempts }) => [status, attempts])).toEqual([
      ["pending", 0],
      ["pending", 0],
    ]);
    expect(notices()).toHaveLength(1);

    await passTime(polaris, 12 * 3_600_000);
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    const later = (await answered(answers + 3)).slice(answers + 2);
    expect(later.map(({ status, trigger }) => [status, trigger.text])).toEqual(
      continuity === "timeline"
        ? [
            ["completed", `Question ${answers + 1}`],
            ["completed", "Anybody?"],
          ]
        : [["completed", "Anybody?"]],
    );
    // A message that was held has woken the agent once (B1).
    const wakes = await rowsIn(polaris, "SELECT DISTINCT wakes FROM roots");
    expect(wakes).toEqual([{ wakes: 1 }]);
  });

  test("[C11] goes on at once when its owner allows more", async () => {
    const { house, agent, bob, space, askOn, answered, inbox } = await open({ continuity });
    scripted(() => billed(step(text("Read."))));
    const answers = await askOn();
    await space.post(bob, "Anybody?");
    unwrap(await agent.update(house.workspaceId, { limits: { maxShareOfPerson: 1 } }));
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    expect((await answered(answers + 2)).at(-1)).toMatchObject({ status: "completed", trigger: { text: "Anybody?" } });
  });

  test("[B2] [C11] whose day is spent tells each space in which somebody waits, once", async () => {
    const { house, bob, polaris, space, frames, notices, activity } = await open({
      ...{ continuity, limits: { maxTokensPerDay: 1000 } },
    });
    scripted();
    const other = await house.space("Beta", [bob, polaris]);
    const heard = await other.watch(bob);
    await space.post(bob, "Hello");
    await vi.waitFor(() => expect(notices()).toHaveLength(1));
    expect(notices()).toMatchObject([{ entityId: polaris.id, resetsAt: midnight }]);
    expect(notices()[0]?.personId).toBeUndefined();
    for (const words of ["Hello?", "Is anybody there?"]) await other.post(bob, words);
    await space.post(bob, "Hello!");
    await vi.waitFor(() => expect(heard.filter(isNotice)).toHaveLength(1));
    expect((await activity())?.state).toBe("budget_exhausted");
    expect(frames.filter(isNotice)).toHaveLength(1);
    // A person who comes later is told on arrival.
    const [welcome] = await other.watch(bob);
    expect(welcome).toMatchObject({ spent: [{ entityId: polaris.id, resetsAt: midnight }] });
  });
});

/** A run that acts in its first step, after which its person's share has no room left. */
const acting = async (settings: Partial<AgentSettings>) => {
  const scene = await open(settings);
  const acted = step(call("set_memories", { memories: [{ key: "a", value: "1" }] }));
  const model = scripted([{ ...acted, usage: { inputTokens: share, outputTokens: 0 } }]);
  await scene.space.post(scene.bob, "Remember");
  await vi.waitFor(() => expect(scene.notices()).toHaveLength(1));
  return { ...scene, model };
};

test("[R2] [C11] a cycle that has acted ends where a share stops it, and nobody waits for that", async () => {
  const { alice, space, model, answered, inbox } = await acting({ continuity: "consciousness" });
  expect(await answered(1)).toMatchObject([{ status: "failed", error: { code: "budget_exhausted" } }]);
  expect(await inbox()).toEqual([]);
  model.push(billed(step(text("Yes."))));
  await space.post(alice, "Are you there?");
  expect(await answered(2)).toMatchObject([{}, { status: "completed" }]);
});

test("[R2] [C11] a timeline's run that has acted goes on at midnight, taking no place till then", async () => {
  const limits = { maxConcurrentRuns: 1 };
  const { alice, polaris, space, model, runs, answered, activity } = await acting({ continuity: "timeline", limits });
  model.push(billed(step(text("Yes."))));
  await space.post(alice, "Are you there?");
  const statuses = async () => (await runs()).map(({ status }) => status);
  await vi.waitFor(async () => expect(await statuses()).toEqual(["completed", "running"]));
  expect((await activity())?.state).toBe("idle");
  model.push(billed(step(text("Done."))));
  await passTime(polaris, 12 * 3_600_000);
  expect((await answered(2)).map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(model.calls).toHaveLength(3);
});

test("[C11] a batch of several is paid by who has most in it, then by the next who may", async () => {
  const { alice, bob, space, answered, spent, notices } = await open({ continuity: "consciousness" });
  const gate = createGate();
  const model = scripted([{ ...step(waitAt(gate), text("Read.")), usage: { inputTokens: share, outputTokens: 0 } }]);
  await space.post(bob, "First");
  await gate.reached;
  await space.post(alice, "Mine");
  for (const words of ["Second", "Third"]) await space.post(bob, words);
  model.push(billed(step(text("Read them all."))));
  gate.open();
  const [, mixed] = await answered(2);
  expect(mixed).toMatchObject({ status: "completed", trigger: { eventCount: 3 } });
  await vi.waitFor(() => expect(notices()).toMatchObject([{ personId: bob.id }]));
  model.push(billed(step(text("Read again."))));
  await space.post(alice, "More");
  await answered(3);
  const rows = await spent();
  // The step of his own that was billed, and no part of the batch.
  const his = rows.get(bob.id);
  expect(his?.reserved).toBe("{}");
  expect(Math.abs(Number(his?.spent) - share)).toBeLessThan(10);
  expect(Number(rows.get(alice.id)?.spent)).toBe(9000);
});

/** A day, or a share of it, that has room for one step at a time. */
const tight = {
  share: { maxShareOfPerson: 0.1, maxConcurrentRuns: 3 },
  day: { maxShareOfPerson: 1, maxTokensPerDay: 12_000, maxConcurrentRuns: 3 },
};

describe.each(["share", "day"] as const)("a %s that steps under way have booked", (bound) => {
  test("[B2] [C11] has others wait until those are settled, and tells nobody that it is used up", async () => {
    const settings = { continuity: "timeline", limits: tight[bound] } as const;
    const { alice, bob, polaris, space, spent, notices, answered, inbox } = await open(settings);
    const gate = createGate();
    const model = scripted(() => step(waitAt(gate), text("Read.")));
    for (const count of [1, 2, 3, 4, 5, 6]) await space.post(bob, `At once ${count}`);
    await gate.reached;
    await space.post(alice, "And me?");
    const isHers = ({ prompt }: { prompt: unknown }) => JSON.stringify(prompt).includes("And me?");
    if (bound === "share") await vi.waitFor(() => expect(model.calls.some(isHers)).toBe(true));
    const row = (await spent()).get(bound === "share" ? bob.id : "");
    const booked = Object.values<number>(JSON.parse(String(row?.reserved)));
    expect(booked.reduce((sum, tokens) => sum + tokens, 0)).toBeLessThanOrEqual(12_000);
    // The time of a run that waits stands still: `maxRunMinutes` does not count it.
    const still = "SELECT 1 FROM runs WHERE status = 'running' AND thinks_since IS NULL";
    await vi.waitFor(async () => expect(await rowsIn(polaris, still)).not.toEqual([]));
    gate.open();
    await vi.waitFor(async () => expect(await inbox()).toEqual([]));
    const all = await answered(7);
    expect(all.map(({ status }) => status)).toEqual(Array(7).fill("completed"));
    expect(model.calls).toHaveLength(7);
    expect(notices()).toEqual([]);
  });
});

test("[B2] [C11] runs that waited for a share go on as places come free, no more than may be", async () => {
  const limits = { maxShareOfPerson: 0.07, maxConcurrentRuns: 3 };
  const { house, alice, bob, polaris, agent, space, answered } = await open({ continuity: "timeline", limits });
  const carol = await house.person("Carol");
  const lounge = await house.space("Lounge", [carol, polaris]);
  const gates = Array.from({ length: 5 }, createGate);
  let [begun, over, most] = [0, 0, 0];
  scripted(() => {
    const gate = gates[begun] ?? createGate();
    begun += 1;
    most = Math.max(most, begun - over);
    return step(waitAt(gate), text("Read."));
  });
  const running = "SELECT 1 FROM runs WHERE status = 'running'";
  for (const [index, who] of [bob, bob, alice, alice, carol].entries()) {
    await (who === carol ? lounge : space).post(who, `Question ${index}`);
    await vi.waitFor(async () => expect(await rowsIn(polaris, running)).toHaveLength(index + 1));
  }
  await vi.waitFor(() => expect(begun).toBe(3));
  unwrap(await agent.update(house.workspaceId, { limits: { maxShareOfPerson: 1 } }));
  for (const [index, gate] of gates.entries()) {
    await vi.waitFor(() => expect(begun).toBeGreaterThanOrEqual(Math.min(index + 3, gates.length)));
    over += 1;
    gate.open();
  }
  await answered(5);
  expect(most).toBe(3);
});

describe.each(both)("a recurring plan of a %s", (continuity) => {
  test("[C11] is paid by whom it was set for, until somebody else changes it", async () => {
    const { house, alice, bob, polaris, agent, space, answered, spent } = await open({ continuity });
    const minutely = { id: "count", name: "Count", instruction: "Count them", cron: "* * * * *" };
    const set = (name: string) => [step(call("set_plans", { plans: [{ ...minutely, name }] })), step(text("Set."))];
    const model = scripted([]);
    /** The plan is due. Answers in whose rows its run's first step is. */
    const fired = async (run: number, steps = [step(text("Counted."))]): Promise<string[]> => {
      model.push(...steps);
      await passTime(polaris, 60_000);
      expect((await answered(run)).at(-1)).toMatchObject({ status: "completed", trigger: { type: "plan" } });
      const rows = [...(await spent())].filter(([who]) => who !== "");
      return rows.flatMap(([who, { reserved }]) => (String(reserved).includes(`"${run}:0"`) ? who : []));
    };
    model.push(...set("Bob's"));
    await space.post(bob, "Count every minute");
    await answered(1);
    expect(await fired(2)).toEqual([bob.id]);
    // A run of the plan's own sets it again: it stays his.
    await fired(3, set("Bob's still"));
    expect(await fired(4)).toEqual([bob.id]);
    model.push(...set("Alice's"));
    await space.post(alice, "I take that over");
    await answered(5);
    expect(await fired(6)).toEqual([alice.id]);
    const { id, ...plan } = minutely;
    unwrap(await agent.putPlan(house.workspaceId, id, plan));
    expect(await fired(7)).toEqual([]);
  });
});

test("[C11] who was overheard pays for no plan that another had the agent set", async () => {
  const { house, alice, bob, polaris, space, answered } = await open({ continuity: "consciousness" });
  unwrap(await space.stub().update(house.key, { wakePolicy: "addressed" }));
  const gate = createGate();
  const plan = { id: "count", name: "Count", instruction: "Count them", cron: "* * * * *" };
  scripted([step(waitAt(gate), text("Read.")), step(call("set_plans", { plans: [plan] })), step(text("Set."))]);
  await space.post(alice, "@Polaris hello");
  await gate.reached;
  await space.post(bob, "@Polaris count them every minute");
  await space.post(alice, "It rains, by the way");
  gate.open();
  await answered(2);
  expect(await rowsIn(polaris, "SELECT root ->> '$.by' AS by FROM plans")).toEqual([{ by: bob.id }]);
});

test("[C11] what no person began falls under no share", async () => {
  const { house, agent, answered, spent } = await open({ limits: { maxShareOfPerson: 0.01 } });
  scripted(() => billed(step(text("Read."))));
  for (const count of [1, 2, 3]) {
    unwrap(await agent.trigger(house.workspaceId, { serviceName: "jira", payload: count }));
    await answered(count);
  }
  expect([...(await spent()).keys()]).toEqual([""]);
});

test("[C11] [R1] a space that cannot be told is told later, and tells its members once", async () => {
  const { house, bob, polaris, space, notices } = await open({ limits: { maxTokensPerDay: 1000 } });
  scripted();
  const spy = vi.spyOn(Space.prototype, "noteBudget").mockRejectedValueOnce(new Error("not reached"));
  onTestFinished(() => spy.mockRestore());
  await space.post(bob, "Hello");
  await vi.waitFor(() => expect(spy).toHaveBeenCalledTimes(1));
  expect(notices()).toEqual([]);
  await passTime(polaris, tellBudgetAgainMs + 1);
  await vi.waitFor(() => expect(notices()).toHaveLength(1));
  const again = () => space.stub().noteBudget(house.workspaceId, polaris.id, { resetsAt: midnight });
  unwrap(await again());
  unwrap(
    await space.stub().noteBudget(house.workspaceId, polaris.id, { resetsAt: midnight, personId: "ent_stranger" }),
  );
  expect(notices()).toHaveLength(1);
  const refused = await space.stub().noteBudget(house.workspaceId, ids.mint("ent"), { resetsAt: midnight });
  expect(refused).toMatchObject({ ok: false, problem: { code: "not_a_member" } });
});

test("[B3] [C11] what is held beyond its bound is heard with the next batch", async () => {
  const { alice, bob, polaris, space, askOn, inbox, answered } = await open();
  scripted(() => billed(step(text("Read."))));
  const answers = await askOn();
  await rowsIn(
    polaris,
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${maxHeldEvents})
     INSERT INTO inbox (event_id, type, data, root_id, wakes, status, retry_at, received_at)
     SELECT 'x' || i, 'service', '{"type":"service","serviceName":"s","payload":1,"root":{"id":"r","kind":"service"}}',
       'r', 1, 'pending', ${Date.parse(midnight)}, 0 FROM n`,
  );
  await space.post(bob, "One too many");
  const [newest] = (await inbox()).filter(({ data }) => JSON.stringify(data).includes("One too many"));
  expect(newest ?? { wakes: false }).toMatchObject({ wakes: false });
  await space.post(alice, "And me?");
  expect((await answered(answers + 2)).at(-1)).toMatchObject({ status: "completed", trigger: { eventCount: 2 } });
});

const action = fc.record({
  do: fc.constantFrom("reserve", "reserve", "bill", "refuse", "crash"),
  step: fc.integer({ min: 1, max: 6 }),
  person: fc.constantFrom("ent_a", "ent_b", null),
  tokens: fc.integer({ min: 1, max: 4000 }),
});

test("[C11] no order of steps, crashes and refusals has a step begin beyond its person's share", async () => {
  const house = await openHouse();
  const analyst: EntityRef = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(analyst), (_, { storage }) => {
    const play = (actions: { do: string; step: number; person: string | null; tokens: number }[]): void => {
      storage.sql.exec("DELETE FROM ledger");
      const journal = new Map<string, number>();
      const start = () => createLedger(openDatabase(storage), { now: () => Date.now() }, (step) => journal.get(step));
      let ledger = start();
      const calls: { step: string; person: string | null; counts: number; isOpen: boolean; isUnderWay: boolean }[] = [];
      for (const [index, { do: what, step: of, person, tokens }] of actions.entries()) {
        const under = calls.find((each) => each.isOpen && each.step.endsWith(`:${of}`));
        if (what === "crash") {
          ledger = start();
          for (const each of calls) each.isUnderWay = false;
        }
        if (what === "reserve" && !under) {
          const sum = (of?: string, all = calls) =>
            all.reduce((total, each) => (of === undefined || each.person === of ? total + each.counts : total), 0);
          const limits = person === null ? undefined : { person, limit: 8000 };
          const fits = sum() + tokens <= 20_000 && (person === null || sum(person) + tokens <= 8000);
          const step = `${index}:${of}`;
          expect(ledger.reserve(step, tokens, 20_000, limits)).toBe(fits);
          if (fits) calls.push({ step, person, counts: tokens, isOpen: true, isUnderWay: true });
          // A step waits if it would fit once everything under way cost nothing.
          const sure = calls.filter(({ isUnderWay }) => !isUnderWay);
          const mayFit =
            sum(undefined, sure) + tokens <= 20_000 && (person === null || sum(person, sure) + tokens <= 8000);
          if (!fits) expect(ledger.lacks(tokens, 20_000, limits).endsWith("_booked")).toBe(mayFit);
        }
        if (!under || (what !== "bill" && what !== "refuse")) continue;
        under.isOpen = under.isUnderWay = false;
        under.counts = what === "bill" ? tokens : 0;
        if (what === "bill") journal.set(under.step, tokens);
        ledger.settle(under.step, under.counts, what === "bill");
      }
    };
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => play(actions)),
      { numRuns: 300, seed: 11 },
    );
  });
});
