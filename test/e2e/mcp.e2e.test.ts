import { afterAll, expect, test, vi } from "vitest";
import type { Agent } from "../../src/protocol/agent.ts";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import type { McpStatus } from "../../src/protocol/tool.ts";
import { testMcpServer } from "../support/mcp-server.ts";
import { houseForFile, modelForFile } from "./support/for-file.ts";
import { everything, listenForMcp, type McpListener } from "./support/mcp-listener.ts";

/** Agents of a real server use real MCP servers over loopback: the protocol's reference server, and its current library. */
const listeners: McpListener[] = [];
afterAll(() => Promise.all(listeners.map((listener) => listener.kill())));
const [house, fake] = await Promise.all([houseForFile(), modelForFile()]);
const husam = await house.addPerson("Husam");

const listening = async (answer: (request: Request) => Promise<Response>): Promise<McpListener> => {
  const listener = await listenForMcp(answer);
  listeners.push(listener);
  return listener;
};

const toolCall = (name: string, input: Record<string, string | number>) => ({
  toolCalls: [{ name, arguments: input }],
});

const stage = async (name: string, mcp: object) => {
  const model = { provider: "openai-compatible", name, baseUrl: fake.baseUrl };
  const agentId = await house.addAgent({ name, model, mcp: { servers: [{ name: "desk", ...mcp }] } });
  const spaceId = await house.addSpace(name, [husam.id, agentId]);
  const status = async (): Promise<McpStatus | undefined> =>
    (await house.api.get<{ agent: Agent }>(`/v1/agents/${agentId}`)).agent.mcp?.[0];
  return {
    status,
    until: (is: (now: McpStatus) => boolean) =>
      vi.waitFor(
        async () => {
          const now = await status();
          if (!now || !is(now)) throw new Error(JSON.stringify(now));
          return now;
        },
        { timeout: 30_000, interval: 50 },
      ),
    /** Asks, lets the model do these steps, and answers the run. */
    ask: async (text: string, steps: ReturnType<typeof toolCall>[]): Promise<Run> => {
      const page = () => house.api.get<{ items: Run[] }>(`/v1/agents/${agentId}/runs`);
      const { length } = (await page()).items;
      fake.script([toolCall("enter_space", { spaceId }), ...steps, { text: "Done." }], name);
      await husam.api.post(`/v1/spaces/${spaceId}/messages`, { text });
      const id = await vi.waitFor(
        async () => {
          const [newest, ...before] = (await page()).items;
          if (!newest || before.length < length || newest.status === "running") throw new Error("it still runs");
          return newest.id;
        },
        { timeout: 30_000, interval: 50 },
      );
      return (await house.api.get<{ run: Run }>(`/v1/agents/${agentId}/runs/${id}`)).run;
    },
    texts: async () =>
      (await husam.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`)).items.map(
        (message) => message.text,
      ),
  };
};

const outputOf = (run: Run, toolName: string): unknown =>
  run.steps.flatMap((step) => step.toolCalls).find((call) => call.name === toolName)?.output;

test("an agent uses an MCP tool, survives the server's death in a call, and uses it again", async () => {
  const reference = everything();
  const called = Promise.withResolvers<void>();
  const listener = await listening(async (request) => {
    const body = await request.clone().text();
    if (body.includes('"trigger-long-running-operation"') && body.includes("tools/call")) called.resolve();
    return reference.answer(request);
  });
  const scene = await stage("Adder", { url: listener.url });
  const status = await scene.until(({ state }) => state === "ok");
  expect(status.protocolVersion).toBe("2025-11-25");
  expect(status.tools).toEqual(expect.arrayContaining(["desk__echo", "desk__get-sum", "desk__get-structured-content"]));

  const first = await scene.ask("What is 2 and 3?", [
    toolCall("desk__get-sum", { a: 2, b: 3 }),
    toolCall("send_message", { text: "It is 5." }),
  ]);
  expect(first).toMatchObject({ status: "completed" });
  expect(outputOf(first, "desk__get-sum")).toBe("The sum of 2 and 3 is 5.");
  expect(await scene.texts()).toContain("It is 5.");

  const second = scene.ask("Take your time", [
    toolCall("desk__trigger-long-running-operation", { duration: 60, steps: 2 }),
    toolCall("send_message", { text: "It went away." }),
  ]);
  await called.promise;
  await listener.kill();
  reference.forgetSessions();
  expect(await second).toMatchObject({ status: "completed" });
  expect(outputOf(await second, "desk__trigger-long-running-operation")).toMatchObject({
    success: false,
    error: { code: "unavailable" },
  });
  expect(await scene.texts()).toContain("It went away.");
  await scene.until(({ state }) => state === "failing");

  await listener.start();
  await scene.until(({ state }) => state === "ok");
  const third = await scene.ask("And 3 and 4?", [toolCall("desk__get-sum", { a: 3, b: 4 })]);
  expect(outputOf(third, "desk__get-sum")).toBe("The sum of 3 and 4 is 7.");
});

test("a server of the current revision, with a secret header, adds a tool while it runs", async () => {
  const secret = "a-token-that-nobody-may-see";
  const written = await fetch(`${house.url}/v1/workspace/secrets/DESK`, {
    method: "PUT",
    headers: { authorization: `Bearer ${house.secretKey}`, "content-type": "application/json" },
    body: JSON.stringify({ value: secret }),
  });
  expect(written.status).toBe(204);
  const shout = {
    name: "shout",
    answer: ({ text = "" }: { text?: string | undefined }) => `${text.toUpperCase()} ${secret}`,
  };
  const server = testMcpServer("2026-07-28", [shout]);
  const listener = await listening((request) => server.fetch(request));
  const scene = await stage("Shouter", { url: listener.url, headers: { Authorization: `Bearer \${secret.DESK}` } });
  expect(await scene.until(({ state }) => state === "ok")).toMatchObject({ protocolVersion: "2026-07-28" });
  const first = await scene.ask("Say it", [toolCall("desk__shout", { text: "hello" })]);
  expect(outputOf(first, "desk__shout")).toBe("HELLO [redacted]");
  expect(server.requests.length).toBeGreaterThan(3);
  expect(new Set(server.requests.map(({ headers }) => headers.get("authorization")))).toEqual(
    new Set([`Bearer ${secret}`]),
  );

  server.setTools([shout, { name: "whisper", answer: ({ text = "" }) => text.toLowerCase() }]);
  await scene.until(({ tools }) => tools.length === 2);
  const second = await scene.ask("Say it softly", [toolCall("desk__whisper", { text: "HELLO" })]);
  expect(outputOf(second, "desk__whisper")).toBe("hello");
});
