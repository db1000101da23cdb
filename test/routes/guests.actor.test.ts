import { exports } from "cloudflare:workers";
import { beforeAll, expect, inject, onTestFinished, test, vi } from "vitest";
import * as z from "zod";
import { ClaimedRun, GuestCallAnswer } from "../../src/protocol/guest.ts";
import { Message } from "../../src/protocol/message.ts";
import { Run } from "../../src/protocol/run.ts";
import { pause } from "../../src/shared/timeouts.ts";
import { type Call, call, expectOk, type House, ids, openHouse, type Participant } from "../support/house.ts";
import { problemIn } from "./operations.ts";

/** A guest's program over HTTP: by its own token or the workspace's key, and by nobody else. */
let house: House;
let mona: Participant;
let spaceId: string;
let courier: { id: string; token: string };

beforeAll(async () => {
  house = await openHouse();
  mona = await house.person("Mona");
  const { id } = await house.agent({ name: "Courier", runtime: "guest", continuity: "timeline" });
  courier = { id, token: await house.token(id) };
  spaceId = (await house.space("Desk", [mona, courier])).id;
});

const at = (path: string): string => `/v1/agents/${courier.id}/${path}`;
const asCourier = (path: string, body: unknown, more: Call = {}): Promise<Response> =>
  call(at(path), { bearer: courier.token, body, ...more });
const claim = async (): Promise<ClaimedRun> => expectOk(ClaimedRun, asCourier("claims", { waitSeconds: 5 }));
const codeOf = async (answer: Promise<Response>): Promise<string> => (await problemIn(await answer)).code;

const texts = async (): Promise<string[]> => {
  const page = z.object({ items: z.array(Message) });
  const { items } = await expectOk(page, call(`/v1/spaces/${spaceId}/messages`, { bearer: mona.token }));
  return items.map(({ text = "" }) => text);
};

test("[G1] a program claims with its agent's token, calls, speaks and completes", async () => {
  expect((await asCourier("claims", {})).status).toBe(204);
  await house.say(spaceId, mona, "where is it?");
  const { run, lease } = await claim();
  const called = await expectOk(
    GuestCallAnswer,
    asCourier(`runs/${run.id}/calls`, { name: "send_message", input: { text: "Looking." }, key: "1", lease }),
  );
  expect(called.call.status).toBe("complete");
  const lines = ['{"delta":"It is "}', '{"delta":"here."}', '{"done":true}', ""].join("\n");
  const speech = () =>
    asCourier(`runs/${run.id}/speech?key=2&lease=${lease}`, lines, {
      headers: { "content-type": "application/x-ndjson" },
    });
  expect((await expectOk(GuestCallAnswer, speech())).call.input).toEqual({ text: "It is here." });
  const ended = await expectOk(z.object({ run: Run }), asCourier(`runs/${run.id}/complete`, { summary: "found it" }));
  expect(ended.run).toMatchObject({ status: "completed", outcome: "answered" });
  // Its answer was lost: the same end again is the same.
  expect((await asCourier(`runs/${run.id}/complete`, {})).status).toBe(200);
  expect(await texts()).toEqual(["where is it?", "Looking.", "It is here."]);
});

test("[G6] [S1] a guest's token is for its agent's runs alone, and nobody else's is for them", async () => {
  const other = await house.agent({ name: "Rival", runtime: "guest" });
  const refused = { bearer: courier.token, body: {} };
  expect(await codeOf(call(`/v1/agents/${other.id}/claims`, refused))).toBe("forbidden");
  expect(await codeOf(call(at("claims"), { bearer: mona.token, body: {} }))).toBe("forbidden");
  const elsewhere = await openHouse();
  expect(await codeOf(call(at("claims"), { bearer: elsewhere.secretKey, body: {} }))).toBe("not_found");
  for (const path of [`/v1/spaces/${spaceId}/messages`, `/v1/spaces/${spaceId}`, "/v1/entities", "/v1/agents"]) {
    expect(await codeOf(call(path, { bearer: courier.token })), path).toBe("forbidden");
  }
  const words = { bearer: courier.token, body: { text: "around my runs" } };
  expect(await codeOf(call(`/v1/spaces/${spaceId}/messages`, words))).toBe("forbidden");
  const resident = await house.agent({ name: "Resident" });
  const minted = call("/v1/tokens", { bearer: house.secretKey, body: { entityId: resident.id } });
  expect(await codeOf(minted)).toBe("unknown_reference");
});

