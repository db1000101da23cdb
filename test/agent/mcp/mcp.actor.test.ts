import { abortAllDurableObjects, evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { mcpFirstRetryMs, mcpLeaseMs } from "../../../src/agent/bounds.ts";
import { seal } from "../../../src/auth/sealing.ts";
import { unwrap } from "../../../src/shared/errors.ts";
import { createGate } from "../../support/gate.ts";
import {
  type Revision,
  revisions,
  type TestMcpServer,
  type TestTool,
  testMcpServer,
} from "../../support/mcp-server.ts";
import { call, step, text } from "../../support/scripted-model.ts";
import { agentStub, inboxOf, passTime, runsOf, scripted, userTexts } from "../fixture.ts";
import { config, network, open, shout, stage } from "./scene.ts";

describe.each(revisions)("a server of %s", (revision: Revision) => {
  test("its tools are listed, declared after the agent's own, and called", async () => {
    const server = testMcpServer(revision, [shout]);
    open(server);
    const scene = await stage(config());
    expect(await scene.until("ok")).toMatchObject({ tools: ["desk__shout"], leftOut: [], protocolVersion: revision });
    const model = scripted([step(call("desk__shout", { text: "hello" })), step(text("Done."))]);
    const { run, results } = await scene.ask();
    expect(run).toMatchObject({ status: "completed" });
    const names = (model.calls[0]?.tools ?? []).map(({ name }) => name);
    expect(names.indexOf("desk__shout")).toBe(names.length - 1);
    expect(names.length).toBeGreaterThan(10);
    expect(results).toEqual(["HELLO"]);
  });

  test("a list that changes is picked up, and the next run begins a new window with it", async () => {
    const whisper: TestTool = { name: "whisper", answer: ({ text: words = "" }) => words.toLowerCase() };
    const grow: TestTool = {
      name: "grow",
      answer: () => {
        server.setTools([shout, whisper]);
        return "grown";
      },
    };
    const server = testMcpServer(revision, [grow]);
    open(server);
    const scene = await stage(config());
    await scene.until("ok");
    const model = scripted([
      step(call("desk__grow", {})),
      step(call("desk__grow", {})),
      step(text("Done.")),
      step(call("desk__whisper", { text: "B" })),
      step(text("Done.")),
    ]);
    await scene.ask();
    await vi.waitFor(async () => expect((await scene.status())?.tools).toEqual(["desk__shout", "desk__whisper"]), {
      timeout: 5000,
    });
    const second = await scene.ask(2);
    expect(second.results).toEqual(["b"]);
    const declared = (index: number) =>
      (model.calls[index]?.tools ?? []).map(({ name }) => name).filter((name) => name.startsWith("desk__"));
    expect([0, 1, 2].map(declared)).toEqual([["desk__grow"], ["desk__grow"], ["desk__grow"]]);
    expect(declared(3)).toEqual(["desk__shout", "desk__whisper"]);
    // A new window tells the whole state again.
    expect(userTexts(model.calls[3]).at(-1)).toContain("YOUR SPACES");
  });
});

test("a session that the server has forgotten is begun anew, once, and the call is made", async () => {
  const server = testMcpServer("2025-11-25", [shout]);
  open(server);
  const scene = await stage(config());
  await scene.until("ok");
  scripted([
    step(call("desk__shout", { text: "once" })),
    step(text("Done.")),
    step(call("desk__shout", { text: "again" })),
    step(text("Done.")),
  ]);
  await scene.ask();
  const begun = () => server.requests.filter(({ method }) => method === "initialize").length;
  const before = begun();
  server.forgetSessions();
  expect((await scene.ask(2)).results).toEqual(["AGAIN"]);
  expect(begun()).toBe(before + 1);
});

test("an object that was evicted has lost its session, and opens another", async () => {
  const server = testMcpServer("2025-11-25", [shout]);
  open(server);
  const scene = await stage(config());
  await scene.until("ok");
  await evictDurableObject(agentStub(scene.nova));
  scripted([step(call("desk__shout", { text: "awake" })), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(results).toEqual(["AWAKE"]);
});

test("[R4] a server that is down stops no run: its tools say why, and it is asked again", async () => {
  const server = testMcpServer("2026-07-28", [shout]);
  open(server);
  vi.useFakeTimers({ toFake: ["Date"] });
  const scene = await stage(config());
  await scene.until("ok");
  network({});
  scripted([
    step(call("desk__shout", { text: "a" })),
    step(text("It is down.")),
    step(call("desk__shout", { text: "b" })),
    step(text("Done.")),
  ]);
  const { run, results } = await scene.ask();
  expect(run).toMatchObject({ status: "completed" });
  const told = { code: "unavailable", message: 'MCP server "desk": it cannot be reached' };
  expect(results).toEqual([{ success: false, error: told }]);
  expect(await scene.until("failing")).toMatchObject({
    tools: ["desk__shout"],
    lastError: { code: "unavailable" },
    failingSince: expect.any(String),
    nextTryAt: expect.any(String),
  });
  open(server);
  await passTime(scene.nova, 1.5 * mcpFirstRetryMs + 1);
  await scene.until("ok");
  const second = await scene.ask(2);
  expect(second.results).toEqual(["B"]);
});

test("a server that was never up leaves the agent as it is; its tools come once it is up", async () => {
  network({});
  vi.useFakeTimers({ toFake: ["Date"] });
  const scene = await stage(config());
  expect(await scene.until("failing")).toMatchObject({ tools: [], lastError: { message: "it cannot be reached" } });
  scripted([step(text("Nothing to do."))]);
  expect((await scene.ask()).run).toMatchObject({ status: "completed" });
  open(testMcpServer("2026-07-28", [shout]));
  await passTime(scene.nova, 1.5 * mcpFirstRetryMs + 1);
  expect(await scene.until("ok")).toMatchObject({ tools: ["desk__shout"] });
});

const broken = (): TestMcpServer => {
  const server = testMcpServer("2026-07-28", [
    shout,
    { name: "look", annotations: { readOnlyHint: true }, answer: () => "seen" },
  ]);
  return {
    ...server,
    fetch: async (request) => {
      const body = await request.clone().text();
      if (!body.includes("tools/call")) return server.fetch(request);
      const cut = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(": working\n\n")),
        pull: (controller) => controller.error(new Error("cut")),
      });
      return new Response(cut, { headers: { "content-type": "text/event-stream" } });
    },
  };
};

