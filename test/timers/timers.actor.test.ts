import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { histories } from "../../migrations/histories.ts";
import { createSchema, openDatabase } from "../../src/shared/database.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createTimers, leaseMs, longestPauseOfSetMs, type Timers } from "../../src/timers/timers.ts";
import { agentStub, openHouse, passTime } from "../agent/fixture.ts";
import { withStorage } from "../workspace/fixture.ts";

afterEach(() => vi.restoreAllMocks());

const dayMs = 86_400_000;

/** One alarm for many due rows, over a database. The platform's alarm is what was set last. */
const withTimers = (work: (staged: Awaited<ReturnType<typeof stage>>) => Promise<void>): Promise<void> =>
  withStorage(async (storage) => work(await stage(storage)));

const stage = async (storage: DurableObjectStorage) => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  await createSchema(openDatabase(storage), histories.workspace);
  let now = 0;
  let alarm: number | null = null;
  const platform = {
    setAlarm: async (time: number | Date) => {
      alarm = Number(time);
    },
    deleteAlarm: async () => {
      alarm = null;
    },
  };
  /** The object was cut off and comes up again. */
  const again = (guards?: string[]) =>
    createTimers(openDatabase(storage), platform, { now: () => now }, () => ({}), guards);
  const at = (time: number) => {
    now = time;
  };
  /** Has the alarm go off. Answers the names that were handled, in order. */
  const fire = async (timers: Timers, handle: (name: string) => void = () => undefined): Promise<string[]> => {
    const handled: string[] = [];
    await timers.fire((name) => {
      handled.push(name);
      handle(name);
    });
    return handled;
  };
  return { timers: again(), again, at, fire, alarm: () => alarm };
};

test("[L17] [R6] a timer that its own handler sets no later than a time is due then", () =>
  withTimers(async ({ timers, again, at, fire, alarm }) => {
    timers.set("row", 1000);
    at(1000);
    await fire(timers, () => timers.setNoLater("row", 61_000));
    expect([timers.dueAt("row"), alarm()]).toEqual([61_000, 61_000]);
    const guarded = again(["guard"]);
    at(61_000);
    await fire(guarded, (name) => name === "guard" && guarded.setNoLater("guard", 121_000));
    expect([guarded.dueAt("guard"), alarm()]).toEqual([121_000, 121_000]);
  }));

const fails = (): never => {
  throw new Error("broken");
};

test("[R6] hundreds of rows that are due at once are all handled, the earliest first, each once", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    const names = Array.from({ length: 250 }, (_, index) => `t${index}`);
    for (const [index, name] of names.toReversed().entries()) timers.set(name, 1000 - index);
    expect(alarm()).toBe(751);
    at(1000);
    const handled: string[] = [];
    let alarms = 0;
    for (; alarm() !== null; alarms += 1) handled.push(...(await fire(timers)));
    expect(handled).toEqual(names);
    expect(alarms).toBe(3);
  }));

test("[R6] rows that fail, however many, delay no other, and are tried again later and later", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    for (let index = 0; index < 150; index += 1) timers.set(`bad${index}`, index);
    timers.set("good", 500);
    at(1000);
    const failing = () => fire(timers, (name) => name !== "good" && fails());
    const handled = [...(await failing()), ...(await failing())];
    expect(handled.filter((name) => name === "good")).toHaveLength(1);
    expect(new Set(handled).size).toBe(151);
    expect([alarm(), await failing()]).toEqual([2000, []]);
    at(2000);
    expect([...(await failing()), ...(await failing())]).toHaveLength(150);
    expect(alarm()).toBe(4000);
  }));

test("[R6] [R1] a row set anew by a handler that fails is due when it was set, or soon", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    timers.set("bad", 0);
    const waits: number[] = [];
    for (let time = 0; waits.length < 8; time = alarm() ?? Number.NaN) {
      at(time);
      await fire(timers, () => {
        // Somebody else has work for it.
        timers.set("bad", 0);
        fails();
      });
      waits.push((alarm() ?? Number.NaN) - time);
    }
    // At once would be for ever.
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, ...Array.from({ length: 3 }, () => longestPauseOfSetMs)]);
    const time = alarm() ?? Number.NaN;
    at(time);
    await fire(timers, () => {
      timers.set("bad", time + 30_000);
      fails();
    });
    expect(alarm()).toBe(time + 30_000);
  }));

