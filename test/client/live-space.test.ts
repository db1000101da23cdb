import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createClient, type LiveSpace, type OpenSpaceOptions } from "../../src/client/index.ts";
import { closeCodes } from "../../src/protocol/events.ts";
import { type Peer, type PeerSpace, startPeer } from "../support/node/peer.ts";
import { until } from "../support/node/until.ts";

let peer: Peer;
let husam: ReturnType<Peer["entity"]>;
let sara: ReturnType<Peer["entity"]>;
let nova: ReturnType<Peer["entity"]>;
let space: PeerSpace;
const lives: LiveSpace[] = [];

const timings = { minDelayMs: 5, maxDelayMs: 20 };

const open = (options: OpenSpaceOptions = {}, token = peer.token(husam)): LiveSpace => {
  const live = createClient({ baseUrl: peer.url, token }).openSpace(space.space.id, { timings, ...options });
  lives.push(live);
  return live;
};

const ready = (live: LiveSpace) =>
  until(live, (state) => state.connection.status === "open" && state.history.status === "ready");

const opened = async (options?: OpenSpaceOptions, token?: string): Promise<LiveSpace> => {
  const live = open(options, token);
  await ready(live);
  return live;
};

const texts = (live: LiveSpace) => live.getSnapshot().messages.map((message) => message.text);

beforeEach(async () => {
  peer = await startPeer();
  husam = peer.entity("human", "Husam");
  sara = peer.entity("human", "Sara");
  nova = peer.entity("agent", "Nova");
  space = peer.createSpace("Project Alpha", [husam, sara, nova]);
});

afterEach(async () => {
  for (const live of lives.splice(0)) live.close();
  await peer.stop();
});

test("a live space shows messages from before it was opened and new ones", async () => {
  space.post(sara, { text: "before" });
  const live = await opened();
  space.post(sara, { text: "after" });
  await until(live, (state) => state.messages.length === 2);
  expect(texts(live)).toEqual(["before", "after"]);
  expect(live.getSnapshot().members.map((member) => member.name)).toEqual(["Husam", "Sara", "Nova"]);
});

test("[D3] after a dropped connection each later event comes once and in order", async () => {
  const live = await opened();
  space.post(sara, { text: "one" });
  await until(live, (state) => state.messages.length === 1);
  space.drop();
  space.post(sara, { text: "two" });
  space.post(nova, { text: "three" });
  await until(live, (state) => state.messages.length === 3);
  expect(texts(live)).toEqual(["one", "two", "three"]);
  expect(peer.openings).toEqual([null, 4]);
});

test("[D3] events that the server sends twice show once", async () => {
  const live = await opened();
  space.post(sara, { text: "one" });
  for (const event of space.log) space.broadcast(event);
  space.post(sara, { text: "two" });
  await until(live, (state) => state.messages.some((message) => message.text === "two"));
  expect(texts(live)).toEqual(["one", "two"]);
});

test("[D3] a running stream is complete again after a reconnect", async () => {
  const live = await opened();
  const stream = space.begin(nova);
  stream.delta("Hello");
  await until(live, (state) => state.streams[0]?.text === "Hello");
  space.drop();
  stream.delta(", wor");
  await until(live, (state) => state.streams[0]?.text === "Hello, wor");
  stream.delta("ld");
  await until(live, (state) => state.streams[0]?.text === "Hello, world");
  stream.say();
  const state = await until(live, ({ messages }) => messages.length === 1);
  expect(state.streams).toEqual([]);
  expect(texts(live)).toEqual(["Hello, world"]);
});

test("[D4] a stream that fails while the connection is down leaves no text", async () => {
  const live = await opened();
  const stream = space.begin(nova);
  stream.delta("never said");
  await until(live, (state) => state.streams.length === 1);
  space.drop();
  stream.fail("interrupted", "The agent was interrupted.");
  await until(live, (state) => state.streams.length === 0);
  expect(texts(live)).toEqual([]);
});

test("[D3] a cursor that is too old to resume loads the timeline anew", async () => {
  for (let index = 0; index < 3; index += 1) space.post(sara, { text: `old ${index}` });
  const live = await opened();
  await until(live, (state) => state.messages.length === 3);
  peer.refuses = "unavailable";
  space.drop();
  for (let index = 0; index < 60; index += 1) space.post(sara, { text: `new ${index}` });
  space.keptAfter = space.head - 5;
  peer.refuses = null;
  const state = await until(live, ({ messages }) => messages.at(-1)?.text === "new 59");
  expect(state.messages).toHaveLength(50);
  expect(state.history).toMatchObject({ status: "ready", hasOlder: true });
  await live.loadOlder();
  expect(texts(live)).toHaveLength(63);
});

