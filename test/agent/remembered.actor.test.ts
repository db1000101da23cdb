import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { expect, test } from "vitest";
import { createRuntime } from "../../src/agent/runtime.ts";
import type { SpaceSnapshot } from "../../src/protocol/rpc.ts";
import { isoTime, systemClock } from "../../src/shared/clock.ts";
import { agentStub, ids, openHouse } from "./fixture.ts";

test("what was read in a transaction that is rolled back is not remembered", async () => {
  const house = await openHouse();
  const analyst = await house.agent({ name: "Analyst" });
  const beta: SpaceSnapshot = {
    id: ids.mint("spc"),
    workspaceId: house.workspaceId,
    name: "Beta",
    shareOrigin: "reference",
    wakePolicy: "every_message",
    createdAt: isoTime(0),
    version: 1,
    members: [],
  };

  await runInDurableObject(agentStub(analyst), async (_, state) => {
    const { db, services, timers } = createRuntime(state, env);
    const { identity, spaces } = services;
    const known = () => [identity.get().activeSpaceId, spaces.get(beta.id)?.cursor];
    // Before the report of what was used, which is due a minute after the agent was made.
    const dueAt = systemClock.now() + 30_000;
    const alarm = await state.storage.getAlarm();
    const failing = (): void =>
      db.transaction(() => {
        identity.update({ activeSpaceId: beta.id });
        spaces.follow(beta, 7, false, 0);
        timers.set("loop", dueAt);
        expect(known()).toEqual([beta.id, 7]);
        throw new Error("rolled back");
      });

    expect(failing).toThrow("rolled back");
    expect(known()).toEqual([null, undefined]);
    // Nor that the platform's alarm was set.
    expect(await state.storage.getAlarm()).toBe(alarm);
    timers.set("loop", dueAt);
    expect(await state.storage.getAlarm()).toBe(dueAt);
  });
});