test("[G6] [L7] a guest's token ends with a sign-out of its agent", async () => {
  const { id } = await house.agent({ name: "Leaver", runtime: "guest" });
  const bearer = await house.token(id);
  expect((await call(`/v1/agents/${id}/claims`, { bearer, body: {} })).status).toBe(204);
  await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  expect(await codeOf(call(`/v1/agents/${id}/claims`, { bearer, body: {} }))).toBe("unauthorized");
});

test("[G6] [S4] bad input of a program is refused by name, and its run goes on", async () => {
  await house.say(spaceId, mona, "again");
  const { run, lease } = await claim();
  const path = `runs/${run.id}`;
  const wrong: [string, unknown, string][] = [
    ["claims", { waitSeconds: 56 }, "invalid_request"],
    [`${path}/calls`, { name: "send_message", input: {} }, "invalid_request"],
    [`${path}/calls`, { name: "send message", input: {}, key: "k" }, "invalid_request"],
    [`${path}/calls`, { name: "send_message", input: { text: "x" }, key: "k", lease: "another" }, "gone"],
    [`${path}/speech`, "{}", "invalid_request"],
    [`${path}/speech?key=s`, '{"delta":5}\n', "invalid_request"],
    [`${path}/speech?key=s`, '{"delta":"cut off"}\n', "interrupted"],
    [`${path}/speech?key=s`, `{"delta":"${"x".repeat(33_000)}"}\n`, "text_too_long"],
    [`${path}/speech?key=s&lease=another`, '{"done":true}\n', "gone"],
    [`${path}/complete`, { usage: { inputTokens: -1 } }, "invalid_request"],
    [`${path}/fail`, {}, "invalid_request"],
  ];
  for (const [address, body, code] of wrong) expect(await codeOf(asCourier(address, body)), address).toBe(code);
  const done = asCourier(`${path}/complete`, { lease });
  expect((await expectOk(z.object({ run: Run }), done)).run.status).toBe("completed");
  expect(await codeOf(asCourier(`${path}/calls`, { name: "send_message", key: "late" }))).toBe("conflict");
  expect((await texts()).at(-1)).toBe("again");
});

test("[G6] [C19] what is said in a confidential space is claimed by naming it alone", async () => {
  const board = await house.space("Board", [mona, courier], { confidential: true });
  await house.say(board.id, mona, "between us");
  expect((await asCourier("claims", { waitSeconds: 0 })).status).toBe(204);
  const there = `?space=${board.id}`;
  const claimed = await expectOk(ClaimedRun, asCourier(`claims${there}`, { waitSeconds: 5 }));
  expect(JSON.stringify(claimed.events)).toContain("between us");
  const said = { name: "send_message", input: { text: "kept" }, key: "1", lease: claimed.lease };
  const { call: made } = await expectOk(GuestCallAnswer, asCourier(`runs/${claimed.run.id}/calls${there}`, said));
  expect(made.status).toBe("complete");
  expect((await asCourier(`runs/${claimed.run.id}/complete${there}`, {})).status).toBe(200);
  const outside = await house.space("Elsewhere", [mona], { confidential: true });
  expect(await codeOf(asCourier(`claims?space=${outside.id}`, {}))).toBe("not_found");
});

