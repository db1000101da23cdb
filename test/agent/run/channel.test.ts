import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Channel } from "../../../src/agent/run/channel.ts";
import type { SpaceRpc } from "../../../src/protocol/rpc.ts";
import { ok } from "../../../src/shared/errors.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const open = { workspaceId: "wsp", agentId: "ent", runId: "run" };

test("a channel that has ended leaves no timer that would keep its agent awake", async () => {
  const speak: SpaceRpc["speak"] = async (_, frames) => {
    for await (const _chunk of frames);
    return ok(null);
  };
  const channel = new Channel({ speak }, open);
  channel.send({ type: "active" });
  await channel.end(undefined, 2000);
  expect(vi.getTimerCount()).toBe(0);
});

test("[D4] a channel to a space that never reads is given up, so that nothing of it stays open", async () => {
  const given: ReadableStream<Uint8Array>[] = [];
  const speak: SpaceRpc["speak"] = (_, frames) => {
    given.push(frames);
    return new Promise(() => undefined);
  };
  const channel = new Channel({ speak }, open);
  channel.send({ type: "active" });
  const ended = channel.end(undefined, 2000);
  await vi.advanceTimersByTimeAsync(4000);
  await ended;
  expect(channel.dead).toBe(true);
  await expect(given[0]?.getReader().read()).rejects.toThrow();
  expect(vi.getTimerCount()).toBe(0);
});
