import { beforeAll, expect, test, vi } from "vitest";
import type { ChannelFrame } from "../../src/protocol/events.ts";
import type { EntityRef } from "../../src/protocol/rpc.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { called, entity, type House, house, ids, recordReceivers, said } from "./fixture.ts";
import { listen } from "./listener.ts";

beforeAll(recordReceivers);

const ann = entity("human", "Ann");
const robo = entity("agent", "Robo");

/** An agent's end of a channel. */
const speaker = (home: House, agent: EntityRef, run = "run") => {
  const { readable, writable } = new IdentityTransformStream();
  const runId = ids.deriveOwned("run", agent.id, run);
  const answer = home.rpc.speak({ workspaceId: home.workspaceId, agentId: agent.id, runId }, readable);
  answer.catch(() => undefined);
  const writer = writable.getWriter();
  const write = (bytes: Uint8Array): void => void writer.write(bytes).catch(() => undefined);
  return {
    answer,
    runId,
    write,
    say: (...frames: ChannelFrame[]): void =>
      write(new TextEncoder().encode(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""))),
    hangUp: (): void => void writer.close().catch(() => undefined),
    crash: (): void => void writer.abort(new Error("crashed")).catch(() => undefined),
  };
};

const start = (streamId: string): ChannelFrame => ({
  type: "start",
  streamId,
  toolName: "send_message",
  speaks: true,
});
const delta = (streamId: string, text: string): ChannelFrame => ({ type: "delta", streamId, text });

test("[D4] a message grows before everyone's eyes and ends as itself, all its text told", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  agent.say({ type: "active" }, { type: "run", event: "run.started" }, start(streamId), delta(streamId, "Good "));
  await socket.until("tool-input-delta");
  agent.say(delta(streamId, "morning"), delta(streamId, ", "), delta(streamId, "Ann."));
  await vi.waitUntil(() => socket.textOf(streamId) === "Good morning, Ann.");
  const message = unwrap(await home.rpc.append({ ...said(home, robo, "Good morning, Ann."), streamId }));
  agent.say(delta(streamId, "too late"), { type: "run", event: "run.completed", outcome: "answered" }, { type: "end" });
  await socket.until("agent.inactive");
  expect(await agent.answer).toEqual({ ok: true, value: null });
  expect(socket.of("space.message")).toEqual([{ type: "space.message", cursor: message.seq, message }]);
  expect(message.streamId).toBe(streamId);
  expect(socket.textOf(streamId)).toBe("Good morning, Ann.");
  expect(socket.types.filter((type) => type !== "tool-input-delta")).toEqual([
    "agent.active",
    "run.started",
    "tool-call.start",
    "space.message",
    "run.completed",
    "agent.inactive",
  ]);
  expect(socket.types.indexOf("space.message")).toBeGreaterThan(socket.types.lastIndexOf("tool-input-delta"));
});

test("[D4] text that waits for its turn is told before the message", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  agent.say(start(streamId), ...Array.from("abcdefgh", (text) => delta(streamId, text)));
  await socket.until("tool-input-delta");
  unwrap(await home.rpc.append({ ...said(home, robo, "abcdefgh"), streamId }));
  await socket.until("space.message");
  expect(socket.textOf(streamId)).toBe("abcdefgh");
  expect(socket.of("tool-input-delta").length).toBeLessThanOrEqual(2);
});

test("[D4] a message that overtakes its own stream leaves no trace of the stream", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  unwrap(await home.rpc.append({ ...said(home, robo, "first"), streamId }));
  agent.say(start(streamId), delta(streamId, "first"), { type: "active" }, { type: "end" });
  await socket.until("agent.inactive");
  expect(socket.types).toEqual(["space.message", "agent.active", "agent.inactive"]);
});

