import { env } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { openRoot, rootHeaderMs, rootSealer } from "../../src/auth/root-header.ts";
import type { Root } from "../../src/protocol/rpc.ts";
import { WaitingToolCall } from "../../src/protocol/tool-call.ts";
import { armFault } from "../../src/shared/fault.ts";
import { compartmentId } from "../../src/shared/ids.ts";
import { ended, ids, inboxOf, passTime, runsOf, undoLater } from "../agent/fixture.ts";
import { call, expectOk, openHouse } from "../support/house.ts";
import { revisions, testMcpServer } from "../support/mcp-server.ts";
import { call as callTool, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { deliver, signed } from "../support/webhook-sender.ts";
import { problemIn } from "./operations.ts";

const restore = undoLater();
afterEach(() => vi.unstubAllGlobals());

const gatewayUrl = "https://gateway.example/ping";
const Accepted = z.object({ eventId: z.string() });
const Claimed = z.object({ toolCall: WaitingToolCall });
const Calls = z.object({ items: z.array(WaitingToolCall) });
const maxWakesPerRoot = 4;

/** A gateway that is anybody's, and does this with each request of the tool. */
const gateway = (answer: (request: Request) => Promise<unknown>): string[] => {
  const roots: string[] = [];
  vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
    const request = new Request(address, init);
    roots.push(request.headers.get("colloquy-root") ?? "none");
    await answer(request);
    return Response.json({ done: true });
  });
  return roots;
};

const pingTool = (more: object = {}) => ({
  ...{ name: "ping", description: "Pings.", executionType: "gateway", visible: false, ...more },
  execution: { url: gatewayUrl, method: "POST", body: {} },
});

/** An agent that pings the gateway in each of its runs, and a person who speaks with it. */
const openChain = async (settings: Record<string, unknown> = {}, tool: object = pingTool()) => {
  restore.push(
    installModel(
      scriptedModel(({ prompt }) => {
        const begun = prompt.findLastIndex((message) => JSON.stringify(message).includes("ACTIVE SPACE: "));
        const hasPinged = prompt.slice(begun).some(({ role }) => role === "tool");
        return hasPinged ? step(text("Done.")) : step(callTool("ping", {}));
      }),
    ),
  );
  const house = await openHouse();
  const ann = await house.person("Ann");
  const { id: agentId } = await house.agent({
    ...{ name: "Analyst", tools: [tool], limits: { maxWakesPerRoot }, ...settings },
  });
  const agent = { id: agentId, name: "Analyst", type: "agent" } as const;
  const space = await house.space("Alpha", [ann, agent]);
  const trigger = (headers: Record<string, string> = {}, bearer = house.secretKey) =>
    call(`/v1/agents/${agentId}/trigger`, { bearer, body: { serviceName: "gateway", payload: 1 }, headers });
  return { house, ann, agent, space, trigger, runs: () => runsOf(house.workspaceId, agent) };
};

const Created = z.object({ hookId: z.string(), secret: z.string() });
const hookOf = ({ secretKey }: { secretKey: string }, { id }: { id: string }) =>
  expectOk(
    Created,
    call(`/v1/agents/${id}/hooks`, { bearer: secretKey, body: { name: "sender", scheme: "standard" } }),
  );

const rootOf = (header: string | null): Record<string, string> => ({ "colloquy-root": header ?? "" });

