import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import { unwrap } from "../../src/shared/errors.ts";
import {
  frameWindowMs,
  maxBadFrames,
  maxFrames,
  maxMemberFrames,
  maxReplayEvents,
  typingIntervalMs,
} from "../../src/space/bounds.ts";
import { entity, grow, house, recordReceivers } from "./fixture.ts";
import { type Listener, listen, upgrade } from "./listener.ts";

beforeAll(recordReceivers);
afterEach(() => {
  vi.useRealTimers();
});

const ann = entity("human", "Ann");
const ben = entity("human", "Ben");

test("a socket is welcomed with the space as it is, and hears what happens from then on", async () => {
  const home = await house([ann, ben]);
  unwrap(await home.rpc.post(home.as(ann), { text: "before" }));
  const socket = await listen(home, home.as(ben));
  const [welcome] = socket.of("welcome");
  expect(welcome).toMatchObject({
    cursor: 4,
    resumed: true,
    you: { id: ben.id, name: "Ben" },
    streams: [],
    active: [],
  });
  expect(welcome?.members.map(({ name }) => name)).toEqual(["Ann", "Ben"]);
  const { message } = unwrap(await home.rpc.post(home.as(ann), { text: "after" }));
  await socket.until("space.message");
  expect(socket.of("space.message")).toEqual([{ type: "space.message", cursor: 5, message }]);
});

test("[D3] a client that reconnects with a cursor gets each later event once, in order", async () => {
  const home = await house([ann, ben]);
  const first = await listen(home, home.as(ben), "?cursor=0");
  await first.until("member.joined", 2);
  unwrap(await home.rpc.post(home.as(ann), { text: "one" }));
  await first.until("space.message");
  first.socket.close(1000);
  unwrap(await home.rpc.post(home.as(ann), { text: "two" }));
  unwrap(await home.rpc.update(home.key, { name: "Hall" }));
  unwrap(await home.rpc.post(home.as(ann), { text: "three" }));
  const cursor = first.of("space.message")[0]?.cursor ?? 0;
  const second = await listen(home, home.as(ben), `?cursor=${cursor}`);
  unwrap(await home.rpc.post(home.as(ann), { text: "four" }));
  await second.until("space.message", 3);
  expect(second.types).toEqual(["space.message", "space.updated", "space.message", "space.message"]);
  expect(second.of("space.message").map(({ message }) => message.text)).toEqual(["two", "three", "four"]);
  expect(second.of("welcome")[0]).toMatchObject({ resumed: true, cursor });
});

test("[D3] a cursor that is too far behind, or ahead of the log, is said and not papered over", async () => {
  const home = await house([ann, ben]);
  const [future] = (await listen(home, home.as(ben), "?cursor=99")).of("welcome");
  expect(future).toMatchObject({ resumed: false, cursor: 3 });
  await grow(home, maxReplayEvents);
  const far = await listen(home, home.as(ben), "?cursor=0");
  expect(far.of("welcome")[0]).toMatchObject({ resumed: false, cursor: maxReplayEvents + 3 });
  unwrap(await home.rpc.post(home.as(ann), { text: "now" }));
  await far.until("space.message");
  expect(far.types).toEqual(["space.message"]);
  const near = await listen(home, home.as(ben), "?cursor=4");
  await near.until("space.message");
  expect(near.of("member.renamed")).toHaveLength(maxReplayEvents - 1);
});

test("[S4] a malformed cursor, a plain request and a stranger are refused by a problem", async () => {
  const home = await house([ann]);
  const status = async (response: Promise<Response>) => {
    const answered = await response;
    const { code } = await answered.json<{ code: string }>();
    return [answered.status, code, answered.headers.get("content-type")];
  };
  const type = "application/problem+json";
  for (const cursor of ["x", "-1", "1.5", ""]) {
    expect(await status(upgrade(home, home.as(ann), `?cursor=${cursor}`))).toEqual([400, "invalid_cursor", type]);
  }
  expect(await status(upgrade(home, home.as(ben)))).toEqual([404, "not_found", type]);
  expect(await status(upgrade(home, { ...home.as(ann), expiresAt: 1 }))).toEqual([401, "token_expired", type]);
  expect(await status(upgrade(home, home.key))).toEqual([422, "acting_entity_required", type]);
  const plain = home.rpc.fetch(new Request("https://colloquy.test/stream"));
  expect(await status(plain)).toEqual([426, "upgrade_required", type]);
});

