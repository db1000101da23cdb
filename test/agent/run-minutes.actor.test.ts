import { abortAllDurableObjects } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import { workNoteMs } from "../../src/agent/bounds.ts";
import { createGate } from "../support/gate.ts";
import { apiError, call, refusal, type Script, step, text, waitAt } from "../support/scripted-model.ts";
import { type AgentSettings, ended, openHouse, passTime, runsOf, scripted } from "./fixture.ts";

/** `maxRunMinutes` bounds what a run thinks in all: over its pauses, its waits and the crashes of its object. */
afterEach(() => void vi.useRealTimers());

const seconds = 1000;
const hour = 3600 * seconds;

const stage = async (script: Script, settings: Omit<AgentSettings, "name"> = {}) => {
  const house = await openHouse();
  const [husam, designer] = [await house.person("Husam"), await house.person("Designer")];
  const analyst = await house.agent({ name: "Analyst", limits: { maxRunMinutes: 1 }, ...settings });
  const space = await house.space("Alpha", [husam, designer, analyst]);
  const model = scripted(script);
  vi.setSystemTime(Date.now());
  return {
    ...{ designer, analyst, space, model },
    begin: () => space.post(husam, "Go"),
    run: async () => (await runsOf(house.workspaceId, analyst))[0],
    ended: async () => (await ended(house.workspaceId, analyst, 1))[0],
  };
};

const thinks = (milliseconds: number): void => void vi.setSystemTime(Date.now() + milliseconds);

const unavailable = refusal(apiError(503));

const overTime = {
  status: "failed",
  error: { code: "time_limit", message: expect.stringContaining("maxRunMinutes (1)") },
};

test("[B3] a run that pauses repeatedly is over maxRunMinutes by its thinking time alone", async () => {
  const { begin, ended, analyst, model } = await stage(() => {
    thinks(25 * seconds);
    return unavailable;
  });
  await begin();
  for (const calls of [1, 2, 3]) {
    await vi.waitFor(() => expect(model.calls).toHaveLength(calls));
    await vi.waitFor(async () => {
      await passTime(analyst, hour / 4);
      if (calls < 3) expect(model.calls.length).toBeGreaterThan(calls);
    });
  }
  expect(await ended()).toMatchObject(overTime);
  expect(model.calls).toHaveLength(3);
});

test.each([
  [5 * seconds, "goes on", { status: "completed" }],
  [25 * seconds, "is over its time", overTime],
])("[B3] a run that thought 50 s, waited two hours and thinks %i ms more, %s", async (more, _, end) => {
  const { begin, ended, run, analyst, space, designer } = await stage(
    (_options, index) => {
      thinks([50 * seconds, more][index] ?? 0);
      if (index === 0) return step(call("send_message", { text: "@Designer is it good?", wait: true }));
      return index === 1 ? unavailable : step(text("Then it is."));
    },
    { continuity: "timeline", messaging: "threaded" },
  );
  await begin();
  await vi.waitFor(async () => expect((await run())?.status).toBe("waiting_reply"));
  await passTime(analyst, 2 * hour);
  await space.post(designer, "It is");
  await vi.waitFor(async () => {
    await passTime(analyst, hour / 4);
    expect(["running", "waiting_reply"]).not.toContain((await run())?.status);
  });
  expect(await ended()).toMatchObject(end);
});

test.each([
  [1, "goes on", { status: "completed" }, 2],
  [2, "is over its time", overTime, 1],
])("[B3] [R1] a run that crashed in its minute, after %i looks and long away, %s", async (looks, _, end, calls) => {
  const gate = createGate();
  const { begin, ended, analyst, model } = await stage((_options, index) =>
    index === 0 ? step(waitAt(gate), text("Never.")) : step(text("Here again.")),
  );
  await begin();
  await gate.reached;
  for (let look = 0; look < looks; look += 1) await passTime(analyst, workNoteMs);
  await abortAllDurableObjects();
  await passTime(analyst, 2 * hour);
  expect(await ended()).toMatchObject(end);
  expect(model.calls).toHaveLength(calls);
});

test("[B3] [R1] a run that crashes repeatedly before the watchdog looked is over its time too", async () => {
  const gates = [createGate(), createGate(), createGate()];
  const { begin, ended, analyst, model } = await stage((_, index) =>
    step(waitAt(gates[index] ?? createGate()), text("Never.")),
  );
  await begin();
  for (const gate of gates) {
    await gate.reached;
    await abortAllDurableObjects();
    await passTime(analyst, workNoteMs);
  }
  expect(await ended()).toMatchObject(overTime);
  expect(model.calls).toHaveLength(gates.length);
});