describe.each(["consciousness", "timeline"] as const)("a %s whose tool has a server trigger it", (continuity) => {
  test("[C9] [B1] a loop through what a service says ends where its root may wake nobody any more", async () => {
    const chain = await openChain({ continuity });
    const { secretKey: bearer, service } = chain.house;
    const bot = await service("Gateway");
    await call(`/v1/spaces/${chain.space.id}/members`, { bearer, body: { entityId: bot.id } });
    const said: number[] = [];
    gateway(async (request) => {
      if (said.length > 3 * maxWakesPerRoot) return;
      const headers = rootOf(request.headers.get("colloquy-root"));
      const options = { bearer: bot.token, body: { text: "@Analyst done" }, headers };
      said.push((await call(`/v1/spaces/${chain.space.id}/messages`, options)).status);
    });
    const { id } = await chain.house.say(chain.space.id, chain.ann, "@Analyst go");
    await vi.waitFor(() => expect(said).toHaveLength(maxWakesPerRoot));
    await ended(chain.house.workspaceId, chain.agent, maxWakesPerRoot);
    expect(new Set((await chain.runs()).flatMap(({ roots }) => roots))).toEqual(new Set([id]));
  });

  test("[C9] [B1] so does one that leaves a confidential space and comes back there", async () => {
    const { house, ann, agent } = await openChain({ continuity }, pingTool({ confidential: "allowed" }));
    const bot = await house.service("Gateway");
    const board = await house.space("Board", [ann, agent, bot], { confidential: true });
    const said: number[] = [];
    gateway(async (request) => {
      if (said.length > 3 * maxWakesPerRoot) return;
      const headers = rootOf(request.headers.get("colloquy-root"));
      const options = { bearer: bot.token, body: { text: "@Analyst done" }, headers };
      said.push((await call(`/v1/spaces/${board.id}/messages`, options)).status);
    });
    const { id } = await house.say(board.id, ann, "@Analyst go");
    const compartment = { ...agent, id: compartmentId(ids, agent.id, board.id) };
    await vi.waitFor(() => expect(said.length).toBeGreaterThanOrEqual(maxWakesPerRoot));
    const runs = await ended(house.workspaceId, compartment, maxWakesPerRoot);
    const roots = new Set(runs.flatMap((run) => run.roots));
    expect([said, roots.size]).toEqual([said.map(() => 201).slice(0, maxWakesPerRoot), 1]);
    expect(roots).not.toContain(id);
  });

  test("[C9] [B1] so does one that comes back to its space when that is confidential", async () => {
    const chain = await openChain({ continuity }, pingTool({ confidential: "allowed" }));
    const { house, ann, agent, space } = chain;
    const bot = await house.service("Gateway");
    await call(`/v1/spaces/${space.id}/members`, { bearer: house.secretKey, body: { entityId: bot.id } });
    const headers = gateway(async () => undefined);
    const { id } = await house.say(space.id, ann, "@Analyst go");
    await ended(house.workspaceId, agent, 1);
    const confidential = { method: "PATCH", bearer: house.secretKey, body: { confidential: true } };
    expect((await call(`/v1/spaces/${space.id}`, confidential)).status).toBe(200);
    const back = { bearer: bot.token, body: { text: "@Analyst done" }, headers: rootOf(headers[0] ?? "") };
    expect((await call(`/v1/spaces/${space.id}/messages`, back)).status).toBe(201);
    const compartment = { ...agent, id: compartmentId(ids, agent.id, space.id) };
    const runs = await ended(house.workspaceId, compartment, 1);
    const [, again] = await Promise.all(headers.map((one) => openRoot(env, house.workspaceId, one, Date.now())));
    expect([runs[0]?.roots, again?.id]).toEqual([[id], id]);
  });

  test("[C9] [B1] so does one through a worker that asks for its calls", async () => {
    const tool = { name: "ping", description: "Pings.", executionType: "external", visible: false };
    const { house, ann, agent, space, trigger, runs } = await openChain({ continuity }, tool);
    const bearer = house.secretKey;
    const { id } = await house.say(space.id, ann, "Go");
    const known = new Set<string>();
    for (let lap = 1; lap <= maxWakesPerRoot; lap += 1) {
      const toolCallId = await vi.waitFor(async () => {
        const { items } = await expectOk(Calls, call("/v1/tool-calls", { bearer }));
        const fresh = items.find((each) => !known.has(each.toolCallId));
        if (!fresh) throw new Error(`no call waits in lap ${lap}`);
        return fresh.toolCallId;
      }, 5000);
      known.add(toolCallId);
      const claim = { bearer, body: { holder: "worker" } };
      const { toolCall } = await expectOk(Claimed, call(`/v1/tool-calls/${toolCallId}/claim`, claim));
      await call(`/v1/tool-calls/${toolCallId}/result`, { bearer, body: { result: "done" } });
      await ended(house.workspaceId, agent, lap);
      expect((await trigger(rootOf(toolCall.root ?? null))).status).toBe(202);
    }
    expect(new Set((await runs()).flatMap(({ roots }) => roots))).toEqual(new Set([id]));
    expect(await inboxOf(house.workspaceId, agent)).toMatchObject([{ type: "service", wakes: false }]);
  });

  test("[C9] [B1] a loop through HTTP ends where its root may wake nobody any more", async () => {
    const chain = await openChain({ continuity });
    const answers: number[] = [];
    const roots = gateway(async (request) => {
      // A loop without an end would outlive the test.
      if (answers.length > 3 * maxWakesPerRoot) return;
      answers.push((await chain.trigger(rootOf(request.headers.get("colloquy-root")))).status);
    });
    const { id } = await chain.house.say(chain.space.id, chain.ann, "Go");
    await vi.waitFor(() => expect(answers).toHaveLength(maxWakesPerRoot));
    const runs = await ended(chain.house.workspaceId, chain.agent, maxWakesPerRoot);
    expect(runs).toHaveLength(maxWakesPerRoot);
    expect(new Set(answers)).toEqual(new Set([202]));
    const opened = await Promise.all(roots.map((header) => openRoot(env, chain.house.workspaceId, header, Date.now())));
    expect(new Set(opened.map((root) => root?.id))).toEqual(new Set([id]));
    expect(new Set(runs.flatMap((run) => run.roots))).toEqual(new Set([id]));
    // The last one came in, and is read with what wakes the agent next.
    expect(await inboxOf(chain.house.workspaceId, chain.agent)).toMatchObject([{ type: "service", wakes: false }]);
  });
});