test("[D1] a message sent by frame is answered by itself, once however often it is sent", async () => {
  const home = await house([ann, ben]);
  const [mine, theirs] = [await listen(home, home.as(ann)), await listen(home, home.as(ben))];
  const frame = { type: "message.send", clientKey: "k1", text: "hello" };
  mine.send(frame);
  await mine.until("space.message");
  mine.send(frame);
  await mine.until("space.message", 2);
  const [first, second] = mine.of("space.message");
  expect(second).toEqual(first);
  expect(first?.message).toMatchObject({ text: "hello", clientKey: "k1" });
  expect(theirs.of("space.message")).toEqual([first]);
});

test("read marks and typing reach the others", async () => {
  const home = await house([ann, ben]);
  const [mine, theirs] = [await listen(home, home.as(ann)), await listen(home, home.as(ben))];
  const { message } = unwrap(await home.rpc.post(home.as(ben), { text: "seen?" }));
  mine.send({ type: "typing" });
  mine.send({ type: "typing" });
  mine.send({ type: "read", messageId: message.id });
  await theirs.until("member.read");
  expect(theirs.of("member.read")).toEqual([
    { type: "member.read", cursor: 5, entityId: ann.id, messageId: message.id },
  ]);
  expect(theirs.of("member.typing")).toEqual([{ type: "member.typing", entityId: ann.id }]);
  expect(mine.of("member.typing")).toEqual([]);
});

test("[S4] a bad frame gets an error that names what is wrong; the socket stays open", async () => {
  const home = await house([ann]);
  const socket = await listen(home, home.as(ann));
  socket.send("{");
  socket.send({ type: "shout" });
  socket.send({ type: "message.send", clientKey: "k1", text: "  " });
  socket.send({ type: "message.send", clientKey: "k2", text: "x".repeat(32 * 1024 + 1) });
  socket.send({ type: "read", messageId: "msg_1" });
  socket.socket.send(new Uint8Array([1, 2, 3]));
  await socket.until("error", 6);
  const errors = socket.of("error");
  expect(errors.map(({ code }) => code)).toEqual([
    "bad_frame",
    "bad_frame",
    "bad_frame",
    "text_too_long",
    "bad_frame",
    "bad_frame",
  ]);
  expect(errors[2]).toMatchObject({ clientKey: "k1", issues: [{ path: "text", message: "must not be blank" }] });
  expect(errors[3]).toMatchObject({ clientKey: "k2", status: 413 });
  socket.send({ type: "message.send", clientKey: "k3", text: "still here" });
  await socket.until("space.message");
});

test("[B3] a flood of bad frames closes the socket with 4400, one of good frames with 4429", async () => {
  const home = await house([ann]);
  const bad = await listen(home, home.as(ann));
  for (let index = 0; index <= maxBadFrames; index += 1) bad.send("nonsense");
  expect(await bad.untilClosed()).toMatchObject({ code: 4400, reason: expect.stringContaining("(maxBadFrames)") });
  const fast = await listen(home, home.as(ann));
  for (let index = 0; index <= maxFrames; index += 1) fast.send({ type: "typing" });
  const reason = expect.stringMatching(/\(maxFrames\): wait ([1-9]|10) s$/);
  expect(await fast.untilClosed()).toMatchObject({ code: 4429, reason });
});

test("[B3] a member's sockets share one window; the close says when to come back", async () => {
  const home = await house([ann, ben]);
  const opened = await Promise.all(Array.from({ length: 5 }, () => listen(home, home.as(ann))));
  const hears = await listen(home, home.as(ben));
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
  const say = (socket: Listener, at: number) => {
    for (let index = 0; index < maxFrames; index += 1) {
      socket.send({ type: "message.send", clientKey: `${at} ${index}`, text: "me!" });
    }
  };
  for (const [at, socket] of opened.slice(0, 2).entries()) say(socket, at);
  await hears.until("space.message", maxMemberFrames);
  for (const [at, socket] of opened.slice(2).entries()) {
    say(socket, at + 2);
    const { code, reason } = await socket.untilClosed();
    expect([code, reason]).toEqual([4429, expect.stringMatching(/maxMemberFrames\): wait 10 s$/)]);
    expect(reason.length).toBeLessThanOrEqual(123);
  }
  expect(hears.of("space.message")).toHaveLength(maxMemberFrames);
  const again = await listen(home, home.as(ann));
  again.send({ type: "message.send", clientKey: "again", text: "and again" });
  expect((await again.untilClosed()).code).toBe(4429);
  hears.send({ type: "message.send", clientKey: "mine", text: "may I?" });
  await hears.until("space.message", maxMemberFrames + 1);
  expect(hears.of("space.message").at(-1)?.message.text).toBe("may I?");
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + frameWindowMs });
  const later = await listen(home, home.as(ann));
  later.send({ type: "message.send", clientKey: "later", text: "sorry" });
  await hears.until("space.message", maxMemberFrames + 2);
});

