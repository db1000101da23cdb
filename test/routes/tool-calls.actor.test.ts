import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Run } from "../../src/protocol/run.ts";
import { AnsweredToolCall, WaitingToolCall } from "../../src/protocol/tool-call.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { agentStub, undoLater } from "../agent/fixture.ts";
import { call, expectOk, type House, ids, openHouse } from "../support/house.ts";
import { listOutsideCalls, outsideCall, outsideCaller } from "../support/outside-call.ts";
import { call as calls, installModel, scriptedModel, step, text } from "../support/scripted-model.ts";
import { problemIn } from "./operations.ts";

/** What servers do that execute `external` tools: list what waits, claim it, answer it. All of it over HTTP. */
const restore = undoLater();
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

const post = (house: House, toolCallId: string, verb: "claim" | "result", body: unknown): Promise<Response> =>
  call(`/v1/tool-calls/${toolCallId}/${verb}`, { bearer: house.secretKey, body });

const claim = (house: House, toolCallId: string, holder: string, leaseSeconds = 60): Promise<Response> =>
  post(house, toolCallId, "claim", { holder, leaseSeconds });

const answer = async (house: House, toolCallId: string, body: unknown) =>
  (await expectOk(z.object({ toolCall: AnsweredToolCall }), post(house, toolCallId, "result", body))).toolCall;

const newestRun = async (house: House, agentId: string): Promise<Run> => {
  const { items } = await expectOk(
    z.object({ items: z.array(Run) }),
    call(`/v1/agents/${agentId}/runs`, { bearer: house.secretKey }),
  );
  if (!items[0]) throw new Error("no run");
  return items[0];
};

const ended = (house: House, agentId: string): Promise<Run> =>
  vi.waitFor(async () => {
    const run = await newestRun(house, agentId);
    expect(run.status).toBe("completed");
    return run;
  });

const openCall = async (tool: object = {}) => {
  const house = await openHouse();
  const agentId = await outsideCaller(house, tool);
  return { house, agentId, made: await outsideCall(house, agentId) };
};

describe("the list of calls that wait for a server", () => {
  test("pages through all agents' calls once, oldest first, without those of other workspaces", async () => {
    const { house, agentId, made } = await openCall();
    const other = await outsideCaller(house);
    const all = [made, await outsideCall(house, other), await outsideCall(house, agentId)];
    await openCall();
    const wanted = all.map(({ toolCallId }) => toolCallId);
    const first = await listOutsideCalls(house, "?limit=2&status=waiting");
    expect(first.items.map(({ toolCallId }) => toolCallId)).toEqual(wanted.slice(0, 2));
    const rest = await listOutsideCalls(house, `?limit=2&cursor=${first.nextCursor}`);
    expect(rest).toMatchObject({ items: [{ toolCallId: wanted[2], agentId }], nextCursor: null });
    expect(made).toMatchObject({ name: "lookUp", input: { id: 7 }, agentId });
    expect(Date.parse(made.dueAt) - Date.parse(made.createdAt)).toBe(30_000);
  });

  test("loses the calls that were answered, and those of an agent that is gone", async () => {
    const { house, agentId, made } = await openCall();
    const other = await outsideCaller(house);
    await outsideCall(house, other);
    await answer(house, made.toolCallId, { result: 1 });
    await vi.waitFor(async () =>
      expect((await listOutsideCalls(house)).items.map((item) => item.agentId)).toEqual([other]),
    );
    await call(`/v1/agents/${other}`, { method: "DELETE", bearer: house.secretKey });
    expect((await listOutsideCalls(house)).items).toEqual([]);
    expect((await ended(house, agentId)).steps[0]?.toolCalls).toMatchObject([{ output: 1, status: "complete" }]);
  });
});

test("[L4] the list of waiting calls loses the words of a message that was deleted", async () => {
  const house = await openHouse();
  const words = "a lamp with seven zebras and one owl";
  const tool = { name: "order", description: "Orders", executionType: "external", inputSchema: { type: "object" } };
  const agent = await house.agent({ name: "Clerk", continuity: "timeline", tools: [tool] });
  restore.push(installModel(scriptedModel([step(calls("order", { what: words })), step(text("Ordered."))])));
  const ann = await house.person("Ann");
  const space = await house.space("Lab", [ann, agent]);
  const { id } = await house.say(space.id, ann, words);
  await vi.waitFor(async () =>
    expect((await listOutsideCalls(house)).items).toMatchObject([{ input: { what: words } }]),
  );
  await call(`/v1/spaces/${space.id}/messages/${id}`, { bearer: ann.token, method: "DELETE" });
  await vi.waitFor(async () => expect(JSON.stringify((await listOutsideCalls(house)).items)).not.toContain("zebras"));
});

