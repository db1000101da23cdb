import { env } from "cloudflare:workers";
import { afterEach, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import { apiError, refusal } from "../support/scripted-model.ts";
import { ended, inboxOf, openScene, passTime, scripted } from "./fixture.ts";

afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const day = 24 * 60 * 60_000;

/** An agent whose model's provider is down, and has been asked once. */
const stage = async () => {
  vi.setSystemTime(Date.now());
  const { house, husam, analyst, space } = await openScene();
  scripted(() => refusal(apiError(503)));
  const agent = env.AGENT.getByName(analyst.id);
  /** How long it pauses from now on, in milliseconds. */
  const pause = () =>
    vi.waitFor(async () => {
      const { activity } = unwrap(await agent.describe(house.workspaceId));
      const pauseMs = Date.parse(activity?.nextRetryAt ?? "") - Date.now();
      expect(activity?.state).toBe("backing_off");
      expect(pauseMs).toBeGreaterThan(0);
      return pauseMs;
    });
  return { house, analyst, pause, begin: () => space.post(husam, "Hello") };
};

test("[R4] pauses between tries double, with up to a half of jitter, to ten minutes at most", async () => {
  const { analyst, pause, begin } = await stage();
  const jitters = [0, 0.5, 1, 0, 0, 0, 0, 0, 0, 0, 0];
  const random = vi.spyOn(Math, "random");
  const pauses: number[] = [];
  for (const [index, jitter] of jitters.entries()) {
    random.mockReturnValue(jitter);
    if (index === 0) await begin();
    else await passTime(analyst, pauses[index - 1] ?? 0);
    pauses.push(await pause());
  }
  const doubled = jitters.map((jitter, index) => Math.min(600_000, 1000 * 2 ** index) * (1 + jitter / 2));
  expect(pauses).toEqual(doubled);
});

test("[R1] [R4] a fault that lasts a day ends the run, typed, and its event is tried anew", async () => {
  const { house, analyst, pause, begin } = await stage();
  await begin();
  await pause();
  await passTime(analyst, day - 1000);
  await pause();
  await passTime(analyst, day);
  const [run] = await ended(house.workspaceId, analyst, 1);
  expect(run).toMatchObject({ status: "failed", error: { code: "model_unavailable" } });
  expect(await inboxOf(house.workspaceId, analyst)).toMatchObject([{ status: "pending", attempts: 1 }]);
});
