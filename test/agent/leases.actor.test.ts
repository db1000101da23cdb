import { runInDurableObject } from "cloudflare:test";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { AgentRuntime } from "../../src/agent/api/agent-runtime.ts";
import { compartmentsArea } from "../../src/agent/api/compartments.ts";
import { createBudget, createLedger } from "../../src/agent/ledger.ts";
import type { Env } from "../../src/env/env.ts";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { TokenLease } from "../../src/protocol/agent-rpc.ts";
import { openDatabase } from "../../src/shared/database.ts";
import { ok, refusalOf } from "../../src/shared/errors.ts";
import { createJobs, jobsTimer } from "../../src/timers/jobs.ts";
import { createTimers } from "../../src/timers/timers.ts";
import { agentStub, openHouse, undoLater } from "./fixture.ts";

/**
 * A compartment books its steps in its open mind. The network loses and delays questions and answers, and the
 * compartment crashes. The network and the clock are the test's; ledger, budget, jobs and timers are not.
 */
undoLater();
const limit = 10_000;
const hourMs = 3_600_000;
/** Longer than the pause of any job. */
const longestPauseMs = 11 * 60_000;

/** The fate of one question: answered, lost before or after it came, or not heard of for a while. */
const way = fc.oneof(
  { weight: 2, arbitrary: fc.constant("answered" as const) },
  { weight: 3, arbitrary: fc.constantFrom("lost", "came", "late", "silent") },
);
const sent = fc.record({ way, delayMs: fc.integer({ min: 0, max: 6000 }) });
const action = fc.record({
  tokens: fc.integer({ min: 1, max: 4000 }),
  billed: fc.integer({ min: 0, max: 4000 }),
  stepMs: fc.integer({ min: 0, max: 4000 }),
  pauseMs: fc.integer({ min: 0, max: 6000 }),
  crashes: fc.nat({ max: 9 }).map((chance) => chance === 0),
});
type Sent = { way: string; delayMs: number };
type Action = { tokens: number; billed: number; stepMs: number; pauseMs: number; crashes: boolean };

const play = async (storage: DurableObjectStorage, actions: Action[], sends: Sent[]): Promise<void> => {
  vi.clearAllTimers();
  vi.setSystemTime("2031-03-03T03:00:00Z");
  const db = openDatabase(storage);
  for (const table of ["ledger", "jobs"]) storage.sql.exec(`DELETE FROM ${table}`);
  const clock = { now: () => Date.now() };
  const limits = { maxTokensPerDay: limit, maxShareOfPerson: 0.5 };
  const config = AgentConfig.parse({ name: "Analyst", limits });
  const identity = { get: () => ({ id: "ent_A", workspaceId: "wsp_A", compartmentId: "ent_B", config }) };
  const ledger = createLedger(db, clock);
  const ofOpenMind = { get: () => ({ ...identity.get(), compartmentId: null }) };
  const openBudget = createBudget(ledger, { identity: ofOpenMind, jobs: { handle: () => undefined }, clock } as never);
  const openMind = {
    services: { ledger, budget: openBudget, clock, usage: { noted: () => undefined } },
  } as unknown as AgentRuntime;
  let isQuiet = false;
  let sentCount = 0;
  const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

  /** Has the open mind asked as the network will. */
  const send = async (isAlive: () => boolean, ask: () => unknown) => {
    const come = () => Promise.resolve().then(ask).then(ok, refusalOf);
    const { way, delayMs } = sends[sentCount++ % sends.length] ?? { way: "answered", delayMs: 0 };
    if (!isAlive()) return later(hourMs);
    if (isQuiet || way === "answered") return come();
    if (way === "came") await come();
    if (way === "late" || way === "silent") void later(delayMs).then(come);
    if (way === "silent") await later(hourMs);
    throw new Error("overloaded");
  };

  /** The compartment's object, until it crashes. */
  const begin = () => {
    const life = { isOver: false, leases: new Set<string>() };
    const isAlive = () => !life.isOver;
    const stub = {
      leaseTokens: (_: string, lease: TokenLease) => {
        life.leases.add(lease.lease);
        return send(isAlive, () => compartmentsArea.leaseTokens(openMind, lease));
      },
      settleTokens: (_: string, settled: { lease: string; billed: number }) =>
        send(isAlive, () => compartmentsArea.settleTokens(openMind, settled)),
    };
    const env = { AGENT: { getByName: () => stub } } as unknown as Pick<Env, "AGENT" | "WORKSPACE">;
    const timers = createTimers(db, storage, clock);
    const jobs = createJobs({ db, timers, clock, waitUntil: () => undefined });
    const set = (job: Parameters<typeof jobs.set>[0]) => isAlive() && jobs.set(job);
    const budget = createBudget(ledger, {
      identity: identity as never,
      env,
      clock,
      endMind: () => undefined,
      jobs: { ...jobs, set: set as typeof jobs.set },
    });
    return { life, isAlive, budget, jobs, timers };
  };
  let mind = begin();
  const cut = new Set<string>();
  let spent = 0;
  const step = async ({ tokens, billed, stepMs }: Action, index: number): Promise<void> => {
    const { budget, isAlive } = mind;
    const person = index % 2 === 0 ? "ent_P" : null;
    if ((await budget.reserve(`1:${index}`, tokens, person)) !== "reserved") return;
    await later(stepMs);
    if (!isAlive()) return;
    spent += billed;
    budget.settle(`1:${index}`, billed, false, person ?? undefined);
  };
  const fire = () => (mind.timers.dueAt(jobsTimer) ?? clock.now() + 1) <= clock.now() && mind.jobs.onTimer();
  for (const [index, action] of actions.entries()) {
    void step(action, index).catch(() => undefined);
    await vi.advanceTimersByTimeAsync(action.pauseMs);
    fire();
    if (!action.crashes) continue;
    mind.life.isOver = true;
    mind.jobs.stop();
    for (const lease of mind.life.leases) cut.add(lease);
    mind = begin();
  }
  isQuiet = true;
  for (let count = 1; count <= 4; count += 1) {
    await vi.advanceTimersByTimeAsync(longestPauseMs);
    fire();
  }
  await vi.advanceTimersByTimeAsync(1);
  expect(storage.sql.exec("SELECT key FROM jobs").toArray()).toEqual([]);
  const [row] = storage.sql.exec("SELECT spent, reserved FROM ledger WHERE length(day) = 10").toArray();
  expect(row?.spent ?? 0).toBe(spent);
  // Steps that a crash cut may have been billed: they stay booked.
  const booked = Object.keys(JSON.parse(String(row?.reserved ?? "{}")));
  expect(booked.filter((lease) => !cut.has(lease))).toEqual([]);
};

test("[B2] [C18] what was lost, came late or was given up takes no token of the agent's day", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  vi.useFakeTimers({ toFake: ["Date", "setTimeout", "clearTimeout"] });
  await runInDurableObject(agentStub(agent), async (_, { storage }) => {
    const lists = fc.tuple(fc.array(action, { maxLength: 12 }), fc.array(sent, { minLength: 1, maxLength: 30 }));
    await fc.assert(
      fc.asyncProperty(lists, ([actions, sends]) => play(storage, actions, sends)),
      { numRuns: 100, seed: 5, endOnFailure: true },
    );
  });
});