test("a history that could not be loaded can be loaded again", async () => {
  space.post(sara, { text: "hello" });
  const live = open();
  const stop = live.subscribe(() => {
    if (live.getSnapshot().connection.status === "open") peer.refuses = "unavailable";
  });
  const { history } = await until(live, (state) => state.history.status === "failed");
  expect(history).toEqual({ status: "failed", message: "The peer was told to refuse." });
  stop();
  peer.refuses = null;
  live.reloadHistory();
  expect(live.getSnapshot().history).toEqual({ status: "loading" });
  await ready(live);
  expect(texts(live)).toEqual(["hello"]);
});

test("older messages that could not be loaded can be loaded again", async () => {
  for (let index = 0; index < 60; index += 1) space.post(sara, { text: `old ${index}` });
  const live = await opened();
  peer.refuses = "unavailable";
  const refused = live.loadOlder();
  expect(live.getSnapshot().history).toMatchObject({ loadingOlder: true });
  await expect(refused).rejects.toMatchObject({ code: "unavailable" });
  expect(live.getSnapshot().history).toEqual({ status: "ready", hasOlder: true, loadingOlder: false });
  peer.refuses = null;
  await live.loadOlder();
  expect(live.getSnapshot().history).toEqual({ status: "ready", hasOlder: false, loadingOlder: false });
  expect(texts(live)).toHaveLength(60);
});

test("[D1] a message without an answer is sent again under its clientKey, and shows once", async () => {
  const live = await opened();
  space.swallows = true;
  const clientKey = live.send("are you there?");
  await vi.waitUntil(() => space.received.length === 1);
  expect(live.getSnapshot().outgoing).toMatchObject([{ clientKey, status: { kind: "pending" } }]);
  space.swallows = false;
  space.drop();
  const state = await until(live, ({ messages }) => messages.length === 1);
  expect(state.outgoing).toEqual([]);
  expect(space.messages.map((message) => message.text)).toEqual(["are you there?"]);
});

test("[D1] a message whose answer was lost after it was stored shows once", async () => {
  const live = await opened();
  peer.refuses = "unavailable";
  space.drop();
  await until(live, (state) => state.connection.status === "reconnecting");
  const clientKey = live.send("once");
  space.post(husam, { text: "once", clientKey });
  peer.refuses = null;
  const state = await until(live, ({ outgoing }) => outgoing.length === 0);
  expect(state.messages.map((message) => message.text)).toEqual(["once"]);
  expect(space.messages).toHaveLength(1);
});

test("a refused message keeps its reason, and can be sent again", async () => {
  const live = await opened();
  space.swallows = true;
  const clientKey = live.send("hello");
  const refusal = { type: "error", clientKey, title: "Too many requests", status: 429, code: "rate_limited" } as const;
  space.broadcast({ ...refusal, detail: "Slow down." });
  await until(live, (state) => state.outgoing[0]?.status.kind === "failed");
  space.swallows = false;
  live.retry(clientKey);
  const state = await until(live, ({ messages }) => messages.length === 1);
  expect(state.outgoing).toEqual([]);
});

test("[D1] a message not sent before its space was closed is sent as it is opened again", async () => {
  let kept: string | null = null;
  const keep = (text: string | null): void => {
    kept = text;
  };
  const outbox = { load: () => kept, keep };
  const live = open({ outbox });
  const clientKey = live.send("Wait for me");
  live.close();
  const again = await opened({ outbox });
  await until(again, (state) => state.messages.length === 1);
  expect(again.getSnapshot().messages).toMatchObject([{ text: "Wait for me", clientKey }]);
  expect([again.getSnapshot().outgoing, kept]).toEqual([[], null]);
  // An entry that somebody else has put there is no message.
  kept = '[{"text":1}]';
  expect((await opened({ outbox })).getSnapshot().outgoing).toEqual([]);
});