test("[C19] pages for admins do not show by gaps that calls of a confidential space wait", async () => {
  const house = await openHouse();
  const [ada, { id: agentId }] = await Promise.all([house.person("Ada", "admin"), house.agent({ name: "Clerk" })]);
  const mindId = ids.compartment(agentId, ids.mint("spc"));
  const at = "2026-02-18T15:06:55.000Z";
  const note = async (owner: string): Promise<string> => {
    const toolCallId = ids.mintOwned("tc", owner);
    const made = { toolCallId, agentId, name: "pay", input: {}, createdAt: at, dueAt: at };
    unwrap(await env.WORKSPACE.getByName(house.workspaceId).noteToolCall(made, true));
    return toolCallId;
  };
  const made: string[] = [];
  for (const owner of [mindId, mindId, agentId, mindId, agentId, mindId]) made.push(await note(owner));
  const List = z.object({ items: z.array(WaitingToolCall), nextCursor: z.string().nullable() });
  const page = async (bearer: string, query: string) => {
    const { items, nextCursor } = await expectOk(List, call(`/v1/tool-calls?${query}`, { bearer }));
    return { told: items.map(({ toolCallId }) => toolCallId), nextCursor };
  };
  const first = await page(ada.token, "limit=1");
  expect(first.told).toEqual([made[2]]);
  expect(await page(ada.token, `limit=1&cursor=${first.nextCursor}`)).toEqual({ told: [made[4]], nextCursor: null });
  expect(await page(ada.token, "limit=2")).toEqual({ told: [made[2], made[4]], nextCursor: null });
  expect((await page(house.secretKey, "limit=10")).told).toEqual(made);
});

test("[C19] cursors of waiting calls do not count calls of confidential spaces", async () => {
  const [house, other] = await Promise.all([openHouse(), openHouse()]);
  const cursorIn = async (of: House): Promise<string> => {
    const { id: agentId } = await of.agent({ name: "Clerk" });
    for (let count = 0; count < 2; count += 1) {
      const [toolCallId, at] = [ids.mintOwned("tc", agentId), "2026-02-18T15:06:55.000Z"];
      const made = { toolCallId, agentId, name: "pay", input: {}, createdAt: at, dueAt: at };
      unwrap(await env.WORKSPACE.getByName(of.workspaceId).noteToolCall(made, true));
    }
    const { nextCursor } = await expectOk(z.looseObject({ nextCursor: z.string() }), listed(of.secretKey, "limit=1"));
    return nextCursor;
  };
  const listed = (bearer: string, query: string) => call(`/v1/tool-calls?${query}`, { bearer });
  const [own, others] = [await cursorIn(house), await cursorIn(other)];
  expect((await listed(house.secretKey, `cursor=${own}`)).status).toBe(200);
  // A number would be a count. Whoever sees all calls of a workspace of their own learns no other's cursors by it.
  for (const cursor of ["1", others]) {
    expect(await listed(house.secretKey, `cursor=${cursor}`).then((answer) => answer.json())).toMatchObject({
      code: "invalid_cursor",
    });
  }
});

