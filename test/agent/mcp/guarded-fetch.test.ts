import { expect, test } from "vitest";
import { guardedFetch } from "../../../src/agent/tools/mcp/guarded-fetch.ts";

const url = "https://desk.example/mcp";

test("[R5] a call that ends while its answer comes leaves the connection whole for others", async () => {
  const failures: unknown[] = [];
  const bodies: ReadableStreamDefaultController<Uint8Array>[] = [];
  const fetch = guardedFetch({
    ...{ url, headers: {}, allowLoopback: false, broke: (error: unknown) => void failures.push(error) },
    fetch: async (_, { signal } = {}) => {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          bodies.push(controller);
          controller.enqueue(new TextEncoder().encode("data: "));
          signal?.addEventListener("abort", () => controller.error(signal.reason));
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const canceled = new AbortController();
  const answer = await fetch(url, { signal: canceled.signal });
  const other = await fetch(url, { signal: new AbortController().signal });
  canceled.abort(new Error("canceled"));
  await expect(answer.text()).rejects.toThrow();
  expect(failures).toEqual([]);
  // The other's answer breaks off by itself, which is told.
  bodies[1]?.error(new Error("reset"));
  await expect(other.text()).rejects.toThrow();
  expect(failures).toMatchObject([{ code: "unavailable" }]);
});
