import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { spaceAnswerMs } from "../../src/agent/bounds.ts";
import { callWithRetry } from "../../src/agent/call-with-retry.ts";
import { ok, refuse } from "../../src/shared/errors.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("[R5] who is canceled between two tries asks no more", async () => {
  const canceled = new AbortController();
  const reason = new Error("the run was canceled");
  const ask = vi.fn(async () => refuse("unavailable", "It restarts"));
  const asking = expect(callWithRetry(ask, canceled.signal)).rejects.toBe(reason);
  await vi.advanceTimersByTimeAsync(1);
  expect(ask).toHaveBeenCalledTimes(1);
  canceled.abort(reason);
  await vi.advanceTimersByTimeAsync(10 * spaceAnswerMs);
  expect(ask).toHaveBeenCalledTimes(1);
  await asking;
});

test("[R5] an answer that is under way is waited for by who is canceled meanwhile", async () => {
  const canceled = new AbortController();
  const ask = () => new Promise<ReturnType<typeof ok<string>>>((resolve) => setTimeout(() => resolve(ok("said")), 10));
  const asking = callWithRetry(ask, canceled.signal);
  canceled.abort(new Error("the run was canceled"));
  await vi.advanceTimersByTimeAsync(10);
  expect(await asking).toEqual(ok("said"));
});