test("[R3] a call whose connection breaks has an unknown outcome, unless it is idempotent", async () => {
  open(broken());
  const scene = await stage(config());
  await scene.until("ok");
  scripted([step(call("desk__shout", {}), call("desk__look", {})), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(results).toEqual([
    { success: false, error: { code: "outcome_unknown", message: expect.stringContaining("is not known") } },
    { success: false, error: { code: "unavailable", message: expect.stringContaining("broke") } },
  ]);
});

test("[R3] a slow tool is given up after timeoutMs; its server does not count as failing", async () => {
  const never: TestTool = { name: "never", answer: () => new Promise<string>(() => undefined) };
  const look: TestTool = { ...never, name: "look", annotations: { readOnlyHint: true } };
  open(testMcpServer("2026-07-28", [never, look]));
  const scene = await stage(config({ timeoutMs: 200 }));
  await scene.until("ok");
  scripted([step(call("desk__never", {})), step(call("desk__look", {})), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(results).toMatchObject([
    { error: { code: "outcome_unknown", message: expect.stringMatching(/did not answer in time; .*is not known/) } },
    { error: { code: "tool_timeout", message: expect.not.stringContaining("not known") } },
  ]);
  expect(await scene.status()).toMatchObject({ state: "ok" });
});

test("[R5] a run that is canceled waits for no server, and the server is told", async () => {
  const told = createGate();
  const never: TestTool = {
    name: "never",
    answer: (_, signal) =>
      new Promise<string>((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          told.open();
          reject(new Error("aborted"));
        });
        called.open();
      }),
  };
  const called = createGate();
  open(testMcpServer("2026-07-28", [never]));
  const scene = await stage(config());
  await scene.until("ok");
  scripted([step(call("desk__never", {}))]);
  await scene.space.post(scene.husam, "Do it");
  await called.opened;
  const [run] = await runsOf(scene.house.workspaceId, scene.nova);
  unwrap(await scene.agent.cancelRun(scene.house.workspaceId, run?.id ?? ""));
  expect((await scene.outcome()).run).toMatchObject({ status: "canceled" });
  await told.opened;
});

test("what the server calls an error is the tool's error, in quotes of its own", async () => {
  const fail: TestTool = {
    name: "fail",
    answer: () => {
      throw new Error("no such city");
    },
  };
  open(testMcpServer("2026-07-28", [fail]));
  const scene = await stage(config());
  await scene.until("ok");
  scripted([step(call("desk__fail", {})), step(call("desk__fail", { text: 7 })), step(text("Done."))]);
  const { results } = await scene.ask();
  expect(results).toMatchObject([
    { error: { code: "tool_failed", message: 'MCP server "desk": the server says: no such city' } },
    { error: { code: "tool_failed", message: expect.stringContaining("text") } },
  ]);
});

test("[R1] a fetch that was cut is begun again by itself", async () => {
  const asked = createGate();
  const server = testMcpServer("2026-07-28", [shout]);
  open({
    ...server,
    fetch: (request) => {
      asked.open();
      return new Promise<Response>(() => void request);
    },
  });
  vi.useFakeTimers({ toFake: ["Date"] });
  const scene = await stage(config());
  await asked.opened;
  await abortAllDurableObjects();
  open(server);
  await passTime(scene.nova, mcpLeaseMs + 1);
  expect(await scene.until("ok")).toMatchObject({ tools: ["desk__shout"] });
});

test("a list is fetched once at a time, for the tools that are allowed when it comes", async () => {
  const [asked, go] = [createGate(), createGate()];
  const server = testMcpServer("2026-07-28", [shout, { ...shout, name: "whisper" }]);
  let lists = 0;
  const fetch: typeof server.fetch = async (request) => {
    if ((await request.clone().text()).includes("tools/list")) {
      lists += 1;
      asked.open();
      await go.opened;
    }
    return server.fetch(request);
  };
  open({ ...server, fetch });
  const scene = await stage(config({ allowedTools: ["shout"] }));
  await asked.opened;
  unwrap(await scene.agent.update(scene.house.workspaceId, { mcp: config() }));
  await passTime(scene.nova, 0);
  go.open();
  expect(await scene.until("ok")).toMatchObject({ tools: ["desk__shout", "desk__whisper"] });
  expect(lists).toBe(1);
});

test("a call that is under way is not cut by a change of the config or of a secret", async () => {
  const [called, go] = [createGate(), createGate()];
  const slow: TestTool = {
    name: "slow",
    answer: async () => {
      called.open();
      await go.opened;
      return "there";
    },
  };
  open(testMcpServer("2025-11-25", [slow]));
  const scene = await stage(config());
  await scene.until("ok");
  scripted([step(call("desk__slow", {})), step(text("Done."))]);
  await scene.space.post(scene.husam, "Do it");
  await called.opened;
  unwrap(await scene.agent.setSecrets(scene.house.workspaceId, {}));
  unwrap(await scene.agent.update(scene.house.workspaceId, { mcp: config({ headers: { "x-new": "1" } }) }));
  go.open();
  expect((await scene.outcome()).results).toEqual(["there"]);
});

test("[L9] each call of a server that gets a secret is on record, with its run", async () => {
  open(testMcpServer("2025-11-25", [shout]));
  const scene = await stage(config({ headers: { "x-key": `\${secret.KEY}` } }));
  const { workspaceId } = scene.house;
  const sealed = await seal(env, workspaceId, "KEY", "hush");
  unwrap(await scene.agent.setSecrets(workspaceId, { KEY: sealed }));
  await scene.until("ok");
  scripted([step(call("desk__shout", { text: "a" }), call("desk__shout", { text: "b" })), step(text("Done."))]);
  const { run, results } = await scene.ask();
  expect(results).toEqual(["A", "B"]);
  const uses = unwrap(await scene.agent.secretUses(workspaceId, "KEY", 0));
  const ofCalls = uses.filter(({ toolCallId }) => toolCallId !== undefined);
  expect(ofCalls).toMatchObject([1, 2].map(() => ({ kind: "mcp", by: "desk", runId: run.id, times: 1 })));
});

test("[R2] [R4] a run whose server's tool has acted is not begun anew when its model fails", async () => {
  let paid = 0;
  const pay: TestTool = {
    name: "pay",
    answer: () => {
      paid += 1;
      return "paid";
    },
  };
  open(testMcpServer(revisions[0], [pay]));
  const scene = await stage(config());
  await scene.until("ok");
  const model = scripted([
    step(call("desk__pay", {})),
    ...Array.from({ length: 3 }, () => step(call("fly", {}))),
    step(text("Hello.")),
  ]);
  const { run } = await scene.ask();
  expect(run).toMatchObject({ status: "failed", error: { code: "model_nonsense" } });
  expect(await inboxOf(scene.house.workspaceId, scene.nova)).toMatchObject([{ status: "dead" }]);
  await scene.ask(2);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain("desk__pay");
  expect(paid).toBe(1);
});
