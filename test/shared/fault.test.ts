import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { armFault, type Crashable, disarmFaults, faultOnceStored } from "../../src/shared/fault.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  disarmFaults();
});

/** An object that crashes at an armed point once its disk is `written`, and what happened so far. */
const crashing = () => {
  const { promise, resolve: written } = Promise.withResolvers<void>();
  const seen: string[] = [];
  const object: Crashable = { abort: () => void seen.push("aborted"), storage: { sync: () => promise } };
  void armFault("space.after-append").then(() => seen.push("crashed"));
  void faultOnceStored("space.after-append", object);
  return { seen, written };
};

test("a fault has happened once its object is aborted, not while the object still writes", async () => {
  const { seen, written } = crashing();
  await vi.advanceTimersByTimeAsync(1000);
  expect(seen).toEqual([]);
  written();
  await vi.advanceTimersByTimeAsync(10);
  expect(seen).toEqual(["aborted", "crashed"]);
});

test("a disarmed fault is no longer waited for", async () => {
  const seen: string[] = [];
  void armFault("space.after-append").then(() => seen.push("disarmed"));
  await vi.advanceTimersByTimeAsync(10);
  expect(seen).toEqual([]);
  disarmFaults();
  await vi.advanceTimersByTimeAsync(10);
  expect(seen).toEqual(["disarmed"]);
});

test("a point armed again while its object still writes crashes the next object too", async () => {
  const { seen, written } = crashing();
  const next: Crashable = { abort: () => void seen.push("next aborted"), storage: { sync: async () => undefined } };
  void armFault("space.after-append").then(() => seen.push("next crashed"));
  await faultOnceStored("space.after-append", next);
  await vi.advanceTimersByTimeAsync(10);
  expect(seen).toEqual(["next aborted", "next crashed"]);
  written();
  await vi.advanceTimersByTimeAsync(10);
  expect(seen.slice(2)).toEqual(["aborted", "crashed"]);
});
