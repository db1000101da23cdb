import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { maxLeaseMs } from "../../src/agent/bounds.ts";
import { createLedger } from "../../src/agent/ledger.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { createGate } from "../support/gate.ts";
import { call, step, text, waitAt } from "../support/scripted-model.ts";
import { agentStub, ended, inboxOf, openHouse, passTime, rowsIn, runsOf, scripted } from "./fixture.ts";

/**
 * The ledger against what it promises. Runs reserve, are billed, are refused and crash in any order, beside payers
 * without a journal. Midnights pass, and clocks go back. The model remembers every call that was made.
 */
const hourMs = 3_600_000;
const limit = 10_000;
const runCount = 4;

const run = fc.integer({ min: 1, max: runCount });
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("reserve"), run, tokens: fc.integer({ min: 1, max: 4000 }) }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("journal"), run, tokens: fc.integer({ min: 0, max: 6000 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("refuse"), run, tokens: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pay"), run, tokens: fc.integer({ min: 1, max: 1000 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("crash"), run, tokens: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pass"), run, tokens: fc.integer({ min: -30, max: 30 }) }) },
);
type Action = { do: string; run: number; tokens: number };

/** A call of a model: on which day it was reserved for, what it counts there, and whether that is settled. */
type Call = { run: number; step: string; day: string; counts: number; settled: boolean; answered: boolean };

const play = (storage: DurableObjectStorage, actions: Action[]): void => {
  const db = openDatabase(storage);
  storage.sql.exec("DELETE FROM ledger");
  let now = Date.parse("2026-02-18T12:00:00Z");
  const clock = { now: () => now };
  const journal = new Map<string, number>();
  const open = () => createLedger(db, clock, (step) => journal.get(step));
  let ledger = open();
  const calls: Call[] = [];
  const steps = new Map<number, number>();
  const underWay = (of: number) => calls.findLast((each) => each.run === of && !each.answered);
  const today = () => new Date(now).toISOString().slice(0, 10);
  const ofToday = () => calls.filter(({ day }) => day === today());
  const spent = () => ofToday().reduce((sum, { counts }) => sum + counts, 0);
  for (const [index, { do: what, run: of, tokens }] of actions.entries()) {
    const call = underWay(of);
    if (what === "reserve") {
      const step = `${of}:${steps.get(of) ?? 0}`;
      const fits = spent() + tokens <= limit;
      expect(ledger.reserve(step, tokens, limit)).toBe(fits);
      // A call that was cut before counts whole.
      for (const each of ofToday()) if (fits && each.step === step) each.settled = true;
      if (fits) calls.push({ run: of, step, day: today(), counts: tokens, settled: false, answered: false });
    } else if (what === "journal" && call) {
      call.answered = true;
      journal.set(call.step, tokens);
      steps.set(of, (steps.get(of) ?? 0) + 1);
      ledger.settle(call.step, tokens, true);
    } else if (what === "refuse" && call) {
      call.answered = true;
      ledger.settle(call.step, 0);
      const isToday = call.day === today();
      // The day before counts too, unless the step has begun anew since.
      const isLast = isToday || Date.parse(call.day) + 24 * hourMs === Date.parse(today());
      if (isLast) Object.assign(call, { counts: 0, settled: isToday || call.settled });
    } else if (what === "pay" && ledger.reserve(`summary:${index}`, 2 * tokens, limit)) {
      ledger.settle(`summary:${index}`, tokens);
      calls.push({ run: 0, step: "", day: today(), counts: tokens, settled: true, answered: true });
    } else if (what === "crash") ledger = open();
    else if (what === "pass") now += tokens * hourMs;
    for (const each of ofToday()) {
      const billed = journal.get(each.step);
      if (!each.settled && billed !== undefined) Object.assign(each, { counts: billed, settled: true });
    }
    expect(ledger.spent()).toBe(spent());
  }
};

test("[B2] nothing that may have been billed is forgotten, counted twice or lent to another run", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => play(storage, actions)),
      { numRuns: 300, seed: 5 },
    );
  });
});

test("[B2] [B3] the days of a month are kept, and no more", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    let now = Date.parse("2026-02-18T12:00:00Z");
    const ledger = createLedger(openDatabase(storage), { now: () => now });
    for (let day = 0; day < 50; day += 1, now += 24 * hourMs) ledger.reserve("1:0", 10, limit);
    expect(storage.sql.exec("SELECT min(day) AS oldest, count(*) AS days FROM ledger").one()).toEqual({
      oldest: "2026-03-09",
      days: 31,
    });
  });
});