describe("a claim", () => {
  test("is its holder's until the lease ends, and may be renewed by it alone", async () => {
    const { house, made } = await openCall({ timeoutMs: 600_000 });
    const held = await expectOk(z.object({ toolCall: WaitingToolCall }), claim(house, made.toolCallId, "one"));
    expect(held.toolCall.claim).toEqual({ holder: "one", until: new Date(Date.now() + 60_000).toISOString() });
    expect(await problemIn(await claim(house, made.toolCallId, "two"))).toMatchObject({ status: 409 });
    vi.setSystemTime(Date.now() + 59_000);
    expect((await claim(house, made.toolCallId, "one")).status).toBe(200);
    vi.setSystemTime(Date.now() + 59_000);
    expect(await problemIn(await claim(house, made.toolCallId, "two"))).toMatchObject({ status: 409 });
    vi.setSystemTime(Date.now() + 1000);
    expect((await claim(house, made.toolCallId, "two")).status).toBe(200);
    await vi.waitFor(async () => expect((await listOutsideCalls(house)).items[0]?.claim?.holder).toBe("two"));
  });

  test("takes one of a hundred servers that come at once", async () => {
    const { house, made } = await openCall();
    const claims = Array.from({ length: 100 }, (_, index) => claim(house, made.toolCallId, `server ${index}`));
    const statuses = (await Promise.all(claims)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(99);
  });

  test("of a call that is over answers 410", async () => {
    const { house, made } = await openCall();
    await answer(house, made.toolCallId, { result: 1 });
    expect(await problemIn(await claim(house, made.toolCallId, "one"))).toMatchObject({ status: 410, code: "gone" });
  });
});

describe("an answer", () => {
  test("is heard once: the same again is 200, another 409", async () => {
    const { house, agentId, made } = await openCall();
    const { toolCallId } = made;
    const given = { result: { name: "Seven", of: [1, null] } };
    expect(await answer(house, toolCallId, given)).toEqual({ toolCallId, status: "complete", created: true });
    expect(await answer(house, toolCallId, { result: { of: [1, null], name: "Seven" } })).toMatchObject({
      created: false,
    });
    for (const other of [{ result: 8 }, { error: { message: "No" } }]) {
      expect(await problemIn(await post(house, toolCallId, "result", other))).toMatchObject({
        status: 409,
        code: "conflict",
      });
    }
    const run = await ended(house, agentId);
    expect(run.steps.map(({ toolCalls }) => toolCalls.map(({ output }) => output))).toEqual([[given.result], []]);
  });

  test("may be an error, which the model is told", async () => {
    const { house, agentId, made } = await openCall();
    const error = { message: "the archive is closed" };
    expect(await answer(house, made.toolCallId, { error })).toMatchObject({ status: "error" });
    const [first] = (await ended(house, agentId)).steps;
    expect(first?.toolCalls).toMatchObject([{ status: "error", output: { error } }]);
  });

  test("needs no claim, and that of another does not keep it out", async () => {
    const { house, made } = await openCall();
    await claim(house, made.toolCallId, "one");
    expect(await answer(house, made.toolCallId, { result: "two was faster" })).toMatchObject({ created: true });
  });

  test("that comes too late is an event of its own", async () => {
    const { house, agentId, made } = await openCall({ timeoutMs: 1000 });
    vi.setSystemTime(Date.now() + 1000);
    await runDurableObjectAlarm(agentStub({ id: agentId }));
    const [timedOut] = (await ended(house, agentId)).steps;
    expect(timedOut?.toolCalls).toMatchObject([{ output: { error: { code: "tool_timeout" } } }]);
    expect(await answer(house, made.toolCallId, { result: "late" })).toMatchObject({ created: true });
    await vi.waitFor(async () => expect((await newestRun(house, agentId)).trigger.type).toBe("tool_result"));
  });

  test("[R5] to a call of a run that was canceled is 410, and changes nothing", async () => {
    const { house, agentId, made } = await openCall();
    const { id } = await newestRun(house, agentId);
    await call(`/v1/agents/${agentId}/runs/${id}/cancel`, { method: "POST", bearer: house.secretKey });
    await vi.waitFor(async () => expect((await listOutsideCalls(house)).items).toEqual([]));
    const refused = await post(house, made.toolCallId, "result", { result: 1 });
    expect(await problemIn(refused)).toMatchObject({ status: 410, detail: expect.stringContaining("canceled") });
    expect(await newestRun(house, agentId)).toMatchObject({ id, status: "canceled" });
  });

  test.each([
    ["nothing", {}],
    ["both", { result: 1, error: { message: "x" } }],
    ["an error without words", { error: { message: "" } }],
    ["an error of 1,001 characters", { error: { message: "x".repeat(1001) } }],
    ["a field more", { result: 1, note: "x" }],
    ["no object", "yes"],
  ])("[S4] of %s is 400, and the call waits on", async (_, body) => {
    const { house, made } = await openCall();
    const refused = await problemIn(await post(house, made.toolCallId, "result", JSON.stringify(body)));
    expect(refused).toMatchObject({ status: 400, code: "invalid_request" });
    expect((await listOutsideCalls(house)).items).toEqual([made]);
  });
});

test.each([
  ["no holder", {}],
  ["an empty holder", { holder: "" }],
  ["a holder of 129 characters", { holder: "x".repeat(129) }],
  ["a lease of no time", { holder: "x", leaseSeconds: 0 }],
  ["a lease of more than an hour", { holder: "x", leaseSeconds: 3601 }],
])("[S4] a claim with %s is 400", async (_, body) => {
  const { house, made } = await openCall();
  const refused = await problemIn(await post(house, made.toolCallId, "claim", body));
  expect(refused).toMatchObject({ status: 400, code: "invalid_request" });
});

test("[S1] [S6] a foreign call, one that waits for people, and an invented one are not found", async () => {
  const { house, made } = await openCall();
  const other = await openHouse();
  const invented = ids.mintOwned("tc", made.agentId);
  for (const [caller, toolCallId] of [
    [other, made.toolCallId],
    [house, invented],
    [house, ids.mintOwned("tc", ids.mint("ent"))],
  ] as const) {
    for (const refused of [
      await claim(caller, toolCallId, "x"),
      await post(caller, toolCallId, "result", { result: 1 }),
    ]) {
      expect(await problemIn(refused)).toMatchObject({ code: "not_found" });
    }
  }
  expect((await listOutsideCalls(house)).items).toEqual([made]);
});
