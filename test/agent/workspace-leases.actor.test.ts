import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { returnLeaseMs } from "../../src/agent/bounds.ts";
import { createLedger } from "../../src/agent/ledger.ts";
import { LimitsInUse, type TokensAsked, type TokensLeased } from "../../src/protocol/limits.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { jobLeaseMs } from "../../src/timers/jobs.ts";
import { createTokenLeases } from "../../src/workspace/token-leases.ts";
import { adminKey, call, expectOk } from "../support/house.ts";
import { step, text } from "../support/scripted-model.ts";
import { withStorage } from "../workspace/fixture.ts";
import { ended, openHouse, passTime, rowsIn, scripted } from "./fixture.ts";

/**
 * Agents lease the tokens of their workspace's day. Questions come late, twice and out of order, and answers are lost.
 * Agents crash, and days end. Ledgers and leases are the real ones.
 */
const hourMs = 3_600_000;
const limit = 10_000;
const agentCount = 2;

const agent = fc.nat({ max: agentCount - 1 });
const tokens = fc.integer({ min: 1, max: 4000 });
const which = fc.nat({ max: 30 });
const action = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("ask"), agent, tokens }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("giveBack"), agent, tokens }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("comes"), agent, tokens: which }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("answered"), agent, tokens: which }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("reserve"), agent, tokens }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("settle"), agent, tokens }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("crash"), agent, tokens }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("passes"), agent, tokens: fc.integer({ min: 1, max: 20 }) }) },
);
type Action = { do: string; agent: number; tokens: number };
type Sent = { question: TokensAsked; answer?: TokensLeased };

type Row = Record<string, SqlStorageValue>;

/** All in one object's storage: each agent's rows are there while it acts. */
const play = (storage: DurableObjectStorage, actions: Action[]): void => {
  let now = Date.parse("2031-03-03T12:00:00Z");
  const clock = { now: () => now };
  const { sql } = storage;
  const db = openDatabase(storage);
  const leases = createTokenLeases(db, clock, () => limit);
  for (const table of ["ledger", "token_leases"]) sql.exec(`DELETE FROM ${table}`);
  const open = () => createLedger(openDatabase(storage), clock);
  type Playing = { ledger: ReturnType<typeof open>; rows: Row[]; sent: Sent[]; steps: [string, number][] };
  const agents = Array.from({ length: agentCount }, (): Playing => ({ ledger: open(), rows: [], sent: [], steps: [] }));
  let acting: Playing | undefined;
  const ledgerOf = (each: Playing) => {
    if (acting === each) return each.ledger;
    if (acting) acting.rows = sql.exec("SELECT * FROM ledger").toArray();
    sql.exec("DELETE FROM ledger");
    for (const { day, spent, reserved, within } of each.rows) {
      sql.exec("INSERT INTO ledger VALUES (?, ?, ?, ?)", day, spent, reserved, within);
    }
    acting = each;
    return each.ledger;
  };
  for (const each of agents) ledgerOf(each).meter(true);
  const ask = (at: number, more: number, gives: boolean): Sent => {
    const each = agents[at];
    if (!each) throw new Error("no such agent");
    const need = gives ? 0 : ledgerOf(each).spent() + more;
    const sent: Sent = { question: { agentId: `ent_${at}`, ...ledgerOf(each).asks(gives), need } };
    each.sent.push(sent);
    return sent;
  };
  const comes = (sent: Sent): void => {
    try {
      sent.answer = leases.lease(sent.question);
    } catch {
      // Its day is long over.
    }
  };
  const booked = () => agents.reduce((sum, each) => sum + ledgerOf(each).spent(), 0);
  const held = () => agents.reduce((sum, each) => sum + (ledgerOf(each).leased() ?? 0), 0);
  for (const [index, { do: what, agent: at, tokens: count }] of actions.entries()) {
    const each = agents[at];
    if (!each) continue;
    const sent = each.sent.at(-1 - (count % Math.max(1, Math.min(4, each.sent.length))));
    if (what === "ask" || what === "giveBack") ask(at, count, what === "giveBack");
    else if (what === "comes" && sent) comes(sent);
    else if (what === "answered" && sent?.answer) ledgerOf(each).answered(sent.question, sent.answer);
    else if (what === "reserve") {
      const name = `summary:${index}`;
      if (ledgerOf(each).reserve(name, count, ledgerOf(each).leased() ?? limit)) each.steps.push([name, count]);
    } else if (what === "settle") {
      const [name = "", most = 0] = each.steps.shift() ?? [];
      ledgerOf(each).settle(name, Math.min(most, count));
    } else if (what === "crash") Object.assign(each, { ledger: open(), steps: [] });
    else if (what === "passes") now += count * hourMs;
    expect(booked()).toBeLessThanOrEqual(held());
    expect(held()).toBeLessThanOrEqual(leases.today());
    expect(leases.today()).toBeLessThanOrEqual(limit);
  }
  // Once every agent has given back and was heard, what is leased is what was booked.
  for (const [at, each] of agents.entries()) {
    for (let heard = false; !heard; ) {
      const sent = ask(at, 0, true);
      comes(sent);
      if (!sent.answer) throw new Error("it is of today");
      ledgerOf(each).answered(sent.question, sent.answer);
      heard = sent.answer.leased !== null;
    }
  }
  expect(leases.today()).toBe(booked());
};