/** A program's socket, and the frames that it gets. */
const openSocket = async (bearer: string, agentId = courier.id, query = "") => {
  const answer = await call(`/v1/agents/${agentId}/runtime${query}`, { bearer, headers: { upgrade: "websocket" } });
  const socket = answer.webSocket;
  if (!socket) throw new Error(`no socket: ${await answer.text()}`);
  const frames: Record<string, unknown>[] = [];
  socket.addEventListener("message", ({ data }) => void frames.push(JSON.parse(String(data))));
  const ending = Promise.withResolvers<number>();
  socket.addEventListener("close", ({ code }) => ending.resolve(code));
  socket.accept();
  onTestFinished(() => socket.close());
  const answerOf = (id: string) =>
    vi.waitFor(() => {
      const found = frames.find((frame) => frame.id === id);
      if (!found) throw new Error(`no answer to ${id}`);
      return found;
    });
  return {
    send: (frame: object | string) => socket.send(typeof frame === "string" ? frame : JSON.stringify(frame)),
    answerOf,
    frames,
    closed: () => ending.promise,
  };
};

test("[G1] [G3] one socket claims, speaks and completes", async () => {
  const { send, answerOf } = await openSocket(courier.token);
  send({ type: "claim", id: "1" });
  await house.say(spaceId, mona, "by socket");
  const claimed = await answerOf("1");
  expect(claimed).toMatchObject({ type: "claimed", events: [{ type: "space_message" }] });
  const { run, lease } = ClaimedRun.parse(claimed);
  const inRun = { runId: run.id, lease };
  send({ type: "speech", id: "2", key: "s", ...inRun });
  for (const delta of ["Word ", "by word."]) send({ type: "speech.delta", id: "2", delta });
  send({ type: "speech.done", id: "2" });
  expect(await answerOf("2")).toMatchObject({ type: "answer", call: { input: { text: "Word by word." } } });
  send({ type: "renew", id: "3", ...inRun });
  expect(await answerOf("3")).toMatchObject({ type: "renewed" });
  send({ type: "complete", id: "4", ...inRun });
  expect(await answerOf("4")).toMatchObject({ type: "ended", run: { status: "completed", outcome: "answered" } });
  expect((await texts()).slice(-2)).toEqual(["by socket", "Word by word."]);
});

test("[G6] [S4] a frame that makes no sense is an error, and the socket goes on", async () => {
  const { send, answerOf, frames } = await openSocket(house.secretKey);
  const codes = () => frames.map(({ code }) => code);
  for (const frame of ["{", "[]", { type: "claim" }, { type: "dance", id: "0" }]) send(frame);
  await vi.waitFor(() => expect(codes()).toEqual(["bad_frame", "bad_frame", "bad_frame", "bad_frame"]));
  send({ type: "speech.delta", id: "5", delta: "words of no speech" });
  expect(await answerOf("5")).toMatchObject({ code: "bad_frame" });
  const runId = ids.mintOwned("run", courier.id);
  send({ type: "call", id: "6", runId, name: "send_message", key: "k" });
  expect(await answerOf("6")).toMatchObject({ type: "error", code: "not_found" });
  const reader = await expectOk(
    z.object({ secretKey: z.string() }),
    call("/v1/workspace/keys", { bearer: house.secretKey, body: { scopes: ["read"] } }),
  );
  const upgrade = { headers: { upgrade: "websocket" } };
  expect(await codeOf(call(at("runtime"), { bearer: reader.secretKey, ...upgrade }))).toBe("forbidden");
  expect(await codeOf(call(at("runtime"), { bearer: mona.token, ...upgrade }))).toBe("forbidden");
  expect(await codeOf(call(at("runtime"), { bearer: courier.token }))).toBe("upgrade_required");
});

test("[G6] [L7] [S5] a sign-out closes a socket within a second, and nothing more is done by it", async () => {
  const { id } = await house.agent({ name: "Leaving", runtime: "guest", continuity: "timeline" });
  const bearer = await house.token(id);
  const desk = await house.space("Leaving", [mona, { id }]);
  const { send, answerOf, frames, closed } = await openSocket(bearer, id);
  send({ type: "claim", id: "1" });
  await house.say(desk.id, mona, "stay");
  const { run } = ClaimedRun.parse(await answerOf("1"));
  send({ type: "claim", id: "2" });
  await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  const endedAt = Date.now();
  send({ type: "call", id: "3", runId: run.id, name: "send_message", input: { text: "after the end" }, key: "k" });
  send({ type: "complete", id: "4", runId: run.id });
  expect(await closed()).toBe(4401);
  expect(Date.now() - endedAt).toBeLessThan(2000);
  expect(frames.map(({ id: of }) => of)).toEqual(["1"]);
  const page = call(`/v1/spaces/${desk.id}/messages`, { bearer: mona.token });
  const { items } = await expectOk(z.object({ items: z.array(Message) }), page);
  expect(items.map(({ text }) => text)).toEqual(["stay"]);
});

