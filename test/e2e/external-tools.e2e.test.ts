import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import type { Run } from "../../src/protocol/run.ts";
import type { WaitingToolCall } from "../../src/protocol/tool-call.ts";
import type { FakeRequest, FakeStep } from "../support/fake-openai.ts";
import { houseForFile, modelForFile } from "./support/for-file.ts";

/** The workers of docs/external-tools.md, as files that are run: an agent asks, a worker answers, the space hears. */
type Asked = { orderId: string; key: string };

/** The order system that the workers ask. What `holds` names is not answered before `release`. */
const orders = { asked: [] as Asked[], holds: new Set<string>(), held: [] as (() => void)[] };
const release = (): void => {
  for (const answer of orders.held.splice(0)) answer();
};

const children: ChildProcess[] = [];
const toolSecret = `whsec_${Buffer.from("a secret of the tool's server").toString("base64")}`;

/** Asks for the order that the person named, then says how it stands. */
const clerk = ({ body }: FakeRequest): FakeStep => {
  const text = JSON.stringify(body.messages);
  const [orderId = ""] = /order-\d+/.exec(text.slice(text.lastIndexOf("Where is"))) ?? [];
  const last = JSON.stringify(body.messages.at(-1));
  if (last.includes("delivered")) return { text: "Said." };
  const state = /(shipped from [A-Z][a-z]+)/.exec(last)?.[1];
  if (state !== undefined)
    return { toolCalls: [{ name: "send_message", arguments: { text: `${orderId}: ${state}` } }] };
  return { toolCalls: [{ name: "order_status", arguments: { orderId } }] };
};

const answerOrder = (response: ServerResponse): void =>
  void response.writeHead(200, { "content-type": "application/json" }).end('{"state":"shipped from Bremen"}');

const [house, fake] = await Promise.all([houseForFile(), modelForFile(clerk)]);
const person = await house.addPerson("Husam");
await house.api.put("/v1/workspace/secrets/ORDER_DESK", { value: toolSecret });
const orderServer = createServer((request, response) => {
  const orderId = (request.url ?? "").split("/").at(-1) ?? "";
  orders.asked.push({ orderId, key: String(request.headers["idempotency-key"]) });
  if (!orders.holds.delete(orderId)) return answerOrder(response);
  orders.held.push(() => answerOrder(response));
});
orderServer.listen(0, "127.0.0.1");
await once(orderServer, "listening");
const ordersUrl = `http://127.0.0.1:${(orderServer.address() as AddressInfo).port}`;

const end = async (child: ChildProcess): Promise<void> => {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, "close") : undefined;
  child.kill("SIGKILL");
  await ended;
};

afterEach(async () => {
  release();
  await Promise.all(children.splice(0).map(end));
});

afterAll(() => {
  orderServer.closeAllConnections();
  orderServer.close();
});

/** Runs a file of docs/examples as a process of its own. `lines` is what it has printed. */
const run = (file: string, variables: Record<string, string>): { child: ChildProcess; lines: string[] } => {
  const child = spawn(process.execPath, [`docs/examples/${file}`], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      COLLOQUY_URL: house.url,
      COLLOQUY_KEY: house.secretKey,
      ORDERS_URL: ordersUrl,
      ...variables,
    },
  });
  children.push(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  return { child, lines };
};

const startPushServer = async (soonMs: number): Promise<{ url: string; lines: string[] }> => {
  const { lines } = run("push-server.ts", { TOOL_SECRET: toolSecret, SOON_MS: String(soonMs), PORT: "0" });
  const address = await vi.waitFor(() => JSON.parse(lines[0] ?? "") as AddressInfo, { timeout: 10_000 });
  return { url: `http://127.0.0.1:${address.port}/tools`, lines };
};

type Desk = { agentId: string; ask(orderId: string): Promise<void>; messages(): Promise<Message[]> };

/** A space with an agent whose tool this is, and a person who asks it for orders. */
const openDesk = async (name: string, tool: object = {}): Promise<Desk> => {
  const orderStatus = {
    name: "order_status",
    description: "How an order stands",
    executionType: "external",
    inputSchema: { type: "object", properties: { orderId: { type: "string" } }, required: ["orderId"] },
    ...tool,
  };
  const model = { provider: "openai-compatible", name: "clerk", baseUrl: fake.baseUrl };
  const agentId = await house.addAgent({ name, continuity: "timeline", model, tools: [orderStatus] });
  const spaceId = await house.addSpace(name, [person.id, agentId]);
  return {
    agentId,
    ask: (orderId) => person.api.post(`/v1/spaces/${spaceId}/messages`, { text: `Where is ${orderId}?` }),
    messages: async () => (await person.api.get<{ items: Message[] }>(`/v1/spaces/${spaceId}/messages`)).items,
  };
};

const told = (desk: Desk, orderId: string): Promise<Message[]> =>
  vi.waitFor(
    async () => {
      const messages = await desk.messages();
      expect(messages.at(-1)?.text).toBe(`${orderId}: shipped from Bremen`);
      return messages;
    },
    { timeout: 30_000, interval: 100 },
  );

