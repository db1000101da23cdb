import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { Agent } from "../../src/agent/agent.ts";
import { Endpoint } from "../../src/endpoint/endpoint.ts";
import { Person } from "../../src/person/person.ts";
import { type Outcome, ok, refuse, unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults } from "../../src/shared/fault.ts";
import { deliverTimeoutMs, maxBatchEvents, maxToldPages } from "../../src/space/bounds.ts";
import { Workspace } from "../../src/workspace/workspace.ts";
import { shorten } from "../support/shorten.ts";
import { entity, grow, type House, house, ids, settled } from "./fixture.ts";

/** What holds for each kind of those who follow a space's log, whatever it is told. */
const kinds = ["agent", "index", "endpoint", "person"] as const;
type Kind = (typeof kinds)[number];
/** Those that are told how the space stands now. The others are told all that happened, from a place on. */
const isToldStates = (kind: Kind): boolean => kind === "index" || kind === "person";

/** From which place up to which each was told, by its id; and how those answer who do not take it. */
const heard = new Map<string, { after: number; cursor: number }[]>();
const faulty = new Map<string, () => Promise<Outcome<never>>>();

const take = async <Value>(id: string, cursor: number, after: number | undefined, value: Value) => {
  const before = heard.get(id) ?? [];
  heard.set(id, [...before, { after: after ?? before.at(-1)?.cursor ?? 0, cursor }]);
  return (await faulty.get(id)?.()) ?? ok(value);
};

beforeAll(() => {
  vi.spyOn(Agent.prototype, "deliver").mockImplementation(async function (this: Agent, told) {
    const { cursor, after, space } = JSON.parse(told);
    return take(`agent ${space.id}`, cursor, after, { cursor, changes: true });
  });
  vi.spyOn(Workspace.prototype, "follow").mockImplementation(({ space, cursor }) =>
    take(`index ${space.id}`, cursor, undefined, null),
  );
  vi.spyOn(Endpoint.prototype, "deliver").mockImplementation(({ sourceId, cursor, after }) =>
    take(`endpoint ${sourceId}`, cursor, after, { cursor }),
  );
  vi.spyOn(Person.prototype, "hear").mockImplementation(({ spaceId, standing }) =>
    take(`person ${spaceId}`, standing?.summary.seq ?? Number.NaN, undefined, { follows: "all" }),
  );
});
afterEach(() => {
  vi.useRealTimers();
  disarmFaults();
  faulty.clear();
});

/** A space that one of each kind follows, and whatever happens in it concerns them all. */
const followed = async () => {
  const ann = entity("human", "Ann");
  const home = await house([ann, entity("agent", "Robo")]);
  const endpoints = [{ id: ids.mint("ep"), types: ["space.updated" as const], isNamed: false }];
  unwrap(await home.rpc.setEndpoints(home.workspaceId, { version: 1, endpoints }));
  unwrap(await home.rpc.attend(home.workspaceId, ann.id, "all"));
  await settled(home);
  let happened = 0;
  const head = (): Promise<number> =>
    runInDurableObject(home.stub, (_, { storage }) =>
      Number(storage.sql.exec("SELECT max(seq) AS seq FROM log").one().seq),
    );
  const toldTo = (kind: Kind) => heard.get(`${kind} ${home.space.id}`) ?? [];
  return {
    home,
    toldTo,
    head,
    happen: () => home.rpc.update(home.key, { name: `Kitchen ${++happened}` }),
    /** All of these were told of all that has happened. */
    allTold: async (...wanted: readonly Kind[]): Promise<void> => {
      const end = await head();
      await vi.waitFor(() => expect(wanted.map((kind) => toldTo(kind).at(-1)?.cursor)).toEqual(wanted.map(() => end)));
    },
    fails: (kind: Kind, how: () => Promise<Outcome<never>>) => faulty.set(`${kind} ${home.space.id}`, how),
    recovers: () => faulty.clear(),
  };
};

/** When the object wakes by itself, in milliseconds from now. */
const wakesIn = (home: House): Promise<number> =>
  runInDurableObject(home.stub, async (_, { storage }) => ((await storage.getAlarm()) ?? Number.NaN) - Date.now());

/** Lets time pass up to the object's alarm, and rings it. */
const ring = async (home: House, milliseconds: number): Promise<void> => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + milliseconds });
  await runDurableObjectAlarm(home.stub);
};

