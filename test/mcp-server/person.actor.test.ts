import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { Message } from "../../src/protocol/message.ts";
import { createGate } from "../support/gate.ts";
import { call as callApi, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { question } from "../support/question.ts";
import { answer, installModel, scriptedModel, step, waitAt } from "../support/scripted-model.ts";
import { connect, revisions } from "./connect.ts";

/** What an assistant does for a person by the tools of `/mcp`. */
const back: (() => void)[] = [];
afterEach(() => {
  for (const putBack of back.splice(0)) putBack();
});

const messagesOf = async ({ token }: Participant, spaceId: string) => {
  const Page = z.object({ items: z.array(Message) });
  return (await expectOk(Page, callApi(`/v1/spaces/${spaceId}/messages`, { bearer: token }))).items;
};

const kitchen = async (): Promise<{ house: House; mona: Participant; omar: Participant; spaceId: string }> => {
  const house = await openHouse();
  const [mona, omar] = [await house.person("Mona"), await house.person("Omar")];
  return { house, mona, omar, spaceId: (await house.space("Kitchen", [mona, omar])).id };
};

describe.each(revisions)("over revision %s", (revision) => {
  test("[M1] an assistant lists, reads, says and searches as its person", async () => {
    const { house, mona, omar, spaceId } = await kitchen();
    await house.say(spaceId, omar, "The Quinces are ripe");
    const { client, call } = await connect(mona.token, revision);
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      ["list_spaces", "read_messages", "search", "send_message", "ask_agent", "needs_you", "answer"], // in this order
    );
    expect((await call("list_spaces")).json.items).toMatchObject([{ id: spaceId, unreadCount: 1 }]);
    await call("send_message", { spaceId, text: "Then let us cook" });
    const texts = ["The Quinces are ripe", "Then let us cook"];
    expect((await call("read_messages", { spaceId, limit: 2 })).json.items).toMatchObject(
      texts.map((text) => ({ text })),
    );
    const found = (await call("search", { query: "ripe quince" })).json;
    expect(found.spaces).toMatchObject([
      { spaceId, name: "Kitchen", messages: [{ text: texts[0], sender: { id: omar.id } }] },
    ]);
    expect((await messagesOf(mona, spaceId)).at(-1)).toMatchObject({ text: texts[1], sender: { id: mona.id } });
  });

  test("[M1] a person's spaces are resources, and no others are", async () => {
    const { house, mona, omar, spaceId } = await kitchen();
    await house.say(spaceId, omar, "Zero\u200bwidth");
    const hidden = await house.space("Cellar", [omar]);
    const { client } = await connect(mona.token, revision);
    const uri = `colloquy://spaces/${spaceId}`;
    expect((await client.listResources()).resources).toEqual([{ uri, name: "Kitchen", mimeType: "application/json" }]);
    const [{ text = "" } = {}] = (await client.readResource({ uri })).contents as { text?: string }[];
    expect(text).toContain("Zero\\u200bwidth");
    const read = JSON.parse(text);
    expect([read.space.id, read.messages.at(-1).text]).toEqual([spaceId, "Zero\u200bwidth"]);
    for (const other of [`colloquy://spaces/${hidden.id}`, `colloquy://spaces/${ids.mint("spc")}`, "colloquy://x"]) {
      await expect(client.readResource({ uri: other })).rejects.toMatchObject({ data: { uri: other } });
    }
  });

  test("[M3] ask_agent answers with what the agent says, in a space of the two alone", async () => {
    const { house, mona } = await kitchen();
    const ada = await house.agent({ name: "Ada" });
    await house.space("Hall", [mona, ada]);
    const { call } = await connect(mona.token, revision);
    const { json } = await call("ask_agent", { agent: "ada", text: "Hello" });
    expect(json).toMatchObject({ status: "answered", answer: [{ text: expect.stringMatching(/\w/) }] });
    expect(await messagesOf(mona, json.spaceId)).toMatchObject([
      { id: json.messageId, text: "Hello", sender: { id: mona.id } },
      { id: json.answer[0].id, sender: { id: ada.id } },
    ]);
    const more = { agent: ada.id, text: "And you?", idempotencyKey: "second" };
    const pending = (await call("ask_agent", { ...more, waitSeconds: 0 })).json;
    expect(pending).toMatchObject({ spaceId: json.spaceId, status: "pending", next: expect.stringContaining("again") });
    expect((await call("ask_agent", more)).json).toMatchObject({ messageId: pending.messageId, status: "answered" });
  });

  test("[M4] an approval takes effect with all that is approved in the call's own arguments", async () => {
    const { house, mona, spaceId } = await kitchen();
    const robo = await house.agent({ name: "Robo" });
    const lab = await house.space("Lab", [mona, robo]);
    const toolCallId = await question(house.workspaceId, lab.id, robo.id, "approval");
    const { call } = await connect(mona.token, revision);
    const { items } = (await call("needs_you")).json;
    expect(items).toMatchObject([{ spaceId: lab.id, toolCall: { id: toolCallId } }]);
    const { shown, inputHash } = items[0].toolCall.awaits;
    const own = { spaceId: lab.id, toolCallId };
    const less = [{}, { inputHash }, { inputHash, shown: shown.slice(1) }, { shown, inputHash: "0".repeat(64) }];
    for (const seen of less) {
      const refused = await call("answer", { ...own, approved: true, ...seen });
      expect([refused.isError, refused.json.code]).toEqual([true, "approval_changed"]);
      for (const { path, text } of shown)
        expect(refused.json.detail).toContain(JSON.stringify({ path, text }).slice(1, -1));
      expect(refused.json.detail).toContain(inputHash);
    }
    expect((await call("needs_you")).json.items).toHaveLength(1);
    const approved = await call("answer", { ...own, approved: true, shown, inputHash });
    expect(approved.json.message.toolCall).toMatchObject({
      status: "running",
      awaits: { answers: [{ entityId: mona.id }] },
    });
    expect((await call("needs_you")).json.items).toEqual([]);
    const late = await call("answer", { ...own, approved: false });
    expect([late.isError, late.json.code]).toEqual([true, "conflict"]);
    const choice = await question(house.workspaceId, lab.id, robo.id);
    expect(
      (await call("answer", { spaceId: lab.id, toolCallId: choice, result: "red" })).json.message.toolCall.output,
    ).toBe("red");
    const foreign = await call("answer", { spaceId, toolCallId: choice, result: "red" });
    expect(foreign.json.code).toBe("not_found");
  });

  test("[M4] an approval in the form of a result takes effect with all that is approved alone", async () => {
    const { house, mona } = await kitchen();
    const robo = await house.agent({ name: "Robo" });
    const lab = await house.space("Lab", [mona, robo]);
    const toolCallId = await question(house.workspaceId, lab.id, robo.id, "approval");
    const { call } = await connect(mona.token, revision);
    const { shown, inputHash } = (await call("needs_you")).json.items[0].toolCall.awaits;
    const own = { spaceId: lab.id, toolCallId, result: { approved: true, inputHash } };
    for (const seen of [{}, { inputHash }, { inputHash, shown: shown.slice(1) }]) {
      const refused = await call("answer", { ...own, ...seen });
      expect([refused.isError, refused.json.code]).toEqual([true, "approval_changed"]);
    }
    expect((await call("answer", { ...own, shown })).json.message.toolCall.status).toBe("running");
  });

  test("[M1] what a route refuses is the tool's error, and the connection goes on", async () => {
    const { house, mona, omar, spaceId } = await kitchen();
    const board = await house.space("Board", [omar], { confidential: true });
    const boss = await connect((await house.person("Boss", "admin")).token, revision);
    const { client, call } = await connect(mona.token, revision);
    const wrong: [string, Record<string, unknown>, string][] = [
      ["send_message", { spaceId }, "invalid_request"],
      ["send_message", { spaceId, text: 7 }, "invalid_request"],
      ["send_message", { spaceId, text: "x".repeat(40_000) }, "text_too_long"],
      ["send_message", { spaceId, text: "x", colour: "red" }, "invalid_request"],
      ["send_message", { spaceId, text: "x", constructor: "red" }, "invalid_request"],
      ["send_message", { spaceId: board.id, text: "x" }, "not_found"],
      ["send_message", { spaceId: "..", text: "x" }, "invalid_request"],
      ["send_message", { spaceId, text: "x", idempotencyKey: "a\nb" }, "invalid_request"],
      ["read_messages", { spaceId, limit: {} }, "invalid_request"],
      ["read_messages", { spaceId, limit: 9999 }, "invalid_request"],
      ["read_messages", { spaceId, before: 1, after: 1 }, "invalid_request"],
      ["search", { query: " " }, "invalid_request"],
      ["ask_agent", { agent: "Nobody", text: "x" }, "unknown_reference"],
      ["needs_you", { all: true }, "invalid_request"],
      ["answer", { spaceId, toolCallId: ids.mintOwned("tc", omar.id) }, "invalid_request"],
      ["answer", { spaceId, toolCallId: ids.mintOwned("tc", omar.id), result: 1 }, "not_found"],
    ];
    for (const [name, input, code] of wrong) {
      const refused = await call(name, input);
      expect([name, refused.isError, refused.json.code], JSON.stringify(input)).toEqual([name, true, code]);
      expect(refused.json.detail).toMatch(/\w{3}/);
    }
    const unread = await boss.call("read_messages", { spaceId: board.id });
    expect(unread.json).toMatchObject({ code: "forbidden", detail: expect.stringContaining("join it first") });
    await expect(client.callTool({ name: "constructor", arguments: {} })).rejects.toMatchObject({ code: -32602 });
    expect(await messagesOf(mona, spaceId)).toEqual([]);
    expect((await call("list_spaces")).isError).toBe(false);
  });
});