test("[B2] [C11] what a compartment has leased for longer than maxLeaseMs is under way no more", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    let now = Date.parse("2026-02-18T12:00:00Z");
    const ledger = createLedger(openDatabase(storage), { now: () => now });
    const [person, day] = ["ent_husam", 1000];
    const share = { person, limit: 500 };
    expect(ledger.reserve(`ent_mind 1:0 ${now} a`, 450, day, share)).toBe(true);
    expect(ledger.lacks(100, day, share)).toBe("share_booked");
    now += maxLeaseMs;
    // Its compartment crashed: nobody settles it.
    expect(ledger.lacks(100, day, share)).toBe("share");
  });
});

test("[B2] [L15] a step that ends after midnight counts as billed, on the day of its start", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    let now = Date.parse("2026-02-18T23:59:59Z");
    const ledger = createLedger(openDatabase(storage), { now: () => now });
    const [lease, share] = [`ent_mind 1:0 ${now} a`, { person: "ent_husam", limit: 10_000 }];
    expect(ledger.reserve(lease, 5000, 10_000, share, "spc_alpha")).toBe(true);
    now += 2000;
    expect(ledger.reserve("2:0", 50, 10_000)).toBe(true);
    ledger.settle(lease, 100);
    expect(ledger.spent()).toBe(50);
    now += maxLeaseMs;
    const day = "2026-02-18";
    expect(ledger.used()).toMatchObject([
      { day, of: null, tokens: 100 },
      { day, of: share.person, tokens: 100 },
      { day, of: "spc_alpha", tokens: 100 },
      { day: "2026-02-19" },
    ]);
  });
});

test("[C11] [L15] [B3] accounts that moved out of a day's row count as those within", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    const journal = new Map<string, number>();
    const clock = { now: () => Date.parse("2026-02-18T12:00:00Z") };
    const open = () => createLedger(openDatabase(storage), clock, (step) => journal.get(step));
    let ledger = open();
    const told = new Map<string | null, number>();
    const waiting: { step: string; of: (string | null)[] }[] = [];
    for (let index = 0; index < 300; index += 1) {
      const [step, person, spaceId] = [`${index}:0`, `ent_${index % 50}`, `spc_${index % 70}`];
      const share = { person, limit: 1_000_000 };
      expect(ledger.reserve(step, 1000, 10_000_000, share, spaceId)).toBe(true);
      waiting.push({ step, of: [null, person, spaceId] });
      if (index % 11 === 0) ledger = open();
      if (index % 3 === 0) continue;
      const { step: over, of } = waiting.splice((index * 7) % waiting.length, 1)[0] ?? { step: "", of: [] };
      const billed = index % 5 === 0 ? 0 : index;
      if (billed > 0) journal.set(over, billed);
      ledger.settle(over, billed, billed > 0);
      for (const each of of) told.set(each, (told.get(each) ?? 0) + billed);
    }
    // Nobody knows any more that these are under way: they count as reserved.
    ledger = open();
    for (const { of } of waiting) for (const each of of) told.set(each, (told.get(each) ?? 0) + 1000);
    const used = ledger.used();
    expect(used).toHaveLength(1 + 50 + 70);
    expect(new Map(used.map(({ of, tokens }) => [of, tokens]))).toEqual(told);
    const [row] = storage.sql.exec("SELECT within FROM ledger WHERE day = '2026-02-18'").toArray();
    expect(Object.keys(JSON.parse(String(row?.within))).length).toBeLessThan(50 + 70);
  });
});

