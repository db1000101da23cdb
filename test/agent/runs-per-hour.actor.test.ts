import { beforeEach, describe, expect, test, vi } from "vitest";
import { AgentConfig } from "../../src/protocol/agent.ts";
import type { Root } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { createGate } from "../support/gate.ts";
import { step, text, waitAt } from "../support/scripted-model.ts";
import { ended, inboxOf, openScene, passTime, rowsIn, runsOf, scripted, undoLater } from "./fixture.ts";

/** An agent whose runs of an hour are used up. */
undoLater();
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: new Date("2031-03-03T12:00:00Z") }));

const minuteMs = 60_000;
const maxRunsPerHour = 3;
const event = (payload: number) => ({ serviceName: "jira", payload });

const open = async (continuity: AgentConfig["continuity"]) => {
  const scene = await openScene({ continuity, limits: { maxRunsPerHour } });
  const { workspaceId } = scene.house;
  const model = scripted(() => step(text("Read.")));
  /** The events of the first hour, a minute between one and the next. */
  for (let count = 1; count <= maxRunsPerHour; count += 1) {
    unwrap(await scene.agent.trigger(workspaceId, event(count), `key ${count}`));
    await ended(workspaceId, scene.analyst, count);
    await passTime(scene.analyst, minuteMs);
  }
  return {
    ...{ ...scene, workspaceId, model },
    trigger: (payload: number, key?: string, root?: Root) =>
      scene.agent.trigger(workspaceId, event(payload), key, root),
    inbox: () => inboxOf(workspaceId, scene.analyst),
    activity: async () => unwrap(await scene.agent.describe(workspaceId)).activity,
  };
};

describe.each(["consciousness", "timeline"] as const)(
  "a %s that has begun as many runs as an hour may have",
  (kind) => {
    test("[C10] refuses triggers until the first is an hour old, and loses none that it took", async () => {
      const { trigger, inbox, activity, analyst, workspaceId } = await open(kind);
      const refused = await trigger(4, "late");
      expect(refused).toMatchObject({ ok: false, problem: { code: "rate_limited", status: 429, retryAfter: 57 * 60 } });
      expect(refused.ok || refused.problem.detail).toContain("maxRunsPerHour (3)");
      expect(await inbox()).toEqual([]);
      expect((await activity())?.refusing).toBe("maxRunsPerHour");
      // The same key again is the same event, whatever the hour says.
      expect(unwrap(await trigger(1, "key 1"))).toEqual(unwrap(await trigger(1, "key 1")));
      await passTime(analyst, 57 * minuteMs);
      unwrap(await trigger(4, "late"));
      expect((await ended(workspaceId, analyst, 4)).at(-1)?.status).toBe("completed");
      expect(await trigger(5)).toMatchObject({ ok: false, problem: { code: "rate_limited", retryAfter: 60 } });
    });

    test("[C10] has messages, plans and what belongs to a chain wait for the next run", async () => {
      const { husam, space, agent, trigger, inbox, activity, analyst, workspaceId, model } = await open(kind);
      await space.post(husam, "Hello?");
      unwrap(await trigger(4, undefined, { id: "msg_1", kind: "person" }));
      unwrap(
        await agent.putPlan(workspaceId, "report", { name: "Report", instruction: "Count", runAfter: "2 minutes" }),
      );
      await passTime(analyst, 3 * minuteMs);
      await vi.waitFor(async () => expect((await inbox()).map(({ type }) => type)).toContain("plan"));
      expect(await inbox()).toHaveLength(3);
      expect(model.calls).toHaveLength(maxRunsPerHour);
      expect(await activity()).toMatchObject({ state: "idle", nextRetryAt: "2031-03-03T13:00:00.000Z" });
      await passTime(analyst, 54 * minuteMs);
      await ended(workspaceId, analyst, maxRunsPerHour + 1);
      // One an hour old makes room for one.
      await passTime(analyst, 2 * minuteMs);
      await vi.waitFor(async () => expect(await inbox()).toEqual([]));
      expect((await runsOf(workspaceId, analyst)).length).toBeLessThanOrEqual(2 * maxRunsPerHour);
    });

    test("[C10] goes on at once when its owner allows more", async () => {
      const { husam, space, agent, inbox, analyst, workspaceId } = await open(kind);
      await space.post(husam, "Hello?");
      expect(await inbox()).toHaveLength(1);
      unwrap(await agent.update(workspaceId, { limits: { maxRunsPerHour: 10 } }));
      expect((await ended(workspaceId, analyst, 4)).at(-1)?.status).toBe("completed");
    });
  },
);

test("[C10] triggers that wait count as runs: no flood comes in while the agent is busy", async () => {
  const { house, agent } = await openScene({ limits: { maxRunsPerHour } });
  const gate = createGate();
  scripted([step(waitAt(gate), text("Read.")), step(text("Read."))]);
  const codes: string[] = [];
  for (let count = 1; count <= 6; count += 1) {
    const answered = await agent.trigger(house.workspaceId, event(count));
    codes.push(answered.ok ? "taken" : answered.problem.code);
    await gate.reached;
  }
  expect(codes).toEqual(["taken", "taken", "taken", "rate_limited", "rate_limited", "rate_limited"]);
  gate.open();
});

test("[C10] [S4] older agents have the defaults, and a config out of bounds is refused", async () => {
  const { house, agent, analyst, ask } = await openScene();
  await rowsIn(
    analyst,
    "UPDATE agent SET config = json_remove(config, '$.limits.maxRunsPerHour', '$.limits.maxShareOfPerson')",
  );
  // A failed transaction makes it read its memory again.
  expect(await agent.update(house.workspaceId, { limits: { maxRunsPerHour: 0 } })).toMatchObject({ ok: false });
  scripted([step(text("Read."))]);
  expect(await ask("Hello")).toMatchObject([{ status: "completed" }]);
  expect(unwrap(await agent.describe(house.workspaceId)).config.limits).toMatchObject({
    ...{ maxRunsPerHour: 600, maxShareOfPerson: 0.25 },
  });
  for (const limits of [
    { maxRunsPerHour: 0 },
    { maxRunsPerHour: 1.5 },
    { maxShareOfPerson: 0 },
    { maxShareOfPerson: 2 },
  ]) {
    const refused = await agent.update(house.workspaceId, { limits });
    expect(refused).toMatchObject({ ok: false, problem: { code: "invalid_request" } });
    expect(AgentConfig.safeParse({ name: "A", limits }).success).toBe(false);
  }
});
