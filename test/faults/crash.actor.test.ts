import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, expect, test, vi } from "vitest";
import type { ServerFrame } from "../../src/protocol/events.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { armFault, disarmFaults, type FaultPoint, faultPoints } from "../../src/shared/fault.ts";
import { ended, inboxOf, openHouse, passTime } from "../agent/fixture.ts";
import { call, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";

const restore: (() => void)[] = [];
afterEach(() => {
  for (const undo of restore.splice(0)) undo();
  disarmFaults();
  vi.useRealTimers();
});

/** A model that goes by what it reads, so that it says the same however often it is asked. */
const steadyModel = (spaceId: () => string) =>
  scriptedModel((options) => {
    const [first] = options.prompt;
    if (first?.role === "system" && first.content.startsWith("You are the router")) {
      return step(text('{"wake": ["Analyst"]}'));
    }
    const results = options.prompt.filter((message) => message.role === "tool").length;
    if (results === 0) return step(call("enter_space", { spaceId: spaceId() }));
    if (results === 1) return step(call("set_memories", { memories: [{ key: "asked", value: "yes" }] }));
    if (results === 2) return step(call("send_message", { text: "Said once." }, [10, 15]));
    return step(text("Done."));
  });

const endedStream = (frame: ServerFrame): string[] => {
  if (frame.type === "tool-call.error") return [frame.streamId];
  return frame.type === "space.message" && frame.message.streamId !== undefined ? [frame.message.streamId] : [];
};

/**
 * Crashes the object at `point` (after `passes` others), lets the platform's alarms bring it back, and looks. `routed`:
 * the space's router decides who wakes.
 */
const survives = async (point: FaultPoint, passes: number, routed = false) => {
  const house = await openHouse();
  const husam = await house.person("Husam");
  const analyst = await house.agent({ name: "Analyst" });
  const space = await house.space("Alpha", [husam, analyst, ...(routed ? [await house.person("Sara")] : [])]);
  if (routed) {
    const model = { provider: "rehearsal", deltasPerSecond: 0 } as const;
    const key = { kind: "key", workspaceId: house.workspaceId, keyId: "key" } as const;
    const router = { model, maxTokensPerDay: 200_000 };
    unwrap(await space.stub().update(key, { wakePolicy: "addressed", router }));
  }
  const model = steadyModel(() => space.id);
  restore.push(installModel(model));
  const watching = await space.watch(husam);

  const crashed = armFault(point, passes);
  const posted = space.post(husam, "Say it once").catch((error: unknown) => error);
  await crashed;
  await posted;
  // Whoever crashed, its timer brings it back: nobody else calls.
  await vi.waitFor(
    async () => {
      vi.setSystemTime(Date.now() + 26_000);
      const spaceStub: unknown = space.stub();
      await runDurableObjectAlarm(spaceStub as DurableObjectStub).catch(() => false);
      await passTime(analyst, 0).catch(() => undefined);
      const said = (await space.texts()).filter((line) => line === "Analyst: Said once.");
      if (said.length === 0) throw new Error("not yet");
    },
    { timeout: 10_000, interval: 50 },
  );
  const runs = await ended(house.workspaceId, analyst, 1);
  expect(await space.texts()).toEqual(["Husam: Say it once", "Analyst: Said once."]);
  expect(await inboxOf(house.workspaceId, analyst)).toEqual([]);
  expect(runs).toHaveLength(1);
  expect(runs[0]).toMatchObject({ status: "completed", outcome: "answered" });
  // No open stream: each that began has ended, in exactly one way.
  await vi.waitFor(() => {
    const begun = watching.flatMap((frame) => (frame.type === "tool-call.start" ? [frame.streamId] : []));
    const over = watching.flatMap(endedStream);
    for (const streamId of begun) expect(over.filter((id) => id === streamId)).toHaveLength(1);
  });
  return model;
};

for (const point of faultPoints.filter((name) => name.startsWith("agent."))) {
  test(`[R1] [R2] [D4] a crash at ${point} loses nothing and says nothing twice`, async () => {
    await survives(point, 0);
  });
}

test.each([
  ["agent.after-journal", 2],
  ["agent.after-call", 2],
  ["agent.after-effect", 2],
  ["agent.mid-stream", 12],
] as const)("[R2] [R3] a crash at %s in the speaking step (%i passes) says nothing twice", async (point, passes) => {
  await survives(point, passes);
});

test("[R3] a step that was journaled is not generated again", async () => {
  const model = await survives("agent.after-journal", 1);
  expect(model.calls).toHaveLength(4);
});

test("[D2] a crash of the space after a message was stored still delivers it, once", async () => {
  await survives("space.after-append", 0);
});

test("[D2] [R7] a crash of the space after the delivery makes no second event", async () => {
  await survives("space.after-deliver", 0);
});

test.each([
  ["space.after-append", 0],
  ["space.before-decision", 0],
  ["space.after-deliver", 0],
] as const)("[D2] [R1] a crash of a space with a router at %s wakes whom it chose, once", async (point, passes) => {
  await survives(point, passes, true);
});
