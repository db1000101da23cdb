import { afterEach, expect, test, vi } from "vitest";
import { bridge, maxWaitingFrames } from "../../src/routes/server-sent-events.ts";

afterEach(() => vi.useRealTimers());

/** The space's end of a socket, as far as a bridge uses it. */
const stage = () => {
  vi.useFakeTimers();
  const target = new EventTarget();
  const closed: number[] = [];
  const ends = { accept: () => undefined, close: (code: number) => void closed.push(code) };
  const socket: WebSocket = Object.assign(Object.create(null), ends, {
    addEventListener: target.addEventListener.bind(target),
  });
  const client = new AbortController();
  const tell = (cursor: number): void => {
    const data = JSON.stringify({ type: "member.read", cursor });
    target.dispatchEvent(new MessageEvent("message", { data }));
  };
  return { closed, client, tell, stream: bridge(socket, client.signal) };
};

test("[D3] [B3] a client that does not read is cut off, told so last, and resumes by its cursor", async () => {
  const { closed, tell, stream } = stage();
  for (let cursor = 1; cursor <= maxWaitingFrames + 50; cursor += 1) tell(cursor);
  expect(closed).toEqual([4429]);
  const told = (await new Response(stream).text()).split("\n\n").filter((event) => event !== "");
  expect(told.length).toBeLessThanOrEqual(maxWaitingFrames + 1);
  expect(told.slice(0, 2).map((event) => event.split("\n")[1])).toEqual(["id: 1", "id: 2"]);
  expect(told.at(-1)).toMatch(/^event: closed\ndata: \{"code":4429,/);
});

test("a client that leaves in any way leaves no socket and no timer", async () => {
  for (const leave of ["cancel", "abort"] as const) {
    const { closed, client, stream } = stage();
    const reader = stream.getReader();
    if (leave === "cancel") await reader.cancel();
    else client.abort();
    expect(closed, leave).toEqual([1000]);
    expect(vi.getTimerCount(), leave).toBe(0);
  }
});
