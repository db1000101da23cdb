import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClock } from "../../src/shared/clock.ts";
import { forgetTurnMs, listenIntervalMs } from "../../src/space/bounds.ts";
import { Pauses } from "../../src/space/delivery/pauses.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("who was just told waits for the rest of the interval; who was not does not", async () => {
  const pauses = new Pauses(systemClock);
  expect(await pauses.wait("robo")).toBe(false);
  pauses.told("robo");
  await vi.advanceTimersByTimeAsync(100);
  expect(await pauses.wait("hal")).toBe(false);
  const over = vi.fn();
  const waited = pauses.wait("robo").then((did) => over(did));
  await vi.advanceTimersByTimeAsync(listenIntervalMs - 101);
  expect(over).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  await waited;
  expect(over).toHaveBeenCalledWith(true);
  pauses.told("robo");
  await vi.advanceTimersByTimeAsync(listenIntervalMs);
  expect(await pauses.wait("robo")).toBe(false);
});

test("all who wait wait for the same moment", async () => {
  const pauses = new Pauses(systemClock);
  pauses.told("robo");
  const first = pauses.wait("robo");
  await vi.advanceTimersByTimeAsync(listenIntervalMs - 10);
  pauses.told("hal");
  const second = pauses.wait("hal");
  await vi.advanceTimersByTimeAsync(10);
  expect(await Promise.all([first, second])).toEqual([true, true]);
});

test("what must not wait ends the pause, and lets none begin", async () => {
  const pauses = new Pauses(systemClock);
  pauses.told("robo");
  const waited = pauses.wait("robo");
  pauses.end("robo");
  expect(await waited).toBe(true);
  pauses.told("robo");
  pauses.end("robo");
  expect(await pauses.wait("robo")).toBe(false);
});

test("turns come one after another, and what must not wait ends that of one alone", async () => {
  const pauses = new Pauses(systemClock);
  const had: string[] = [];
  for (const id of ["robo", "hal", "deep"]) void pauses.turn(id).then(() => had.push(id));
  await vi.advanceTimersByTimeAsync(forgetTurnMs);
  expect(had).toEqual(["robo"]);
  pauses.end("deep");
  await vi.advanceTimersByTimeAsync(forgetTurnMs - 1);
  expect(had).toEqual(["robo", "deep"]);
  await vi.advanceTimersByTimeAsync(1);
  expect(had).toEqual(["robo", "deep", "hal"]);
});

test("a clock that went back makes nobody wait", async () => {
  const pauses = new Pauses(systemClock);
  pauses.told("robo");
  vi.setSystemTime(Date.now() - 60_000);
  expect(await pauses.wait("robo")).toBe(false);
});