test("[M2] the same idempotencyKey says a thing once, and other words under it are refused", async () => {
  const { mona, spaceId } = await kitchen();
  const { call } = await connect(mona.token);
  const say = (text: string) => call("send_message", { spaceId, text, idempotencyKey: "one" });
  const [first, second] = await Promise.all([say("Once"), say("Once")]);
  expect(second.json).toEqual(first.json);
  expect((await say("Twice")).json.code).toBe("idempotency_mismatch");
  expect(await messagesOf(mona, spaceId)).toHaveLength(1);
});

/** An agent that answers once the gate is open. */
const adaAtGate = async () => {
  const { house, mona, omar } = await kitchen();
  const ada = await house.agent({ name: "Ada" });
  const hall = await house.space("Hall", [mona, omar, ada], { wakePolicy: "addressed" });
  const gate = createGate();
  const [first, ...rest] = answer(hall.id, "Forty-two.");
  back.push(installModel(scriptedModel([step(waitAt(gate), ...(first?.parts ?? [])), ...rest])));
  return { house, mona, omar, hall, gate };
};

test("[M2] [M3] ask_agent that was not answered in time goes on by its key, and asks once", async () => {
  const { mona, hall, gate } = await adaAtGate();
  const { client, call } = await connect(mona.token);
  const ask = { agent: "Ada", text: "What is it?", spaceId: hall.id };
  const { json } = await call("ask_agent", { ...ask, waitSeconds: 0 });
  expect(json).toMatchObject({ status: "pending", answer: [] });
  const told: unknown[] = [];
  const again = client.callTool(
    { name: "ask_agent", arguments: { ...ask, idempotencyKey: json.idempotencyKey } },
    { onprogress: ({ message }) => void told.push(message) },
  );
  await gate.reached;
  gate.open();
  const [part] = (await again).content;
  expect(JSON.parse(part?.type === "text" ? part.text : "")).toMatchObject({
    ...{ status: "answered", messageId: json.messageId, answer: [{ text: "Forty-two." }] },
  });
  expect(told.length).toBeGreaterThan(0);
  const stub = env.SPACE.getByName(hall.id) as unknown as DurableObjectStub;
  await vi.waitFor(() => runInDurableObject(stub, (_, state) => expect(state.getWebSockets()).toEqual([])));
  expect(await messagesOf(mona, hall.id)).toMatchObject([{ text: "@Ada What is it?" }, { text: "Forty-two." }]);
});

