import { env } from "cloudflare:workers";
import { expect, onTestFinished, test, vi } from "vitest";
import { mcpCloseMs, mcpListTimeoutMs } from "../../../src/agent/bounds.ts";
import { places } from "../../../src/agent/redaction/places.ts";
import { seal } from "../../../src/auth/sealing.ts";
import type { McpStatus } from "../../../src/protocol/tool.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { createGate } from "../../support/gate.ts";
import { type TestMcpServer, testMcpServer } from "../../support/mcp-server.ts";
import { rowsWith } from "../../support/rows.ts";
import { call, step, text } from "../../support/scripted-model.ts";
import { agentStub, rowsIn, scripted } from "../fixture.ts";
import { config, network, open, shout, stage } from "./scene.ts";

/** What a server answers to the method that is named, in the place of its real answer. */
const instead = (method: string, answer: (request: Request) => Response | Promise<Response>): TestMcpServer => {
  const server = testMcpServer("2026-07-28", [shout]);
  return {
    ...server,
    fetch: async (request) =>
      (await request.clone().text()).includes(`"${method}"`) ? answer(request) : server.fetch(request),
  };
};

const json = (body: unknown): Response => Response.json(body);
const result = async (request: Request, value: object): Promise<Response> => {
  const { id }: { id: number } = await request.json();
  return json({ jsonrpc: "2.0", id, result: { resultType: "complete", ttlMs: 0, cacheScope: "private", ...value } });
};
const endless = (piece: string): Response => {
  const bytes = new TextEncoder().encode(piece);
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(bytes) });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
};
const many = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ name: `t${index}`, inputSchema: { type: "object" } }));

const lists: [string, (request: Request) => Response | Promise<Response>, Partial<McpStatus["lastError"]>][] = [
  ["bad JSON", () => new Response("{", { headers: { "content-type": "application/json" } }), { code: "tool_failed" }],
  ["a web page", () => new Response("<html>", { headers: { "content-type": "text/html" } }), { code: "tool_failed" }],
  ["tools that are none", (request) => result(request, { tools: "all" }), { code: "tool_failed" }],
  [
    "pages without end",
    (request) => result(request, { tools: [], nextCursor: crypto.randomUUID() }),
    { code: "tool_failed" },
  ],
  ["a stream that never ends", () => endless(`: ${"x".repeat(60_000)}\n`), { code: "tool_failed" }],
  [
    "an event that never ends",
    () => endless("data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".repeat(1000)),
    { code: "tool_failed" },
  ],
  ["401", () => new Response("no", { status: 401 }), { code: "tool_misconfigured" }],
  ["500", () => new Response("oops", { status: 500 }), { code: "unavailable" }],
  [
    "a redirect to this machine",
    () => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:1/" } }),
    { code: "tool_misconfigured" },
  ],
];

test.each(lists)("[S3] [S4] a server listing with %s is failing; the agent goes on", async (_, answer, error) => {
  open(instead("tools/list", answer));
  const scene = await stage(config());
  const status = await scene.until("failing");
  expect(status).toMatchObject({ tools: [], lastError: error });
  scripted([step(text("Nothing to do."))]);
  expect((await scene.ask()).run).toMatchObject({ status: "completed" });
});

test("[B3] [S4] of a giant list as much is taken as may be, and the rest is told of", async () => {
  open(instead("tools/list", (request) => result(request, { tools: many(5000) })));
  const scene = await stage(config());
  const status = await scene.until("ok");
  expect(status.tools).toHaveLength(64);
  expect(status.leftOut.at(-1)).toMatchObject({ tool: "4886 more" });
});

const answers: [string, (request: Request) => Response | Promise<Response>, object][] = [
  ["what is no result", (request) => result(request, { content: "4" }), { code: "outcome_unknown" }],
  ["an error of its own", () => json({ jsonrpc: "2.0", id: 1, error: 7 }), { code: "outcome_unknown" }],
  [
    "a question",
    (request) => result(request, { resultType: "input_required", inputRequests: {} }),
    { code: "outcome_unknown" },
  ],
  ["a task", (request) => result(request, { resultType: "task", taskId: "1" }), { code: "outcome_unknown" }],
  ["a flood", () => endless(`: ${"x".repeat(60_000)}\n`), { code: "outcome_unknown" }],
  ["429", () => new Response("later", { status: 429 }), { code: "unavailable" }],
  ["503", () => new Response("later", { status: 503 }), { code: "outcome_unknown" }],
];

test.each(answers)("[S4][R3] a call that is answered with %s is a typed error", async (_, answer, error) => {
  open(instead("tools/call", answer));
  const scene = await stage(config({ timeoutMs: 2000 }));
  await scene.until("ok");
  scripted([step(call("desk__shout", {})), step(text("Done."))]);
  const { run, results } = await scene.ask();
  expect(run).toMatchObject({ status: "completed" });
  expect(results).toMatchObject([{ success: false, error }]);
});