test("[C9] [B1] a loop through plans that a server sets ends with the wakes of its root", async () => {
  const chain = await openChain({ continuity: "timeline" });
  const { agent, house } = chain;
  const answers: number[] = [];
  gateway(async (request) => {
    const headers = rootOf(request.headers.get("colloquy-root"));
    const body = { name: "Again", instruction: "Ping", runAfter: "1 minute" };
    const options = { method: "PUT", bearer: house.secretKey, body, headers };
    answers.push((await call(`/v1/agents/${agent.id}/plans/again`, options)).status);
  });
  const { id } = await house.say(chain.space.id, chain.ann, "Go");
  for (let runs = 1; runs <= maxWakesPerRoot; runs += 1) {
    await ended(house.workspaceId, agent, runs);
    await passTime(agent, 2 * 60_000);
  }
  const runs = await ended(house.workspaceId, agent, maxWakesPerRoot);
  expect(answers).toEqual(runs.map(() => 200));
  expect(runs).toHaveLength(maxWakesPerRoot);
  expect(new Set(runs.flatMap(({ roots }) => roots))).toEqual(new Set([id]));
});

test("[C9] [C17] a chain that leaves a confidential space by a tool names no message of it", async () => {
  const chain = await openChain({ continuity: "timeline" }, pingTool({ confidential: "allowed" }));
  const board = await chain.house.space("Board", [chain.ann, chain.agent], { confidential: true });
  const headers: string[] = [];
  gateway(async (request) => {
    if (headers.length > 3 * maxWakesPerRoot) return;
    headers.push(request.headers.get("colloquy-root") ?? "");
    await chain.trigger(rootOf(headers.at(-1) ?? ""));
  });
  const { id } = await chain.house.say(board.id, chain.ann, "Go");
  const runs = await ended(chain.house.workspaceId, chain.agent, maxWakesPerRoot);
  const roots = new Set(runs.flatMap((run) => run.roots));
  expect([runs.length, roots.size]).toEqual([maxWakesPerRoot, 1]);
  expect(roots).not.toContain(id);
  expect(await inboxOf(chain.house.workspaceId, chain.agent)).toMatchObject([{ wakes: false }]);
});

test("[C9] [B1] what one message in a confidential space has its agents send is one chain", async () => {
  const tool = pingTool({ confidential: "allowed" });
  const { house, ann, agent } = await openChain({ continuity: "timeline" }, tool);
  const second = await house.agent({ name: "Second", continuity: "timeline", tools: [tool] });
  const members = [ann, agent, { ...second, type: "agent" } as const];
  const board = await house.space("Board", members, { confidential: true });
  const headers = gateway(async () => undefined);
  await house.say(board.id, ann, "@Analyst @Second go");
  await vi.waitFor(() => expect(headers).toHaveLength(2));
  const roots = await Promise.all(headers.map((one) => openRoot(env, house.workspaceId, one, Date.now())));
  expect(new Set(roots.map((root) => root?.id)).size).toBe(1);
});