test("a blank or too long text is refused before it is sent", async () => {
  const live = await opened();
  expect(() => live.send("  ")).toThrowError(expect.objectContaining({ code: "invalid_request" }));
  expect(() => live.send("ü".repeat(16_385))).toThrowError(/32768 bytes/);
  expect(live.getSnapshot().outgoing).toEqual([]);
});

test("[S5] the live space closes when its person is removed", async () => {
  const live = await opened();
  space.leave(husam.id);
  const state = await until(live, ({ connection }) => connection.status === "closed");
  expect(state.connection).toEqual({ status: "closed", reason: "removed" });
});

test("[S5] the live space goes on after an expired token is refreshed", async () => {
  const refreshed: string[] = [];
  const client = createClient({
    baseUrl: peer.url,
    token: peer.token(husam),
    refreshToken: async () => {
      refreshed.push("once");
      return peer.token(husam);
    },
  });
  const live = client.openSpace(space.space.id, { timings });
  lives.push(live);
  await ready(live);
  space.close(closeCodes.tokenExpired);
  space.post(sara, { text: "still here?" });
  await until(live, (state) => state.messages.length === 1 && state.connection.status === "open");
  expect(refreshed).toEqual(["once"]);
});

test("[S5] an expired token that cannot be refreshed signs out", async () => {
  const live = await opened();
  space.close(closeCodes.tokenExpired);
  const state = await until(live, ({ connection }) => connection.status === "closed");
  expect(state.connection).toEqual({ status: "closed", reason: "signed_out" });
});

test("a token that was never valid signs out instead of reconnecting for ever", async () => {
  const live = open({}, peer.token(husam, -1000));
  const state = await until(live, ({ connection }) => connection.status === "closed");
  expect(state.connection).toEqual({ status: "closed", reason: "signed_out" });
});

test("a connection that died silently is noticed by its heartbeat and replaced", async () => {
  const live = await opened({ timings: { ...timings, heartbeatMs: 20, silenceMs: 20 } });
  for (const socket of space.sockets.keys()) socket.pause();
  await until(live, (state) => state.connection.status === "reconnecting");
  space.post(sara, { text: "back" });
  await until(live, (state) => state.messages.length === 1);
  expect(texts(live)).toEqual(["back"]);
});

test("[S5] each opening sends a ping at once, so that a close by the server takes no 10 s", async () => {
  const live = await opened();
  await vi.waitUntil(() => peer.pings === 1);
  space.drop();
  await until(live, (state) => state.connection.status === "reconnecting");
  await ready(live);
  await vi.waitUntil(() => peer.pings === 2);
  expect(peer.openings).toHaveLength(2);
});

test("typing shows to other members, and is sent at most every three seconds", async () => {
  const live = await opened();
  const other = await opened({}, peer.token(sara));
  live.typing();
  live.typing();
  const state = await until(other, ({ typing }) => typing.length === 1);
  expect(state.typing[0]?.entityId).toBe(husam.id);
  expect(space.received).toEqual([{ type: "typing" }]);
});

test("a malformed frame is reported, and a frame of an unknown type is ignored", async () => {
  const live = await opened();
  const problems: string[] = [];
  live.onProblem((problem) => problems.push(problem.detail));
  for (const socket of space.sockets.keys()) {
    socket.send("{");
    socket.send(JSON.stringify({ type: "space.weather", sky: "clear" }));
    socket.send(JSON.stringify({ type: "member.typing", entityId: 7 }));
  }
  space.post(sara, { text: "fine" });
  await until(live, (current) => current.messages.length === 1);
  expect(problems).toEqual([
    "A frame of the server is not JSON.",
    "A member.typing frame of the server does not have the expected shape.",
  ]);
});

test.each(["opened", "closed"])(
  "[L6] a space that is %s while suspended says so and is read, and goes on",
  async (how) => {
    space.post(sara, { text: "before" });
    peer.isSuspended = how === "opened";
    const live = how === "opened" ? open() : await opened();
    peer.isSuspended = true;
    space.close(closeCodes.suspended);
    await until(live, (state) => state.isSuspended && state.history.status === "ready");
    expect(texts(live)).toEqual(["before"]);
    live.send("meanwhile");
    peer.isSuspended = false;
    const state = await until(live, ({ outgoing, messages }) => outgoing.length === 0 && messages.length === 2);
    expect([texts(live), state.isSuspended]).toEqual([["before", "meanwhile"], false]);
  },
);