test("[D4] a stream that is dropped, or left open at the end, ends in tool-call.error", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const [dropped, open] = [ids.mint("str"), ids.mint("str")];
  const agent = speaker(home, robo);
  agent.say(start(dropped), start(open), delta(dropped, "um"), delta(open, "hm"), {
    type: "drop",
    streamId: dropped,
    code: "tool_input_invalid",
    message: "not like this",
  });
  await socket.until("tool-call.error");
  agent.say(delta(dropped, "more"), { type: "end" });
  await socket.until("tool-call.error", 2);
  expect(socket.of("tool-call.error").map(({ streamId, code }) => [streamId, code])).toEqual([
    [dropped, "tool_input_invalid"],
    [open, "interrupted"],
  ]);
  expect(socket.textOf(dropped)).toBe("um");
});

test("[D4] a channel that breaks without its end gives up its streams and its agent's presence", async () => {
  const home = await house([ann, robo]);
  for (const breaks of ["hangUp", "crash"] as const) {
    const socket = await listen(home, home.as(ann));
    const streamId = ids.mint("str");
    const agent = speaker(home, robo, breaks);
    agent.say({ type: "active" }, start(streamId), delta(streamId, "I was about to"));
    await socket.until("tool-input-delta");
    agent[breaks]();
    await socket.until("agent.inactive");
    expect(socket.of("tool-call.error")).toMatchObject([{ streamId, code: "interrupted" }]);
    expect(socket.of("agent.inactive")).toMatchObject([{ entityId: robo.id, reason: "interrupted" }]);
    const [welcome] = (await listen(home, home.as(ann))).of("welcome");
    expect(welcome).toMatchObject({ streams: [], active: [] });
  }
});

test("[D4] a channel that makes no sense is broken off, and its writer is not left hanging", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const agent = speaker(home, robo);
  agent.say({ type: "active" });
  agent.write(new TextEncoder().encode('{"type":"sing"}\n'));
  expect(await agent.answer).toMatchObject({ ok: false, problem: { code: "interrupted" } });
  await socket.until("agent.inactive");
});

test("[D3] who connects in the middle gets the text so far and then the rest, nothing twice", async () => {
  const home = await house([ann, robo]);
  const early = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  agent.say({ type: "active" }, start(streamId), delta(streamId, "one "), delta(streamId, "two "));
  await early.until("tool-input-delta");
  const late = await listen(home, home.as(ann));
  const { runId } = agent;
  expect(late.of("welcome")[0]).toMatchObject({
    streams: [{ type: "stream.snapshot", streamId, runId, entityId: robo.id, toolName: "send_message", speaks: true }],
    active: [{ entityId: robo.id, runId }],
  });
  agent.say(delta(streamId, "three"));
  await vi.waitUntil(() => early.textOf(streamId) === "one two three" && late.textOf(streamId) === "one two three");
});

test("a second channel of a run, after its agent's restart, takes the place of the first", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const first = speaker(home, robo);
  first.say({ type: "active" }, start(streamId), delta(streamId, "half a sen"));
  await socket.until("tool-input-delta");
  const second = speaker(home, robo);
  second.say({ type: "active" }, start(streamId), delta(streamId, "a whole sentence"));
  await socket.until("tool-call.start", 2);
  expect(await first.answer).toMatchObject({ ok: false, problem: { code: "interrupted" } });
  unwrap(await home.rpc.append({ ...said(home, robo, "a whole sentence"), streamId }));
  second.say({ type: "end" });
  await socket.until("agent.inactive");
  expect(socket.types.filter((type) => type !== "tool-input-delta")).toEqual([
    ...["agent.active", "tool-call.start", "tool-call.error"],
    ...["agent.active", "tool-call.start", "space.message", "agent.inactive"],
  ]);
});

test("[D4] a replayed run that says again what was said before shows nothing twice", async () => {
  const home = await house([ann, robo]);
  const message = unwrap(await home.rpc.append({ ...said(home, robo, "said"), streamId: ids.mint("str") }));
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  agent.say(start(streamId), delta(streamId, "said"));
  await socket.until("tool-input-delta");
  expect(unwrap(await home.rpc.append({ ...said(home, robo, "said"), streamId }))).toEqual(message);
  await socket.until("tool-call.error");
  expect(socket.of("space.message")).toEqual([]);
});