test("[C9] [C17] nor does one that another agent's plan began name its part there", async () => {
  const { house, ann, agent } = await openChain({ continuity: "timeline" }, pingTool({ confidential: "allowed" }));
  const { id } = await house.agent({ name: "Planner", continuity: "timeline" });
  const planner = { id, name: "Planner", type: "agent" } as const;
  const board = await house.space("Board", [ann, agent, planner], { confidential: true });
  const say = scriptedModel(({ prompt }) => {
    if (prompt.at(-1)?.role === "tool") return step(text("Done."));
    const isPlanner = JSON.stringify(prompt[0]).includes('\\"Planner\\"');
    return step(isPlanner ? callTool("send_message", { text: "@Analyst go" }) : callTool("ping", {}));
  });
  restore.push(installModel(say));
  const roots = gateway(async () => undefined);
  const body = { name: "Go", instruction: "Say go", runAfter: "1 minute" };
  const planned = { method: "PUT", bearer: house.secretKey, body };
  const plan = () => call(`/v1/agents/${planner.id}/plans/go?space=${board.id}`, planned);
  await vi.waitFor(async () => expect((await plan()).status).toBe(200));
  await passTime({ ...planner, id: compartmentId(ids, planner.id, board.id) }, 2 * 60_000);
  await vi.waitFor(() => expect(roots).toHaveLength(1));
  const { id: root = "" } = (await openRoot(env, house.workspaceId, roots[0], Date.now())) ?? {};
  expect([ids.isIssued("evt", root), ids.isCompartment(ids.ownerOf("evt", root))]).toEqual([true, false]);
});

