import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { call as callApi, expectOk, type House, openHouse, type Participant } from "../support/house.ts";
import { connect, revisions } from "./connect.ts";

/** An assistant that thinks for a guest agent by the tools of `/mcp`, and has no other program. */
afterEach(() => void vi.useRealTimers());

type Desk = { house: House; mona: Participant; courier: { id: string; token: string }; spaceId: string };
const desk = async (config: Record<string, unknown> = {}): Promise<Desk> => {
  const house = await openHouse();
  const mona = await house.person("Mona");
  const { id } = await house.agent({ name: "Courier", runtime: "guest", continuity: "timeline", ...config });
  const courier = { id, token: await house.token(id) };
  return { house, mona, courier, spaceId: (await house.space("Desk", [mona, courier])).id };
};

const textsIn = async ({ mona, spaceId }: Desk): Promise<(string | undefined)[]> => {
  const page = callApi(`/v1/spaces/${spaceId}/messages`, { bearer: mona.token });
  return (await expectOk(z.object({ items: z.array(Message) }), page)).items.map(({ text }) => text);
};

describe.each(revisions)("over revision %s", (revision) => {
  test("[M8] an assistant is woken by a message, reads, answers by the agent's tools, and ends", async () => {
    const at = await desk();
    const { house, mona, courier, spaceId } = at;
    const { client, call } = await connect(courier.token, revision);
    const listed = (await client.listTools()).tools;
    const names = listed.map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["next_events", "complete", "skip"]);
    expect(names).toEqual(expect.arrayContaining(["enter_space", "read_messages", "send_message"]));
    expect(new Set(names).size).toBe(names.length);
    const waiting = call("next_events", { context: true });
    await house.say(spaceId, mona, "Where is my parcel?");
    const { claim, events, run, context } = (await waiting).json;
    expect(events).toMatchObject([{ type: "space_message" }]);
    expect(JSON.stringify(events)).toContain("Where is my parcel?");
    expect(run).toMatchObject({ agentId: courier.id, status: "running" });
    expect(JSON.stringify(context.messages)).toContain("Where is my parcel?");
    // The list is the same while a run is claimed.
    expect((await client.listTools()).tools).toEqual(listed);
    const read = await call("read_messages", { claim, input: { spaceId } });
    expect(read.json.call).toMatchObject({
      status: "complete",
      output: { messages: [{ content: "Where is my parcel?" }] },
    });
    await call("send_message", { claim, input: { text: "It is here." } });
    const ended = await call("complete", { claim, summary: "found it" });
    expect(ended.json.run).toMatchObject({ id: run.id, status: "completed", outcome: "answered" });
    expect(await textsIn(at)).toEqual(["Where is my parcel?", "It is here."]);
    expect((await call("next_events", { waitSeconds: 0 })).json).toMatchObject({ events: [] });
  });

  test("[M8] an assistant asks people, and its run comes back with their answer", async () => {
    const pick = { name: "pick", description: "Asks", executionType: "space", answer: { expiresInMinutes: 10 } };
    const { house, mona, courier, spaceId } = await desk({ tools: [pick] });
    const { client, call } = await connect(courier.token, revision);
    const declared = (await client.listTools()).tools.find(({ name }) => name === "pick");
    expect(declared).toMatchObject({ description: "Asks", inputSchema: { required: ["claim"] } });
    await house.say(spaceId, mona, "Which one?");
    const { claim } = (await call("next_events")).json;
    const asked = (await call("pick", { claim, input: { of: ["red", "blue"] } })).json;
    expect(asked).toMatchObject({ call: { status: "waiting" }, next: expect.stringContaining("next_events") });
    const person = await connect(mona.token, revision);
    const [item] = (await person.call("needs_you")).json.items;
    expect(item.toolCall.id).toBe(asked.call.id);
    await person.call("answer", { spaceId, toolCallId: asked.call.id, result: "red" });
    const next = (await call("next_events")).json;
    expect(next.run.steps[0].toolCalls).toMatchObject([{ id: asked.call.id, status: "complete", output: "red" }]);
    expect((await call("complete", { claim: next.claim })).json.run.status).toBe("completed");
  });
});