test("[L10] agents never have more than their workspace's day, whatever is lost, late or cut", async () => {
  await withStorage(async (storage) => {
    await createSchema(openDatabase(storage), histories.workspace);
    storage.sql.exec("CREATE TABLE ledger (day text PRIMARY KEY, spent integer, reserved text, within text)");
    fc.assert(
      fc.property(fc.array(action, { maxLength: 80, size: "max" }), (actions) => play(storage, actions)),
      { numRuns: 300, seed: 5 },
    );
  });
});

test("[L10] a spent day of the workspace holds events, is told, and is raised", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const house = await openHouse();
  const husam = await house.person("Husam");
  const agent = await house.agent({ name: "Analyst" });
  const space = await house.space("Alpha", [husam, agent]);
  const put = (limits: object) =>
    expectOk(
      LimitsInUse,
      call(`/v1/operator/workspaces/${house.workspaceId}/limits`, { method: "PUT", bearer: adminKey, body: limits }),
    );
  scripted(() => step(text("Read.")));
  await space.post(husam, "One");
  await ended(house.workspaceId, agent, 1);
  expect(await rowsIn(agent, "SELECT day FROM ledger WHERE day LIKE '% workspace'")).toEqual([]);
  await put({ maxTokensPerDay: 1000 });
  await vi.waitFor(async () =>
    expect(await rowsIn(agent, "SELECT spent FROM ledger WHERE day = 'metered'")).toEqual([{ spent: 1 }]),
  );
  await space.post(husam, "Two");
  const activity = async () => unwrap(await env.AGENT.getByName(agent.id).describe(house.workspaceId)).activity;
  await vi.waitFor(async () => expect(await activity()).toMatchObject({ state: "budget_exhausted" }));
  expect((await activity())?.lastError?.message).toContain("set by the operator");
  await vi.waitFor(async () => {
    const [told] = await spaceRows(space.id);
    expect(told).toMatchObject({ count: 1 });
  });
  const admins = async () => unwrap(await env.WORKSPACE.getByName(house.workspaceId).limits());
  expect(await admins()).toMatchObject({ limits: { maxTokensPerDay: 1000 }, used: { maxTokensPerDay: 110 } });
  const spent = unwrap(await env.WORKSPACE.getByName(house.workspaceId).audit({ limit: 5, action: "tokens.spent" }));
  expect(spent.items.map(({ detail }) => detail)).toEqual([{ day: "2031-03-03", maxTokensPerDay: 1000 }]);
  await put({ maxTokensPerDay: 1_000_000 });
  await ended(house.workspaceId, agent, 3);
  const used = (await admins()).used.maxTokensPerDay;
  expect(used).toBeGreaterThanOrEqual(220);
  expect(used).toBeLessThanOrEqual(1_000_000);
});

const spaceRows = (spaceId: string) => {
  return runInDurableObject(stubOf(spaceId), (_, { storage }) =>
    storage.sql.exec(`SELECT count(*) AS count FROM log WHERE frame LIKE '%"budget":"workspace"%'`).toArray(),
  );
};

