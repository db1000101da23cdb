import { afterEach, expect, test, vi } from "vitest";
import * as z from "zod";
import { Agent } from "../../src/protocol/agent.ts";
import { Plan } from "../../src/protocol/plan.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { problemIn } from "./operations.ts";

const now = "2026-02-18T15:07:00.000Z";

const openAgent = async () => {
  vi.setSystemTime(now);
  const house = await openHouse();
  const agent = await house.agent({ name: "Analyst" });
  const at = `/v1/agents/${agent.id}/plans`;
  const bearer = house.secretKey;
  return {
    house,
    agent,
    put: (id: string, body: unknown) => call(`${at}/${id}`, { method: "PUT", bearer, body }),
    remove: (id: string) => call(`${at}/${id}`, { method: "DELETE", bearer }),
    list: async () => (await expectOk(z.object({ items: z.array(Plan) }), call(at, { bearer }))).items,
    patch: (body: unknown) => call(`/v1/agents/${agent.id}`, { method: "PATCH", bearer, body }),
  };
};

afterEach(() => {
  vi.useRealTimers();
});

test("a plan is set and answered with its due time, listed, replaced and deleted", async () => {
  const { put, list, remove } = await openAgent();
  const daily = { name: "Daily Report", instruction: "Post the metrics", cron: "0 9 * * *", timezone: "Asia/Riyadh" };
  const { plan } = await expectOk(z.object({ plan: Plan }), put("daily", daily));
  expect(plan).toEqual({
    id: "daily",
    ...daily,
    nextRunAt: "2026-02-19T06:00:00.000Z",
    status: "active",
    setBy: "workspace",
    updatedAt: "2026-02-18T15:07:00.000Z",
  });
  await expectOk(z.object({ plan: Plan }), put("soon", { name: "Soon", instruction: "Ask", runAfter: "20 minutes" }));
  expect((await list()).map(({ id, nextRunAt }) => [id, nextRunAt])).toEqual([
    ["soon", "2026-02-18T15:27:00.000Z"],
    ["daily", "2026-02-19T06:00:00.000Z"],
  ]);
  const moved = { ...daily, cron: undefined, scheduledAt: "2026-02-20T09:00:00" };
  await expectOk(z.object({ plan: Plan }), put("daily", moved));
  expect((await list()).at(-1)).toMatchObject({ id: "daily", nextRunAt: "2026-02-20T06:00:00.000Z" });
  expect((await list()).at(-1)?.cron).toBeUndefined();
  expect((await remove("daily")).status).toBe(204);
  expect((await remove("daily")).status).toBe(404);
  expect(await list()).toHaveLength(1);
});

const named = { name: "Report", instruction: "Report" };

test.each([
  [{ ...named, cron: "0 0 31 2 *" }, 422, "invalid_time", "never comes"],
  [{ ...named, cron: "0 9 * * *", timezone: "Mars/Phobos" }, 422, "invalid_time", "no time zone"],
  [{ ...named, scheduledAt: "2026-02-18T15:06:59Z" }, 422, "invalid_time", "is past"],
  [{ ...named, scheduledAt: "2026-02-18T20:00:00Z", runAfter: "1 hour" }, 422, "invalid_time", "only one of"],
  [named, 422, "invalid_time", "say when"],
  [{ ...named, scheduledAt: "tomorrow" }, 400, "invalid_request", ""],
  [{ ...named, runAfter: "" }, 400, "invalid_request", ""],
  [{ ...named, runAfter: "1 hour", nextRunAt: now }, 400, "invalid_request", ""],
  [{ ...named, instruction: "", runAfter: "1 hour" }, 400, "invalid_request", ""],
  [{ ...named, instruction: "x".repeat(4001), runAfter: "1 hour" }, 400, "invalid_request", ""],
])("[S4] plan %# is refused as $2, with the reason", async (body, status, code, why) => {
  const { put, list } = await openAgent();
  const problem = await problemIn(await put("report", body));
  expect(problem).toMatchObject({ status, code, detail: expect.stringContaining(why) });
  expect(problem.issues?.length).toBeGreaterThan(0);
  expect(await list()).toEqual([]);
});

test("[S4] a plan's id that is no label is refused", async () => {
  const { put } = await openAgent();
  expect(await problemIn(await put("no%20label", { ...named, runAfter: "1 hour" }))).toMatchObject({ status: 400 });
});

test("an agent's heartbeat is set with its config, changed, and turned off by null", async () => {
  const { house, patch } = await openAgent();
  const heartbeat = { everyMinutes: 120, activeHours: { start: 8, end: 22 }, timezone: "Asia/Riyadh" };
  const agent = await house.agent({ name: "Watcher", heartbeat });
  expect(agent.config.heartbeat).toEqual(heartbeat);
  const one = z.object({ agent: Agent });
  expect((await expectOk(one, patch({ heartbeat }))).agent.config.heartbeat).toEqual(heartbeat);
  expect((await expectOk(one, patch({ description: "x" }))).agent.config.heartbeat).toEqual(heartbeat);
  expect((await expectOk(one, patch({ heartbeat: null }))).agent.config.heartbeat).toBeUndefined();
  for (const bad of [{ everyMinutes: 1 }, { ...heartbeat, timezone: "Mars/Phobos" }, { everyMinutes: 5, at: 1 }]) {
    expect(await problemIn(await patch({ heartbeat: bad }))).toMatchObject({ status: 400 });
  }
});
