import { expect, test, vi } from "vitest";
import { maxMcpAnswerBytes } from "../../../src/agent/bounds.ts";
import { guardedFetch, serverHeaders } from "../../../src/agent/tools/mcp/guarded-fetch.ts";

const url = "https://tools.example.com/mcp";

const guard = (answer: () => Response, more: object = {}) => {
  const fetch = vi.fn(async (_address: string | URL, _init?: RequestInit) => answer());
  const broke = vi.fn();
  const guarded = guardedFetch({
    url,
    headers: { authorization: "Bearer 1" },
    allowLoopback: false,
    fetch,
    broke,
    ...more,
  });
  return { fetch, broke, guarded };
};

test("the configured address is asked with the configured headers, beside the protocol's own", async () => {
  const { fetch, guarded } = guard(() => new Response("{}"));
  await guarded(new URL(url), { method: "POST", headers: { accept: "application/json" } });
  const [address, init] = fetch.mock.calls[0] ?? [];
  expect(address).toBe(url);
  expect(init).toMatchObject({ method: "POST", redirect: "manual" });
  expect(Object.fromEntries(new Headers(init?.headers))).toEqual({
    accept: "application/json",
    authorization: "Bearer 1",
  });
});

test.each([
  "http://tools.example.com/mcp",
  "https://127.0.0.1/mcp",
  "https://10.0.0.1/",
  "https://db.internal/",
  "no url",
])("[S3] %s is refused before anything is sent", (address) => {
  expect(() => guard(() => new Response("{}"), { url: address })).toThrow(
    expect.objectContaining({ code: "tool_misconfigured" }),
  );
});

test("[S3] no redirect is followed, and no other address is asked", async () => {
  const location = "http://127.0.0.1/";
  const { guarded, fetch } = guard(() => new Response(null, { status: 307, headers: { location } }));
  await expect(guarded(url)).rejects.toMatchObject({ code: "tool_misconfigured", message: /redirects/ });
  await expect(guarded("https://tools.example.com/else")).rejects.toMatchObject({ code: "tool_failed" });
  expect(fetch).toHaveBeenCalledTimes(1);
});

test("[B3] an answer that never ends is cut off, and whoever waits is told", async () => {
  const endless = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024)) });
  const { guarded, broke } = guard(() => new Response(endless));
  await expect((await guarded(url)).arrayBuffer()).rejects.toMatchObject({ message: /maxMcpAnswerBytes/ });
  await vi.waitFor(() => expect(broke).toHaveBeenCalledWith(expect.objectContaining({ code: "tool_failed" })));
  const whole = guard(() => new Response(new Uint8Array(maxMcpAnswerBytes)));
  expect((await (await whole.guarded(url)).arrayBuffer()).byteLength).toBe(maxMcpAnswerBytes);
});

test("[S3] secrets stand in headers; a missing or unsendable one is named without its value", async () => {
  const secrets: Record<string, string> = { TOKEN: "abc", ODD: "line\nbreak" };
  const unsealSecret = async (name: string) => secrets[name];
  const one = { headers: { Authorization: `Bearer \${secret.TOKEN}`, "x-plain": "yes" } };
  expect(await serverHeaders(one, unsealSecret)).toEqual({
    headers: { Authorization: "Bearer abc", "x-plain": "yes" },
    secrets: ["abc"],
  });
  await expect(serverHeaders({ headers: { a: `\${secret.NONE}` } }, unsealSecret)).rejects.toMatchObject({
    code: "tool_misconfigured",
    message: /PUT \/v1\/workspace\/secrets\/NONE/,
  });
  const odd = await serverHeaders({ headers: { a: `\${secret.ODD}` } }, unsealSecret).catch((error: unknown) => error);
  expect(odd).toMatchObject({ code: "tool_misconfigured" });
  expect(String(odd)).not.toContain("break");
});

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
