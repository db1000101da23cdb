import { afterEach, beforeEach, expect, test } from "vitest";
import { ColloquyError, createClient } from "../../src/client/index.ts";
import { type Peer, startPeer } from "../support/node/peer.ts";
import { until } from "../support/node/until.ts";

let peer: Peer;
let husam: ReturnType<Peer["entity"]>;
let sara: ReturnType<Peer["entity"]>;

const clientOf = (token = peer.token(husam)) => createClient({ baseUrl: peer.url, token });

beforeEach(async () => {
  peer = await startPeer();
  husam = peer.entity("human", "Husam");
  sara = peer.entity("human", "Sara");
});

afterEach(() => peer.stop());

test("a client creates a space, reads its timeline in pages, and leaves it", async () => {
  const client = clientOf();
  const { id } = await client.createSpace({ name: "Alpha", members: [sara.id] });
  expect((await client.getSpace(id)).members?.map((member) => member.name)).toEqual(["Husam", "Sara"]);
  for (const text of ["one", "two", "three"]) await client.postMessage(id, { text });
  const newest = await client.listMessages(id, { limit: 2 });
  expect(newest).toMatchObject({ items: [{ text: "two" }, { text: "three" }], hasOlder: true });
  const older = await client.listMessages(id, { limit: 2, before: newest.items[0]?.seq ?? 0 });
  expect(older).toMatchObject({ items: [{ text: "one" }], hasOlder: false });
  await client.removeMember(id, husam.id);
  await expect(client.getSpace(id)).rejects.toMatchObject({ code: "not_found" });
});

test("[D1] a message that is posted twice under one clientKey is stored once", async () => {
  const client = clientOf();
  const { id } = await client.createSpace({ name: "Alpha" });
  const first = await client.postMessage(id, { text: "once", clientKey: "k1" });
  const second = await client.postMessage(id, { text: "once", clientKey: "k1" });
  expect(second.id).toBe(first.id);
});

test("a tool call that waits takes one answer", async () => {
  const nova = peer.entity("agent", "Nova");
  const space = peer.createSpace("Alpha", [husam, sara, nova]);
  const { toolCall } = space.ask(nova, "choose", { of: ["red", "blue"] });
  const id = toolCall?.id ?? "";
  const answered = await clientOf().answerToolCall(space.space.id, id, { result: { color: "red" } });
  expect(answered.toolCall).toMatchObject({ status: "complete", output: { color: "red" } });
  const late = clientOf().answerToolCall(space.space.id, id, { error: { message: "none of them" } });
  await expect(late).rejects.toMatchObject({ code: "conflict" });
});

test("[S4] a refusal is the ColloquyError of its problem document", async () => {
  peer.refuses = "rate_limited";
  const refusal = await clientOf()
    .listSpaces()
    .catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(ColloquyError);
  expect(refusal).toMatchObject({ code: "rate_limited", message: "The peer was told to refuse.", retryable: true });
});

test("a request to a server that cannot be reached rejects with unavailable", async () => {
  const client = clientOf();
  await peer.stop();
  await expect(client.listSpaces()).rejects.toMatchObject({ code: "unavailable", retryable: true });
  peer = await startPeer();
});

test("[S5] requests that find the token expired at the same time refresh it once", async () => {
  let refreshes = 0;
  const client = createClient({
    baseUrl: peer.url,
    token: peer.token(husam, -1000),
    refreshToken: async () => {
      refreshes += 1;
      return peer.token(husam);
    },
  });
  const pages = await Promise.all([client.listSpaces(), client.listSpaces(), client.getEntity(husam.id)]);
  expect(pages[2].name).toBe("Husam");
  expect(refreshes).toBe(1);
});

test("[L6] a line that does not open shows the spaces as a request tells them, then opens", async () => {
  const space = peer.createSpace("Alpha", [husam, sara]);
  space.post(sara, { text: "hello" });
  peer.isSuspended = true;
  const line = clientOf().openLine({ timings: { minDelayMs: 1, maxDelayMs: 5 } });
  const listed = await until(line, (state) => state.status === "ready");
  expect(listed).toMatchObject({ spaces: [{ name: "Alpha", unread: 1, preview: { text: "hello" } }], problem: null });
  peer.isSuspended = false;
  await until(line, (state) => state.status === "ready" && state.spaces[0]?.preview === undefined);
  line.close();
});

test("[I1] a line keeps what it knows while the server is unavailable, and goes on", async () => {
  const space = peer.createSpace("Alpha", [husam, sara]);
  const line = clientOf().openLine({ timings: { minDelayMs: 1, maxDelayMs: 5 } });
  const ready = await until(line, (state) => state.status === "ready");
  expect(ready).toMatchObject({ spaces: [{ name: "Alpha", unread: 0 }], needsYou: [], notifications: [] });
  space.post(sara, { text: "hello" });
  peer.tellLine(husam, { type: "space.summary", ...space.summary(husam.id) });
  await until(line, (state) => state.status === "ready" && state.spaces[0]?.unread === 1);
  peer.refuses = "unavailable";
  peer.dropLines();
  const state = await until(line, (one) => one.status === "ready" && one.problem !== null);
  expect(state).toMatchObject({ spaces: [{ name: "Alpha", unread: 1 }], problem: { code: "unavailable" } });
  peer.refuses = null;
  space.post(sara, { text: "and more" });
  await until(line, (one) => one.status === "ready" && one.problem === null && one.spaces[0]?.unread === 2);
  line.close();
});