test("[M3] ask_agent comes back at once where the agent waits for a person", async () => {
  const { house, mona } = await kitchen();
  const robo = await house.agent({ name: "Robo" });
  const lab = await house.space("Lab", [mona, robo]);
  const gate = createGate();
  back.push(installModel(scriptedModel([step(waitAt(gate))])));
  const { call } = await connect(mona.token);
  const asked = call("ask_agent", { agent: robo.id, text: "Choose", spaceId: lab.id });
  await gate.reached;
  const toolCallId = await question(house.workspaceId, lab.id, robo.id, "approval");
  expect((await asked).json).toMatchObject({ status: "needs_answer", answer: [{ toolCall: { id: toolCallId } }] });
  gate.open();
});

test("[M3] ask_agent finds the answer, however much others have said since it was asked", async () => {
  const { house, mona, omar, hall, gate } = await adaAtGate();
  const { call } = await connect(mona.token);
  const ask = { agent: "Ada", text: "What is it?", spaceId: hall.id };
  const { json } = await call("ask_agent", { ...ask, waitSeconds: 0 });
  await gate.reached;
  for (let count = 0; count < 200; count += 1) await house.say(hall.id, omar, `aside ${count}`);
  gate.open();
  const again = await call("ask_agent", { ...ask, idempotencyKey: json.idempotencyKey });
  expect(again.json).toMatchObject({ status: "answered", answer: [{ text: "Forty-two." }] });
});