test("[R6] a due row that another's handler sets keeps the time that it was set to", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    timers.set("first", 0);
    timers.set("second", 1);
    at(1000);
    const handled = await fire(timers, (name) => name === "first" && timers.set("second", 5000));
    expect([handled, alarm()]).toEqual([["first", "second"], 5000]);
  }));

test("[R6] [R1] after days of sleep each row is handled once, and again if it was cut", () =>
  withTimers(async ({ timers, again, at, fire, alarm }) => {
    timers.set("cut", 1000);
    timers.set("late", 2000);
    timers.set("later", 40 * dayMs);
    at(30 * dayMs);
    const handled: string[] = [];
    void timers.fire((name) => {
      handled.push(name);
      return name === "cut" ? new Promise(() => undefined) : undefined;
    });
    // The object dies here: before anything was handled, the alarm was put ahead.
    expect(alarm()).toBe(30 * dayMs + leaseMs);
    expect(leaseMs).toBeLessThan(30_000);
    at(30 * dayMs + leaseMs);
    await Promise.resolve();
    handled.push(...(await fire(again())));
    expect(handled.filter((name) => name === "cut")).toHaveLength(2);
    expect(handled).not.toContain("later");
    expect(alarm()).toBe(40 * dayMs);
  }));

test("a row whose handler fails is told by the log with whose it is", async () => {
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  const logged = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const plan = { name: "Later", instruction: "Look", runAfter: "2 hours" };
  unwrap(await env.AGENT.getByName(agent.id).putPlan(house.workspaceId, "later", plan));
  await runInDurableObject(agentStub(agent), (_, { storage }) => void storage.sql.exec("DROP TABLE plans"));
  await passTime(agent, 2 * 3_600_000 + 1000);
  vi.useRealTimers();
  const lines = logged.mock.calls.map(([line]) => JSON.parse(String(line)));
  const ofTimers = lines.filter(({ event }) => event === "timer.failed");
  expect(ofTimers).toMatchObject([{ event: "timer.failed", timer: "plans", agentId: agent.id, failures: 1 }]);
});

test("[R6] a clock that goes back fires nothing early and nothing twice, and loses nothing", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    timers.set("soon", 10_000);
    // The alarm goes off by the platform's clock; by ours it is an hour before.
    at(10_000 - 3_600_000);
    expect([await fire(timers), alarm()]).toEqual([[], 10_000]);
    at(10_000);
    const handled = await fire(timers);
    at(0);
    handled.push(...(await fire(timers)));
    expect([handled, alarm()]).toEqual([["soon"], null]);
  }));

test("[R1] a guard sets the alarm, and is handled after a crash although no row tells of it", () =>
  withTimers(async ({ again, at, fire, alarm }) => {
    const timers = again(["guard"]);
    timers.set("guard", 1000);
    timers.set("row", 9000);
    expect([alarm(), timers.dueAt("guard")]).toEqual([1000, 1000]);
    const restarted = again(["guard"]);
    at(1000);
    expect([await fire(restarted), alarm()]).toEqual([["guard"], 9000]);
  }));

test("[R1] after a crash no timer moves the alarm past the lease before the guard is handled", () =>
  withTimers(async ({ again, at, fire, alarm }) => {
    again(["guard"]).set("guard", 1000);
    const restarted = again(["guard"]);
    restarted.set("row", 60_000);
    expect(alarm()).toBe(leaseMs);
    at(leaseMs);
    expect([await fire(restarted), alarm()]).toEqual([["guard"], 60_000]);
  }));

test("[R6] a guard is handled each time it was set and is due, and again if its handler failed", () =>
  withTimers(async ({ again, at, fire, alarm }) => {
    const timers = again(["guard"]);
    timers.clear("guard");
    expect(alarm()).toBe(null);
    timers.set("guard", 1000);
    at(1000);
    expect([await fire(timers, fails), alarm()]).toEqual([["guard"], 2000]);
    at(2000);
    expect([await fire(timers), alarm()]).toEqual([["guard"], null]);
  }));

test("[S4] what is due later than the platform takes an alarm keeps no other timer waiting", () =>
  withTimers(async ({ timers, at, fire, alarm }) => {
    timers.set("never", Number.MAX_SAFE_INTEGER);
    // Its own words: "This API doesn't support dates after 2189."
    expect(alarm()).toBeLessThan(Date.UTC(2189, 0));
    timers.set("soon", 1000);
    at(1000);
    expect(await fire(timers)).toEqual(["soon"]);
    expect(timers.dueAt("never")).toBe(Number.MAX_SAFE_INTEGER);
  }));