test("[M2] [M8] a call that is repeated with its idempotencyKey is done once", async () => {
  const at = await desk();
  const { call } = await connect(at.courier.token);
  await at.house.say(at.spaceId, at.mona, "Say it once");
  const { claim } = (await call("next_events")).json;
  const once = { claim, input: { text: "Once." }, idempotencyKey: "k1" };
  const [first, again] = [await call("send_message", once), await call("send_message", once)];
  expect(again.json.call).toEqual(first.json.call);
  const other = await call("send_message", { ...once, input: { text: "Twice." } });
  expect([other.isError, other.json.code]).toEqual([true, "idempotency_mismatch"]);
  expect(await textsIn(at)).toEqual(["Say it once", "Once."]);
});

test("[M1] [M8] what a guest's assistant gets wrong is its call's error, and the run goes on", async () => {
  const at = await desk();
  const { client, call } = await connect(at.courier.token);
  const none = await call("send_message", { input: { text: "No claim" } });
  expect([none.isError, none.json.code, none.json.issues[0].path]).toEqual([true, "invalid_request", "claim"]);
  const rival = await at.house.agent({ name: "Rival", runtime: "guest" });
  const foreign = `run_${"0".repeat(60)}:x`;
  expect((await call("complete", { claim: foreign })).json.code).toBe("not_found");
  await at.house.say(at.spaceId, at.mona, "Hello");
  const { claim } = (await call("next_events")).json;
  const bad = await call("send_message", { claim, input: { words: 1 } });
  expect(bad.json.call).toMatchObject({ status: "error" });
  expect((await call("no_such_tool", { claim })).json.call).toMatchObject({ status: "error" });
  for (const wrong of [
    { claim, input: {}, more: 1 },
    { claim: 7 },
    { claim: "run_x" },
    { claim, idempotencyKey: "" },
  ]) {
    expect((await call("send_message", wrong)).json.code, JSON.stringify(wrong)).toBe("invalid_request");
  }
  expect((await call("next_events", { waitSeconds: 99 })).json.issues[0].path).toBe("waitSeconds");
  const other = await connect(await at.house.token(rival.id));
  expect((await other.call("complete", { claim })).json.code).toBe("not_found");
  expect((await client.listResources()).resources).toEqual([]);
  await call("send_message", { claim, input: { text: "Still here." } });
  expect((await call("skip", { claim })).json.run.status).toBe("completed");
  const late = await call("send_message", { claim, input: { text: "Too late." } });
  expect([late.isError, late.json.code]).toEqual([true, "conflict"]);
  expect(await textsIn(at)).toEqual(["Hello", "Still here."]);
});

test("[C19] [M8] events of a confidential space come by its name alone, and are answered", async () => {
  const at = await desk();
  const vault = await at.house.space("Vault", [at.mona, at.courier], { confidential: true });
  const { call } = await connect(at.courier.token);
  await at.house.say(vault.id, at.mona, "The code is 4711");
  expect((await call("next_events", { waitSeconds: 0 })).json.events).toEqual([]);
  const { claim, events } = (await call("next_events", { confidentialSpaceId: vault.id })).json;
  expect(JSON.stringify(events)).toContain("4711");
  await call("send_message", { claim, input: { text: "Understood." } });
  expect((await call("complete", { claim })).json.run.status).toBe("completed");
  expect(await textsIn({ ...at, spaceId: vault.id })).toEqual(["The code is 4711", "Understood."]);
});

test("[M1] [M8] an agent that thinks here is refused by name, and its token was never made", async () => {
  const { house, courier } = await desk();
  const { call, client } = await connect(courier.token);
  const path = `/v1/agents/${courier.id}`;
  await expectOk(z.unknown(), callApi(path, { method: "PATCH", bearer: house.secretKey, body: { runtime: "house" } }));
  expect((await call("next_events", { waitSeconds: 0 })).json).toMatchObject({
    code: "conflict",
    detail: expect.stringContaining("runtime"),
  });
  await expect(client.listTools()).rejects.toMatchObject({ message: expect.stringContaining("runtime") });
});