test("[C11] [L15] steps that a release finds under way are settled where their tokens stand", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  await runInDurableObject(agentStub(agent), (_, { storage }) => {
    const day = "2026-02-18";
    const rows = [
      [day, 500, { "1:0": 400 }],
      [`${day} ent_husam`, 300, { "1:0": 400 }],
      [`${day} ent_sara`, 200, {}],
      [`${day} spc_alpha`, 500, { "1:0": 400 }],
      [`${day} workspace`, 9000, { seq: 2 }],
    ] as const;
    storage.sql.exec("DELETE FROM ledger");
    for (const [key, spent, reserved] of rows) {
      storage.sql.exec(
        "INSERT INTO ledger (day, spent, reserved) VALUES (?, ?, ?)",
        key,
        spent,
        JSON.stringify(reserved),
      );
    }
    const statements = (histories.agent.migrations.m0031 ?? "").split("--> statement-breakpoint");
    const moves = statements.filter((each) => /^(?:UPDATE|DELETE FROM) `ledger`/m.test(each));
    for (const statement of moves) storage.sql.exec(statement);
    const ledger = createLedger(openDatabase(storage), { now: () => Date.parse(`${day}T12:00:00Z`) });
    ledger.settle("1:0", 110);
    expect(ledger.used()).toEqual([
      { day, of: null, tokens: 610 },
      { day, of: "ent_husam", tokens: 410 },
      { day, of: "spc_alpha", tokens: 610 },
      { day, of: "ent_sara", tokens: 200 },
    ]);
    expect(storage.sql.exec("SELECT day FROM ledger ORDER BY day").toArray()).toMatchObject([
      { day },
      { day: `${day} ent_sara` },
      { day: `${day} workspace` },
    ]);
  });
});

const answering = async (maxTokensPerDay: number) => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T23:59:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  onTestFinished(disarmFaults);
  const house = await openHouse();
  const husam = await house.person("Husam");
  const agent = await house.agent({ name: "Analyst", limits: { maxTokensPerDay, maxShareOfPerson: 1 } });
  const space = await house.space("Alpha", [husam, agent]);
  const gate = createGate();
  const model = scripted(({ prompt }) =>
    prompt.at(-1)?.role === "tool" ? step(text("Read.")) : step(waitAt(gate), call("get_memories", {})),
  );
  const activity = async () => unwrap(await env.AGENT.getByName(agent.id).describe(house.workspaceId)).activity;
  return { house, husam, agent, space, activity, gate, model };
};

test("[B2] a call that a crash cut is booked whole, once, and its replays as they are billed", async () => {
  const { house, husam, agent, space, activity, gate } = await answering(1_000_000);
  await space.post(husam, "Hello");
  await gate.reached;
  const reserved = (await activity())?.tokensToday ?? 0;
  expect(reserved).toBeGreaterThan(1000);
  const crashed = armFault("agent.mid-stream");
  gate.open();
  await crashed;
  await vi.waitFor(async () => {
    await passTime(agent, 26_000);
    expect(await ended(house.workspaceId, agent, 1)).toMatchObject([{ status: "completed" }]);
  });
  expect(new Date().toISOString()).toContain("2031-03-03");
  expect((await activity())?.tokensToday).toBe(reserved + 2 * 110);
});

test("[B2] what the day did not allow is done after midnight UTC, and yesterday does not count", async () => {
  const { house, husam, agent, space, activity, gate } = await answering(8000);
  gate.open();
  await space.post(husam, "One");
  await ended(house.workspaceId, agent, 1);
  for (let count = 2; (await activity())?.state !== "budget_exhausted"; count += 1) {
    await space.post(husam, "More");
    await ended(house.workspaceId, agent, count);
  }
  const runs = (await runsOf(house.workspaceId, agent)).length;
  const message = expect.stringContaining("it goes on after the reset");
  expect(await activity()).toMatchObject({ nextDueAt: "2031-03-04T00:00:00.000Z", lastError: { message } });
  await passTime(agent, 50_000);
  expect(await runsOf(house.workspaceId, agent)).toHaveLength(runs);
  await passTime(agent, 10_000);
  const [, after] = (await ended(house.workspaceId, agent, runs + 1)).slice(-2);
  expect(after).toMatchObject({ status: "completed", trigger: { text: "More" } });
  expect(await activity()).toMatchObject({ state: "idle", tokensToday: 220 });
  expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
});

test("[B2] runs that are canceled within a step do not pile up in the day's row", async () => {
  const { house, husam, agent, space, model } = await answering(1_000_000);
  for (const count of [1, 2, 3]) {
    await space.post(husam, "Hello");
    await model.called(count);
    const [run] = await runsOf(house.workspaceId, agent);
    unwrap(await env.AGENT.getByName(agent.id).cancelRun(house.workspaceId, run?.id ?? ""));
  }
  const [row] = await rowsIn(agent, "SELECT reserved FROM ledger");
  expect(Object.keys(JSON.parse(String(row?.reserved)))).toHaveLength(1);
});