describe("the header Colloquy-Root", () => {
  const root: Root = { id: "msg_1", kind: "person", by: "ent_1" };
  const [own, other] = [ids.mint("wsp"), ids.mint("wsp")];
  const sealedNow = (workspaceId: string, { id = root.id, agoMs = 0 } = {}) =>
    rootSealer(env, workspaceId)({ ...root, id }, Date.now() - agoMs);

  test("[C9] is the same for the same call of a root, opaque, and opens in its workspace alone", async () => {
    const at = 1_800_000_000_000;
    const seal = rootSealer(env, own);
    const sealed = seal(root, at);
    expect(seal({ ...root }, at)).toBe(sealed);
    expect(seal({ ...root, by: "ent_2" }, at)).not.toBe(sealed);
    expect(rootSealer(env, other)(root, at)).not.toBe(sealed);
    expect(Buffer.from(sealed.split(".")[2] ?? "", "base64url").toString()).not.toContain("ent_1");
    expect(await openRoot(env, own, sealed, at)).toEqual(root);
    const bare = { id: "evt_1", kind: "service" } as const;
    expect(await openRoot(env, own, seal(bare, at), at)).toEqual(bare);
    await expect(openRoot(env, other, sealed, at)).rejects.toMatchObject({ code: "invalid_request" });
    await expect(
      openRoot({ SIGNING_SECRET: "another secret of thirty-two bytes" }, own, sealed, at),
    ).rejects.toMatchObject({
      code: "invalid_request",
    });
  });

  test("[C9] [C10] is refused a day after its call was begun, and says what to do", async () => {
    gateway(async () => undefined);
    const { house, agent, trigger } = await openChain();
    const hook = await hookOf(house, agent);
    const old = rootOf(sealedNow(house.workspaceId, { agoMs: rootHeaderMs }));
    const sent = signed.standard(hook.secret, "msg_1", "{}");
    const delivery = deliver(hook.hookId, { ...sent, headers: { ...sent.headers, ...old } });
    for (const answer of [await trigger(old), await delivery]) {
      const problem = await problemIn(answer);
      expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
      expect(problem.detail).toMatch(/rootHeaderMs \(24 h\): leave it out/);
    }
    expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
    const young = rootOf(sealedNow(house.workspaceId, { agoMs: rootHeaderMs - 60_000 }));
    await expectOk(Accepted, trigger(young));
    expect(await ended(house.workspaceId, agent, 1)).toMatchObject([{ roots: [root.id] }]);
  });

  test("[C10] [B1] sent again and again to a full hour, no more wait than its root may wake", async () => {
    gateway(async () => undefined);
    const maxRunsPerHour = maxWakesPerRoot + 2;
    const limits = { maxWakesPerRoot, maxRunsPerHour };
    const { house, agent, trigger } = await openChain({ limits, continuity: "timeline" });
    for (let count = 1; count <= maxRunsPerHour; count += 1) {
      await expectOk(Accepted, trigger());
      await ended(house.workspaceId, agent, count);
    }
    const headers = rootOf(sealedNow(house.workspaceId));
    for (let count = 1; count <= 2 * maxWakesPerRoot; count += 1) await expectOk(Accepted, trigger(headers));
    const waking = async () => (await inboxOf(house.workspaceId, agent)).filter(({ wakes }) => wakes).length;
    expect(await waking()).toBe(maxWakesPerRoot);
    // Headers of many roots have no more wait than an hour has runs.
    const codes: number[] = [];
    for (const id of ["msg_2", "msg_3", "msg_4", "msg_5"]) {
      codes.push((await trigger(rootOf(sealedNow(house.workspaceId, { id })))).status);
    }
    expect(codes).toEqual([202, 202, 429, 429]);
    expect(await waking()).toBe(maxRunsPerHour);
  });

  test("[C9] [S4] forged or foreign, trigger, plan and webhook refuse it, and nothing changes", async () => {
    gateway(async () => undefined);
    const { house, agent, trigger } = await openChain();
    const elsewhere = await openHouse();
    const own = sealedNow(house.workspaceId);
    const bent = `${own.slice(0, -2)}${own.endsWith("AA") ? "BB" : "AA"}`;
    const foreign = sealedNow(elsewhere.workspaceId);
    const hook = await hookOf(house, agent);
    for (const forged of ["", "x", "v1..", "v1.AAAA.AAAA", "v2.AAAA.AAAA", bent, foreign, "a".repeat(1001)]) {
      expect(await problemIn(await trigger(rootOf(forged)))).toMatchObject({ status: 400, code: "invalid_request" });
      const [bearer, body] = [house.secretKey, { name: "Again", instruction: "Ping", runAfter: "1 minute" }];
      const options = { method: "PUT", bearer, body, headers: rootOf(forged) };
      const put = await call(`/v1/agents/${agent.id}/plans/again`, options);
      expect(await problemIn(put)).toMatchObject({ status: 400, code: "invalid_request" });
      const { headers, ...sent } = signed.standard(hook.secret, "msg_1", "{}");
      const delivered = await deliver(hook.hookId, { ...sent, headers: { ...headers, ...rootOf(forged) } });
      const problem = await problemIn(delivered);
      expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
      if (forged.length > 9) expect(JSON.stringify(problem)).not.toContain(forged);
    }
    expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
    expect(await runsOf(house.workspaceId, agent)).toEqual([]);
    expect((await deliver(hook.hookId, signed.standard(hook.secret, "msg_1", "{}"))).status).toBe(202);
  });

  test("[C9] [D5] a trigger that comes again with its key is the same event", async () => {
    gateway(async () => undefined);
    const { house, agent, trigger, runs } = await openChain({ limits: { maxWakesPerRoot: 1 } });
    const headers = { ...rootOf(sealedNow(house.workspaceId)), "idempotency-key": "one" };
    const first = await expectOk(Accepted, trigger(headers));
    const [run] = await ended(house.workspaceId, agent, 1);
    expect(run?.roots).toEqual([root.id]);
    expect(await expectOk(Accepted, trigger(headers))).toEqual(first);
    expect(await inboxOf(house.workspaceId, agent)).toEqual([]);
    await expectOk(Accepted, trigger({ ...headers, "idempotency-key": "two" }));
    expect(await inboxOf(house.workspaceId, agent)).toMatchObject([{ wakes: false }]);
    expect(await runs()).toHaveLength(1);
  });

  test("[C9] [C10] without it a full hour refuses trigger and webhook; with it they wait", async () => {
    gateway(async () => undefined);
    const { house, agent, trigger } = await openChain({ limits: { maxRunsPerHour: 2 } });
    const hook = await hookOf(house, agent);
    for (const count of [1, 2]) {
      await expectOk(Accepted, trigger());
      await ended(house.workspaceId, agent, count);
    }
    const sent = signed.standard(hook.secret, "msg_1", "{}");
    for (const refused of [await trigger(), await deliver(hook.hookId, sent)]) {
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3500);
      const problem = await problemIn(refused);
      expect(problem).toMatchObject({ status: 429, code: "rate_limited" });
      expect(problem.detail).toContain("maxRunsPerHour (2)");
    }
    const chained = rootOf(sealedNow(house.workspaceId));
    await expectOk(Accepted, trigger(chained));
    await expectOk(Accepted, deliver(hook.hookId, { ...sent, headers: { ...sent.headers, ...chained } }));
    expect(await inboxOf(house.workspaceId, agent)).toMatchObject([{ wakes: true }, { wakes: true }]);
    expect(await runsOf(house.workspaceId, agent)).toHaveLength(2);
  });

  test("[C9] a webhook that brings it goes on in its root", async () => {
    gateway(async () => undefined);
    const { house, agent } = await openChain();
    const hook = await hookOf(house, agent);
    const { headers, ...sent } = signed.standard(hook.secret, "msg_1", "{}");
    const chained = rootOf(sealedNow(house.workspaceId));
    await expectOk(Accepted, deliver(hook.hookId, { ...sent, headers: { ...headers, ...chained } }));
    expect(await ended(house.workspaceId, agent, 1)).toMatchObject([{ roots: [root.id] }]);
  });

  test("[C9] [R3] a call that a crash cut sends the same bytes again", async () => {
    const sent = gateway(async () => undefined);
    const { house, ann, agent, space } = await openChain({}, pingTool({ idempotent: true }));
    const crashed = armFault("agent.after-effect");
    await house.say(space.id, ann, "Go");
    await crashed;
    await vi.waitFor(async () => {
      await passTime(agent, 6000);
      await ended(house.workspaceId, agent, 1);
    });
    expect(sent).toHaveLength(2);
    expect(new Set(sent).size).toBe(1);
  });

  test.each(revisions)("[C9] a call of an MCP server's tool brings it, and no other request (%s)", async (revision) => {
    const server = testMcpServer(revision, [{ name: "ping", description: "Pings.", answer: () => "pong" }]);
    const sent: { method: unknown; root: string | null }[] = [];
    vi.stubGlobal("fetch", async (address: string, init?: RequestInit) => {
      const request = new Request(address, init);
      const body = z.object({ method: z.unknown() }).safeParse(JSON.parse((await request.clone().text()) || "{}"));
      sent.push({ method: body.data?.method, root: request.headers.get("colloquy-root") });
      return server.fetch(request);
    });
    const mcp = { servers: [{ name: "desk", url: "http://localhost:4000/mcp", headers: {} }] };
    const { house, ann, agent, space } = await openChain({ mcp, tools: [] });
    await vi.waitFor(() => expect(sent.some(({ method }) => method === "tools/list")).toBe(true));
    restore.push(installModel(scriptedModel([step(callTool("desk__ping", {})), step(text("Done."))])));
    const { id, sender } = await house.say(space.id, ann, "Go");
    await ended(house.workspaceId, agent, 1);
    const calls = sent.filter(({ method }) => method === "tools/call");
    expect(calls).toHaveLength(1);
    expect(await openRoot(env, house.workspaceId, calls[0]?.root ?? "", Date.now())).toEqual({
      ...{ id, kind: "person", by: sender.id },
    });
    expect(sent.filter(({ method, root: chain }) => method !== "tools/call" && chain !== null)).toEqual([]);
  });

  test("[C9] a call that is sent to its own server brings it, and its answers go on in it", async () => {
    const roots = gateway(async () => undefined);
    const key = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
    const tool = {
      ...{ name: "ping", description: "Pings.", executionType: "external", visible: false },
      execution: { url: gatewayUrl, secret: "HOOK_KEY" },
    };
    const { house, ann, agent, space } = await openChain({ tools: [] });
    const at = { bearer: house.secretKey };
    await call("/v1/workspace/secrets/HOOK_KEY", { ...at, method: "PUT", body: { value: key } });
    await call(`/v1/agents/${agent.id}`, { ...at, method: "PATCH", body: { tools: [tool] } });
    const { id } = await house.say(space.id, ann, "Go");
    await vi.waitFor(() => expect(roots).toHaveLength(1));
    expect(await openRoot(env, house.workspaceId, roots[0], Date.now())).toEqual({ id, kind: "person", by: ann.id });
  });

  test("[C9] no tool's configuration may set it", async () => {
    const house = await openHouse();
    const tool = { ...pingTool(), execution: { ...pingTool().execution, headers: { "Colloquy-Root": "v1.a.b" } } };
    const refused = call("/v1/agents", { bearer: house.secretKey, body: { name: "Forger", tools: [tool] } });
    expect(await problemIn(await refused)).toMatchObject({ status: 400, code: "invalid_request" });
  });
});