test("[G6] [C19] a socket hears no word of a confidential space that it does not name", async () => {
  const { send, answerOf, frames } = await openSocket(courier.token);
  send({ type: "claim", id: "1" });
  const vault = await house.space("Vault", [mona, courier], { confidential: true });
  await house.say(vault.id, mona, "for the vault");
  await house.say(spaceId, mona, "for the desk");
  const { run } = ClaimedRun.parse(await answerOf("1"));
  send({ type: "complete", id: "2", runId: run.id });
  expect(await answerOf("2")).toMatchObject({ type: "ended" });
  const told = JSON.stringify(frames);
  expect(told).toContain("for the desk");
  expect(told).not.toContain("for the vault");
});

/** A confidential space of Mona, a guest and an admin who made the guest's token, and how the admin leaves it. */
const boardOf = async (name: string) => {
  const boss = await house.person("Boss", "admin");
  const { id } = await house.agent({ name, runtime: "guest", continuity: "timeline" });
  const board = await house.space(name, [mona, boss, { id }], { confidential: true });
  const minted = call("/v1/tokens", { bearer: boss.token, body: { entityId: id } });
  const { token: bearer } = await expectOk(z.object({ token: z.string() }), minted);
  // What its program asked before has come to the agent by then.
  const leave = async () => {
    expect((await call(`/v1/agents/${id}/toolset?space=${board.id}`, { bearer })).status).toBe(200);
    const left = await call(`/v1/spaces/${board.id}/members/${boss.id}`, { method: "DELETE", bearer: boss.token });
    expect(left.ok).toBe(true);
  };
  return { id, board, bearer, leave };
};

test("[G6] [C19] a socket by an admin's token hears nothing once the admin has left the space", async () => {
  const { id, board, bearer, leave } = await boardOf("Spied");
  const { send, answerOf, frames, closed } = await openSocket(bearer, id, `?space=${board.id}`);
  send({ type: "claim", id: "1" });
  await leave();
  await house.say(board.id, mona, "without the admin");
  await Promise.race([answerOf("1"), closed()]);
  expect(JSON.stringify(frames)).not.toContain("without the admin");
  expect(await closed()).toBe(4401);
});

test("[G6] [C19] a claim by an admin's token gets nothing once the admin has left the space", async () => {
  const { id, board, bearer, leave } = await boardOf("Waiting");
  const claims = `/v1/agents/${id}/claims?space=${board.id}`;
  await house.say(board.id, mona, "with the admin");
  const first = await expectOk(ClaimedRun, call(claims, { bearer, body: { waitSeconds: 5 } }));
  await call(`/v1/agents/${id}/runs/${first.run.id}/complete?space=${board.id}`, { bearer, body: {} });
  const claimed = call(claims, { bearer, body: { waitSeconds: 5 } });
  await leave();
  await house.say(board.id, mona, "without the admin");
  const answer = await claimed;
  expect([answer.status, await answer.text()]).toEqual([403, expect.not.stringContaining("without the admin")]);
});

test("[G6] [L7] a claim that waits gets nothing once its agent was signed out", async () => {
  const { id } = await house.agent({ name: "Patient", runtime: "guest", continuity: "timeline" });
  const bearer = await house.token(id);
  const desk = await house.space("Patient", [mona, { id }]);
  const claimed = call(`/v1/agents/${id}/claims`, { bearer, body: { waitSeconds: 5 } });
  expect((await call(`/v1/agents/${id}/toolset`, { bearer })).status).toBe(200);
  await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  await house.say(desk.id, mona, "who hears this?");
  expect(await codeOf(claimed)).toBe("unauthorized");
});