test("[S1] non-members and other workspaces cannot speak; who is removed is cut off", async () => {
  const home = await house([ann, robo]);
  const stranger = speaker(home, entity("agent", "Eve"));
  expect(await stranger.answer).toMatchObject({ ok: false, problem: { code: "not_a_member" } });
  const foreign = speaker({ ...home, workspaceId: ids.mint("wsp"), rpc: home.rpc }, robo);
  expect(await foreign.answer).toMatchObject({ ok: false, problem: { code: "not_found" } });
  const socket = await listen(home, home.as(ann));
  const agent = speaker(home, robo);
  const streamId = ids.mint("str");
  agent.say({ type: "active" }, start(streamId));
  await socket.until("tool-call.start");
  unwrap(await home.rpc.removeMember(home.key, robo.id));
  expect(await agent.answer).toMatchObject({ ok: false, problem: { code: "not_a_member" } });
  await socket.until("member.left");
  expect(socket.types).toEqual(["agent.active", "tool-call.start", "tool-call.error", "agent.inactive", "member.left"]);
  const appended = await home.rpc.append({ ...said(home, robo, "still here"), streamId });
  expect(appended).toMatchObject({ ok: false, problem: { code: "not_a_member" } });
});

test("[B3] a stream's text is bounded like a message's", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  agent.say(start(streamId), ...Array.from({ length: 9 }, () => delta(streamId, "x".repeat(4096))));
  await socket.until("tool-call.error");
  expect(socket.of("tool-call.error")).toMatchObject([{ streamId, code: "text_too_long" }]);
  const appended = await home.rpc.append(said(home, robo, "x".repeat(32 * 1024 + 1), "long"));
  expect(appended).toMatchObject({ ok: false, problem: { code: "text_too_long" } });
});

test("a flood of deltas reaches each socket as few frames with the same text", async () => {
  const home = await house([ann, robo]);
  const sockets = await Promise.all(Array.from({ length: 5 }, () => listen(home, home.as(ann))));
  const streamId = ids.mint("str");
  const words = Array.from({ length: 200 }, (_, index) => `word ${index} `);
  const agent = speaker(home, robo);
  agent.say(start(streamId), ...words.map((word) => delta(streamId, word)));
  for (const socket of sockets) await vi.waitUntil(() => socket.textOf(streamId) === words.join(""));
  for (const socket of sockets) expect(socket.of("tool-input-delta").length).toBeLessThan(20);
});

test("[D4] [B3] a visible tool's input streams beyond a message's bound, to its tool call", async () => {
  const home = await house([ann, robo]);
  const socket = await listen(home, home.as(ann));
  const streamId = ids.mint("str");
  const agent = speaker(home, robo);
  const input = { text: "x".repeat(40_000) };
  agent.say({ type: "start", streamId, toolName: "deploy", speaks: false }, delta(streamId, JSON.stringify(input)));
  await vi.waitUntil(() => socket.textOf(streamId).length > 40_000);
  unwrap(await home.rpc.recordToolCall(called(home, robo, "c1", { input, streamId })));
  unwrap(await home.rpc.recordToolCall(called(home, robo, "c1", { input, streamId, status: "complete", output: 1 })));
  await socket.until("space.message.updated");
  agent.say({ type: "end" });
  await agent.answer;
  expect(socket.of("tool-input-delta").every(({ textDelta }) => textDelta === undefined)).toBe(true);
  expect(JSON.parse(socket.textOf(streamId))).toEqual(input);
  expect(socket.of("space.message").map(({ message }) => message.streamId)).toEqual([streamId]);
  expect(socket.of("tool-call.error")).toEqual([]);
});