/** What is leased of today, and by whom. */
const leases = async (workspaceId: string) => {
  const stub: unknown = env.WORKSPACE.getByName(workspaceId);
  return runInDurableObject(stub as DurableObjectStub, (_, { storage }) =>
    storage.sql.exec("SELECT agent_id AS id, leased, booked FROM token_leases ORDER BY agent_id").toArray(),
  );
};

const stubOf = (spaceId: string): DurableObjectStub => {
  const stub: unknown = env.SPACE.getByName(spaceId);
  return stub as DurableObjectStub;
};

const limited = (workspaceId: string, maxTokensPerDay: number) =>
  expectOk(
    LimitsInUse,
    call(`/v1/operator/workspaces/${workspaceId}/limits`, {
      method: "PUT",
      bearer: adminKey,
      body: { maxTokensPerDay, force: true },
    }),
  );

test("[L10] a router leases what its calls may cost, and wakes nobody once the day is spent", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  onTestFinished(disarmFaults);
  const house = await openHouse();
  const [husam, mona] = [await house.person("Husam"), await house.person("Mona")];
  const space = await house.space("Alpha", [husam, mona, await house.agent({ name: "Analyst" })]);
  const router = { model: { provider: "rehearsal" as const, deltasPerSecond: 0 }, maxTokensPerDay: 200_000 };
  const rpc = () => env.SPACE.getByName(space.id);
  unwrap(await rpc().update(house.key, { router, wakePolicy: "addressed" }));
  scripted(() => step(text('{"wake": []}')));
  const post = async (words: string) => (await space.post(husam, words)).id;
  const decided = (messageId: string) =>
    vi.waitFor(async () => {
      const routing = unwrap(await rpc().routing(house.key, messageId));
      expect(routing.outcome).not.toBe("pending");
      return routing;
    });
  await limited(house.workspaceId, 100_000);
  await decided(await post("One?"));
  const [{ leased } = { leased: 0 }] = await leases(house.workspaceId);
  expect(Number(leased)).toBeGreaterThan(110);
  const crashed = armFault("space.before-decision");
  const second = await post("Two?");
  await crashed;
  vi.setSystemTime(Date.now() + jobLeaseMs + 1);
  await runDurableObjectAlarm(stubOf(space.id));
  await decided(second);
  const [tokens] = await runInDurableObject(stubOf(space.id), (_, { storage }) =>
    storage.sql.exec("SELECT tokens FROM router_ledger").toArray(),
  );
  // The call before gave back what it was not billed, and what was cut as the space crashed counts.
  const booked = Number(tokens?.tokens) - 110;
  expect([110, 220]).toContain(booked);
  const [lease] = await leases(house.workspaceId);
  expect(lease).toMatchObject({ id: space.id, booked });
  expect(Math.abs(Number(lease?.leased) - booked - Number(leased))).toBeLessThan(50);
  await limited(house.workspaceId, 500);
  const routing = await decided(await post("Three?"));
  expect(routing).toMatchObject({ outcome: "failed", error: { code: "budget_exhausted" } });
  expect(routing.error?.message).toContain("set by the operator");
});

test("[L10] [C18] a compartment leases from the workspace's day, and waits once it is spent", async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") });
  onTestFinished(() => void vi.useRealTimers());
  const house = await openHouse();
  const husam = await house.person("Husam");
  const agent = await house.agent({ name: "Analyst" });
  const space = await house.space("Alpha", [husam, agent], true);
  const model = scripted(() => step(text("Read.")));
  await limited(house.workspaceId, 100_000);
  await vi.waitFor(async () =>
    expect(await rowsIn(agent, "SELECT spent FROM ledger WHERE day = 'metered'")).toEqual([{ spent: 1 }]),
  );
  await space.post(husam, "One");
  await vi.waitFor(() => expect(model.calls).toHaveLength(1));
  const [lease] = await leases(house.workspaceId);
  expect(lease?.id).toBe(agent.id);
  expect(Number(lease?.leased)).toBeGreaterThan(110);
  await passTime(agent, returnLeaseMs + 1);
  await vi.waitFor(async () =>
    expect(await leases(house.workspaceId)).toEqual([{ id: agent.id, leased: 110, booked: 110 }]),
  );
  await limited(house.workspaceId, 1000);
  await space.post(husam, "Two");
  await vi.waitFor(async () => expect(await spaceRows(space.id)).toEqual([{ count: 1 }]));
  expect(model.calls).toHaveLength(1);
});