test("[G2] [L7] a call that took its time tells nothing once its agent was signed out", async () => {
  const url = `${inject("remote")}/received/${crypto.randomUUID()}`;
  await fetch(url, { method: "PUT", body: JSON.stringify({ answer: '"at the quay"', delayMs: 1000 }) });
  const tool = {
    ...{ name: "find_parcel", description: "Finds a parcel", executionType: "gateway" },
    ...{ inputSchema: { type: "object", properties: {} }, execution: { url, method: "POST" } },
  };
  const { id } = await house.agent({ name: "Finder", runtime: "guest", continuity: "timeline", tools: [tool] });
  const bearer = await house.token(id);
  const desk = await house.space("Finder", [mona, { id }]);
  await house.say(desk.id, mona, "where is it?");
  const { run } = await expectOk(ClaimedRun, call(`/v1/agents/${id}/claims`, { bearer, body: { waitSeconds: 5 } }));
  const body = { name: "find_parcel", input: {}, key: "1" };
  const answer = call(`/v1/agents/${id}/runs/${run.id}/calls`, { bearer, body });
  await pause(300);
  await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  expect(await codeOf(answer)).toBe("unauthorized");
});

/** A speech over HTTP whose first words come at once, and the others once it is told to go on. */
const speakSlowly = (bearer: string, agentId: string, runId: string) => {
  const told = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const write = (line: object) => controller.enqueue(new TextEncoder().encode(`${JSON.stringify(line)}\n`));
      write({ delta: "Word " });
      await told.promise;
      write({ delta: "by word." });
      write({ done: true });
      controller.close();
    },
  });
  const headers = { authorization: `Bearer ${bearer}`, "content-type": "application/x-ndjson" };
  const url = `https://colloquy.test/v1/agents/${agentId}/runs/${runId}/speech?key=slow`;
  const answer = exports.default.fetch(new Request(url, { method: "POST", headers, body }));
  return { answer, goOn: () => told.resolve() };
};

test("[G3] people see the words of a speech over HTTP grow while they come", async () => {
  const { id } = await house.agent({ name: "Teller", runtime: "guest", continuity: "timeline" });
  const bearer = await house.token(id);
  const desk = await house.space("Teller", [mona, { id }]);
  const stream = { bearer: mona.token, headers: { upgrade: "websocket" } };
  const socket = (await call(`/v1/spaces/${desk.id}/stream`, stream)).webSocket;
  const frames: string[] = [];
  socket?.addEventListener("message", ({ data }) => void frames.push(String(data)));
  socket?.accept();
  await house.say(desk.id, mona, "tell me");
  const claims = call(`/v1/agents/${id}/claims`, { bearer, body: { waitSeconds: 5 } });
  const { run } = await expectOk(ClaimedRun, claims);
  const { answer, goOn } = speakSlowly(bearer, id, run.id);
  const grown = vi.waitFor(() => expect(frames.join()).toContain('"Word "'));
  await grown.finally(goOn);
  expect((await expectOk(GuestCallAnswer, answer)).call.input).toEqual({ text: "Word by word." });
  socket?.close();
});

test("[G3] [S5] [L7] a speech under way breaks off once its agent was signed out", async () => {
  const { id } = await house.agent({ name: "Talker", runtime: "guest", continuity: "timeline" });
  const bearer = await house.token(id);
  const desk = await house.space("Talker", [mona, { id }]);
  await house.say(desk.id, mona, "go on");
  const claims = call(`/v1/agents/${id}/claims`, { bearer, body: { waitSeconds: 5 } });
  const { run } = await expectOk(ClaimedRun, claims);
  const { answer, goOn } = speakSlowly(bearer, id, run.id);
  await pause(500);
  await call(`/v1/entities/${id}/sign-out`, { method: "POST", bearer: house.secretKey });
  await pause(1000);
  goOn();
  expect(await codeOf(answer)).toBe("interrupted");
  const { items } = await expectOk(
    z.object({ items: z.array(Message) }),
    call(`/v1/spaces/${desk.id}/messages`, { bearer: mona.token }),
  );
  expect(items.map(({ text }) => text)).toEqual(["go on"]);
});