const waiting = async (): Promise<WaitingToolCall[]> =>
  (await house.api.get<{ items: WaitingToolCall[] }>("/v1/tool-calls")).items;

/** The space shows the question, the call with its result, and the answer, each once. */
const expectWholeStory = async (desk: Desk, orderId: string): Promise<string> => {
  const [question, shown, answer, ...more] = await told(desk, orderId);
  expect(more).toEqual([]);
  expect(question?.text).toBe(`Where is ${orderId}?`);
  expect(answer?.sender.type).toBe("agent");
  expect(shown?.toolCall).toMatchObject({
    status: "complete",
    input: { orderId },
    output: { state: "shipped from Bremen" },
  });
  const { items } = await house.api.get<{ items: Run[] }>(`/v1/agents/${desk.agentId}/runs`);
  expect(items).toHaveLength(1);
  return shown?.toolCall?.id ?? "";
};

test("a polling worker claims a call and answers it, and the space shows the result", async () => {
  const desk = await openDesk("Pulled");
  const { lines } = run("pull-worker.ts", {});
  await desk.ask("order-1");
  const toolCallId = await expectWholeStory(desk, "order-1");
  expect(orders.asked).toContainEqual({ orderId: "order-1", key: toolCallId });
  await vi.waitFor(() => expect(lines).toEqual([`order_status ${toolCallId}: 200`]));
  expect(await waiting()).toEqual([]);
});

test("[R2] a call of a worker that was killed after its claim is answered once by another", async () => {
  const desk = await openDesk("Lost and found", { timeoutMs: 60_000 });
  orders.holds.add("order-2");
  const first = run("pull-worker.ts", { HOLDER: "first", LEASE_SECONDS: "3" });
  await desk.ask("order-2");
  const askedFor = (): Asked[] => orders.asked.filter(({ orderId }) => orderId === "order-2");
  await vi.waitFor(() => expect(askedFor()).toHaveLength(1), { timeout: 20_000 });
  await end(first.child);
  const [call] = await vi.waitFor(async () => {
    const calls = await waiting();
    expect(calls[0]?.claim?.holder).toBe("first");
    return calls;
  });
  const leaseEndsAt = Date.parse(call?.claim?.until ?? "");
  const second = run("pull-worker.ts", { HOLDER: "second", LEASE_SECONDS: "3" });
  await vi.waitFor(() => expect(askedFor()).toHaveLength(2), { timeout: 20_000 });
  expect(Date.now()).toBeGreaterThanOrEqual(leaseEndsAt);
  const toolCallId = await expectWholeStory(desk, "order-2");
  expect(askedFor().map(({ key }) => key)).toEqual([toolCallId, toolCallId]);
  await vi.waitFor(() => expect(second.lines).toEqual([`order_status ${toolCallId}: 200`]));
  expect(first.lines).toEqual([]);
});

test("a called server answers in its response", async () => {
  const { url, lines } = await startPushServer(5000);
  const desk = await openDesk("Pushed", { execution: { url, secret: "ORDER_DESK" } });
  await desk.ask("order-3");
  const toolCallId = await expectWholeStory(desk, "order-3");
  expect(orders.asked).toContainEqual({ orderId: "order-3", key: toolCallId });
  expect(lines).toHaveLength(1);
  expect(await waiting()).toEqual([]);
});

test("a slow called server answers later, and is called once", async () => {
  const { url, lines } = await startPushServer(10);
  const desk = await openDesk("Later", { execution: { url, secret: "ORDER_DESK" } });
  orders.holds.add("order-4");
  await desk.ask("order-4");
  await vi.waitFor(async () => expect((await desk.messages()).at(-1)?.toolCall?.status).toBe("running"), {
    timeout: 20_000,
  });
  await vi.waitFor(() => expect(orders.held).toHaveLength(1), { timeout: 20_000 });
  await vi.waitFor(async () => {
    const { items } = await house.api.get<{ items: Run[] }>(`/v1/agents/${desk.agentId}/runs`);
    expect(items[0]?.status).toBe("waiting_tool");
  });
  release();
  const toolCallId = await expectWholeStory(desk, "order-4");
  expect(orders.asked.filter(({ orderId }) => orderId === "order-4")).toHaveLength(1);
  await vi.waitFor(() => expect(lines.at(-1)).toBe(`order_status ${toolCallId}: 200`));
});

test("[S5] a called server refuses requests that its secret did not sign", async () => {
  const { url } = await startPushServer(5000);
  const body = JSON.stringify({
    type: "tool_call",
    data: { toolCallId: "tc_1", name: "order_status", input: { orderId: "order-5" } },
  });
  const headers = { "webhook-id": "tc_1", "webhook-timestamp": String(Math.floor(Date.now() / 1000)) };
  for (const forged of [
    {},
    { "webhook-signature": "v1,AAAA" },
    { "webhook-signature": "v1a,", "webhook-timestamp": "x" },
  ]) {
    const answer = await fetch(url, { method: "POST", body, headers: { ...headers, ...forged } });
    expect(answer.status).toBe(401);
  }
  expect(orders.asked.filter(({ orderId }) => orderId === "order-5")).toEqual([]);
});