test("[R1] [R4] a server that falls silent as soon as it has given a session holds up no run", async () => {
  const server = testMcpServer("2025-11-25", [shout]);
  open(server);
  const scene = await stage(config());
  await scene.until("ok");
  const { setTimeout: later } = globalThis;
  vi.stubGlobal("setTimeout", (work: () => void, delay?: number) =>
    later(work, delay === mcpListTimeoutMs || delay === mcpCloseMs ? 50 : delay),
  );
  open({
    ...server,
    fetch: async (request) => {
      if ((await request.clone().text()).includes('"initialize"')) return server.fetch(request);
      return new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
    },
  });
  scripted([step(call("desk__shout", {})), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(results).toMatchObject([{ success: false, error: { code: "tool_timeout" } }]);
});

test("[S3] a secret that a server repeats in a description, answer or error shows nowhere", async () => {
  const secret = "s3cret-and-long-enough";
  const server = testMcpServer("2026-07-28", [
    { name: "echo", description: `Your token is ${secret}`, answer: () => `You are ${secret}` },
    {
      name: "fail",
      answer: () => {
        throw new Error(`${secret} is wrong`);
      },
    },
  ]);
  network({});
  const scene = await stage(config({ headers: { Authorization: `Bearer \${secret.DESK}` } }));
  const { lastError } = await scene.until("failing");
  expect(lastError).toMatchObject({ code: "tool_misconfigured", message: expect.stringContaining("secrets/DESK") });
  open(server);
  const { workspaceId } = scene.house;
  const sealed = await seal(env, workspaceId, "DESK", secret);
  unwrap(await scene.agent.setSecrets(workspaceId, { DESK: sealed }));
  await scene.until("ok");
  const model = scripted([step(call("desk__echo", {}), call("desk__fail", {})), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(server.requests.every(({ headers }) => headers.get("authorization") === `Bearer ${secret}`)).toBe(true);
  expect(results).toMatchObject([
    "You are [redacted]",
    { error: { message: expect.stringContaining("[redacted] is wrong") } },
  ]);
  expect(JSON.stringify([model.calls.map(({ tools, prompt }) => [tools, prompt]), await scene.status()])).not.toContain(
    secret,
  );
});

test("[L4] what a failing server quotes of a call goes with the message that the call repeats", async () => {
  open(instead("tools/call", async (request) => new Response(`no: ${await request.text()}`, { status: 503 })));
  const scene = await stage(config());
  await scene.until("ok");
  const words = "the quinces of the old orchard";
  scripted([step(call("desk__shout", { text: words })), step(text("It is down."))]);
  const { id } = await scene.space.post(scene.husam, words);
  await scene.outcome();
  expect(await rowsWith(agentStub(scene.nova), "quinces")).toContainEqual(expect.stringMatching(/^mcp_servers /));
  unwrap(await scene.space.stub().deleteMessage(scene.house.key, id));
  await vi.waitFor(async () => expect(await rowsWith(agentStub(scene.nova), "quinces")).toEqual([]));
});

test("[L4] what a server quotes of a call that was under way as its words were deleted goes too", async () => {
  const gate = createGate();
  onTestFinished(gate.open);
  const answer = async (request: Request): Promise<Response> => {
    const body = await request.text();
    gate.reach();
    await gate.opened;
    return new Response(`no: ${body}`, { status: 503 });
  };
  open(instead("tools/call", answer));
  const scene = await stage(config());
  await scene.until("ok");
  const words = "the quinces of the old orchard";
  scripted([step(call("desk__shout", { text: words })), step(text("It is down."))]);
  const { id } = await scene.space.post(scene.husam, words);
  await gate.reached;
  unwrap(await scene.space.stub().deleteMessage(scene.house.key, id));
  const redactions = () => rowsIn(scene.nova, "SELECT words, place FROM redactions");
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ place: places.length + 1 }]));
  gate.open();
  await vi.waitFor(async () => expect(await redactions()).toMatchObject([{ words: null }]));
  await scene.until("failing");
  expect(await rowsWith(agentStub(scene.nova), "quinces")).toEqual([]);
});

test("a server or a tool that is taken out of the config is gone at once", async () => {
  const server = testMcpServer("2026-07-28", [shout, { name: "look", answer: () => "seen" }]);
  open(server);
  const scene = await stage(config());
  await scene.until("ok");
  const change = async (mcp: ReturnType<typeof config>) =>
    unwrap(await scene.agent.update(scene.house.workspaceId, { mcp }));
  await change(config({ allowedTools: ["look"] }));
  const model = scripted([
    step(call("desk__shout", {}), call("desk__look", {})),
    step(text("Done.")),
    step(call("desk__look", {})),
    step(text("Done.")),
  ]);
  const { results } = await scene.ask();
  expect(results).toMatchObject([{ error: { code: "tool_unknown" } }, "seen"]);
  expect(model.calls[0]?.tools?.map(({ name }) => name).filter((name) => name.startsWith("desk"))).toEqual([
    "desk__look",
  ]);
  expect((await change({ servers: [] })).mcp).toBeUndefined();
  const second = await scene.ask(2);
  expect(second.results).toMatchObject([{ error: { code: "tool_unknown" } }]);
  const asked = server.requests.length;
  await vi.waitFor(async () => expect(unwrap(await scene.agent.describe(scene.house.workspaceId)).mcp).toBeUndefined());
  expect(server.requests.length).toBe(asked);
});