test("[S5] a removed member's sockets close at once with 4403, and hear nothing of it", async () => {
  const home = await house([ann, ben]);
  const [mine, theirs] = [await listen(home, home.as(ann)), await listen(home, home.as(ben))];
  unwrap(await home.rpc.removeMember(home.key, ben.id));
  expect((await theirs.untilClosed()).code).toBe(4403);
  await mine.until("member.left");
  expect(theirs.types).toEqual([]);
});

test("[S5] what a removed member's client sends before it hears of that reaches nobody", async () => {
  const home = await house([ann, ben]);
  const [mine] = [await listen(home, home.as(ann)), await listen(home, home.as(ben))];
  await runInDurableObject(home.stub, async (space, state) => {
    const isBens = (socket: WebSocket) => JSON.stringify(socket.deserializeAttachment()).includes(ben.id);
    const [bens] = state.getWebSockets().filter(isBens);
    if (!bens) throw new Error("Ben has no socket");
    const types = () => space.webSocketMessage(bens, JSON.stringify({ type: "typing" }));
    await types();
    await space.removeMember(home.key, ben.id);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + typingIntervalMs });
    await types();
  });
  await mine.until("member.left");
  unwrap(await home.rpc.post(home.as(ann), { text: "gone?" }));
  await mine.until("space.message");
  expect(mine.types).toEqual(["member.typing", "member.left", "space.message"]);
});

test("a deleted space closes its sockets with 4404", async () => {
  const home = await house([ann]);
  const socket = await listen(home, home.as(ann));
  unwrap(await home.rpc.remove(home.key));
  expect((await socket.untilClosed()).code).toBe(4404);
});

test("[S5] a socket closes with 4401 when its token expires, and the others stay", async () => {
  const home = await house([ann, ben]);
  const soon = await listen(home, { ...home.as(ann), expiresAt: Date.now() + 30_000 });
  const later = await listen(home, { ...home.as(ben), expiresAt: Date.now() + 90_000 });
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 30_001 });
  expect(await runDurableObjectAlarm(home.stub)).toBe(true);
  vi.useRealTimers();
  expect((await soon.untilClosed()).code).toBe(4401);
  expect(later.closed).toBeUndefined();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 90_001 });
  later.send({ type: "typing" });
  expect((await later.untilClosed()).code).toBe(4401);
});

test("[S5] each socket closes when its own token expires, though its client says nothing", async () => {
  const home = await house([ann, ben]);
  const lives = [10_000, 20_000, 40_000];
  const sockets = [];
  for (const life of lives) sockets.push(await listen(home, { ...home.as(ann), expiresAt: Date.now() + life }));
  const begun = Date.now();
  for (const [index, socket] of sockets.entries()) {
    vi.useFakeTimers({ toFake: ["Date"], now: begun + (lives[index] ?? 0) });
    expect(await runDurableObjectAlarm(home.stub)).toBe(true);
    expect((await socket.untilClosed()).code).toBe(4401);
    expect(sockets.filter(({ closed }) => closed === undefined)).toHaveLength(lives.length - index - 1);
  }
});

test("[D3] sockets outlive the sleep of their space", async () => {
  const home = await house([ann, ben]);
  const socket = await listen(home, home.as(ben));
  await evictDurableObject(home.stub);
  unwrap(await home.rpc.post(home.as(ann), { text: "good morning" }));
  await socket.until("space.message");
  await evictDurableObject(home.stub);
  socket.send({ type: "message.send", clientKey: "k1", text: "good night" });
  await socket.until("space.message", 2);
  expect(socket.of("space.message").map(({ message }) => message.sender.name)).toEqual(["Ann", "Ben"]);
});