test.each(kinds)("[D2] [E1] order, once: %s is told of each place once, in order, without a gap", async (kind) => {
  const { toldTo, happen, allTold } = await followed();
  const before = toldTo(kind).length;
  for (let count = 0; count < 5; count += 1) unwrap(await happen());
  await allTold(kind);
  const told = toldTo(kind).slice(Math.max(0, before - 1));
  expect(told.length).toBeGreaterThan(1);
  for (const [index, { after, cursor }] of told.entries()) {
    expect(cursor).toBeGreaterThan(after);
    if (index > 0) expect(after).toBe(told[index - 1]?.cursor);
  }
});

test.each(kinds)("[D2] [E1] catch-up: after a crash before it was told, %s is told within 30 s", async (kind) => {
  const { home, happen, allTold } = await followed();
  const crashed = armFault("space.after-append");
  happen().catch(() => undefined);
  await crashed;
  expect(await wakesIn(home)).toBeLessThanOrEqual(30_000);
  await ring(home, 25_001);
  await allTold(kind);
});

test.each(kinds)("[D2] [E1] once: what a crash left unstored, %s is told again from the same place", async (kind) => {
  const { home, toldTo, happen, allTold } = await followed();
  // The others have heard by then: this one is the last that the crash cuts.
  for (const other of kinds)
    if (other !== kind) faulty.set(`${other} ${home.space.id}`, async () => refuse("unavailable", "not now"));
  const before = toldTo(kind).length;
  const crashed = armFault("space.after-deliver");
  happen().catch(() => undefined);
  await crashed;
  const first = toldTo(kind)[before];
  expect(first).toBeDefined();
  faulty.clear();
  await ring(home, 60_000);
  await allTold(kind);
  const again = toldTo(kind).slice(before + 1);
  expect(again.length).toBeGreaterThan(0);
  if (!isToldStates(kind)) expect(again[0]).toEqual(first);
  else expect(again[0]?.cursor).toBe(first?.cursor);
});

test.each(kinds)("[D2] [E2] backoff: a failing %s is tried later and later, and holds up nobody", async (kind) => {
  const { home, toldTo, head, happen, allTold, fails, recovers } = await followed();
  const before = toldTo(kind).at(-1)?.cursor ?? (await head());
  fails(kind, () => Promise.reject(new Error("out of order")));
  unwrap(await happen());
  unwrap(await happen());
  await allTold(...kinds.filter((other) => other !== kind));
  const pauses: number[] = [];
  for (const [index] of [1, 2, 3].entries()) {
    await vi.waitFor(async () => expect(await wakesIn(home)).toBeGreaterThan(1000 * 2 ** index - 300));
    pauses.push(await wakesIn(home));
    await ring(home, (pauses.at(-1) ?? 0) + 1);
  }
  expect(pauses).toEqual(pauses.toSorted((one, other) => one - other));
  recovers();
  await ring(home, 60_000);
  await allTold(kind);
  const last = toldTo(kind).at(-1);
  if (!isToldStates(kind)) expect(last?.after).toBe(before);
  await settled(home);
});

test.each(kinds)("[D2] [E2] a dead one: %s never answers, is tried again, and holds up nobody", async (kind) => {
  shorten(deliverTimeoutMs);
  const { home, happen, allTold, fails, recovers } = await followed();
  fails(kind, () => new Promise(() => undefined));
  happen().catch(() => undefined);
  await vi.waitFor(async () => expect(await wakesIn(home)).toBeLessThanOrEqual(1500));
  await allTold(...kinds.filter((other) => other !== kind));
  recovers();
  await ring(home, 1501);
  await allTold(kind);
  await settled(home);
});

test("[B4] [E2] one ask of an endpoint reads a bounded part of the log, and the next goes on", async () => {
  const home = await house([entity("human", "Ann")]);
  const endpoint = { id: ids.mint("ep"), types: ["space.updated" as const], isNamed: false };
  unwrap(await home.rpc.setEndpoints(home.workspaceId, { version: 1, endpoints: [endpoint] }));
  await settled(home);
  await grow(home, 3 * maxBatchEvents * maxToldPages);
  unwrap(await home.rpc.update(home.key, { name: "Pantry" }));
  const ask = async (after: number) =>
    unwrap(await home.rpc.toldTo(home.workspaceId, { endpointId: endpoint.id, after, types: endpoint.types }));
  let told = await ask(2);
  expect(told.events).toEqual([]);
  for (let asked = 1; told.events.length === 0; asked += 1) {
    expect(told.cursor).toBe(2 + asked * maxBatchEvents * maxToldPages);
    told = await ask(told.cursor);
  }
  expect(told.events.map(({ data }) => JSON.parse(data).space.name)).toEqual(["Pantry"]);
});
