import { describe, expect, test } from "vitest";
import { reduce, type SpaceState } from "../../src/client/index.ts";
import {
  after,
  called,
  delta,
  husam,
  loaded,
  message,
  messageId,
  nova,
  runId,
  said,
  sara,
  seqs,
  snapshot,
  space,
  start,
  streamId,
  updated,
  welcome,
} from "./frames.ts";

const next = (state: SpaceState, ...frames: Parameters<typeof reduce>[1][]): SpaceState =>
  frames.reduce((current, frame) => reduce(current, frame, 0), state);

describe("messages", () => {
  test("[D3] a repeated event changes the timeline once", () => {
    expect(seqs(after(welcome(0), said(1), said(2), said(1), said(2)))).toEqual([1, 2]);
  });

  test("[D3] a page and the events beside it make one timeline, in whichever order they come", () => {
    const page = loaded([message(1), message(2), message(3)]);
    expect(seqs(after(welcome(2), said(3), page, said(5)))).toEqual([1, 2, 3, 5]);
    expect(seqs(after(welcome(2), page, said(3), said(5)))).toEqual([1, 2, 3, 5]);
  });

  test("a page of older messages stands before the window", () => {
    const state = after(welcome(9), loaded([message(7), message(9)], true), {
      type: "local.older",
      messages: [message(2), message(5)],
      hasOlder: false,
    });
    expect(seqs(state)).toEqual([2, 5, 7, 9]);
    expect(state.history).toEqual({ status: "ready", hasOlder: false, loadingOlder: false });
  });

  test("a repeated message from before the window leaves no hole behind it", () => {
    expect(seqs(after(welcome(9), loaded([message(7), message(9)], true), said(3)))).toEqual([7, 9]);
  });

  test("an updated message takes the place of the one it was", () => {
    const state = after(welcome(0), said(1), said(2), {
      type: "space.message.updated",
      cursor: 3,
      message: message(1, { text: "changed" }),
    });
    expect(state.messages.map((one) => one.text)).toEqual(["changed", "message 2"]);
    expect(state.cursor).toBe(3);
  });

  test("[D3] what is repeated takes no update back", () => {
    const first = said(1, called(0));
    const [second, third] = [updated(2, message(1, called(1))), updated(3, message(1, called(2)))];
    const state = after(welcome(0), first, second, third, first, second);
    expect(state.messages[0]?.toolCall?.output).toBe(2);
    expect(reduce(state, second, 0)).toBe(state);
  });

  test("[D3] an update that comes while a page is loading outlives the page, which is older", () => {
    const page = [message(4, called(0)), message(5)];
    const latest = after(welcome(5), updated(6, message(4, called(1))), loaded(page, true));
    expect(latest.messages[0]?.toolCall?.output).toBe(1);
    expect(latest.unplaced).toEqual({});
    const older = [message(2, called(0)), message(3)];
    const asked = [{ type: "local.older.begin" } as const, updated(7, message(2, called(7)))];
    const whole = [...asked, { type: "local.older" as const, messages: older, hasOlder: false }].reduce(
      (state: SpaceState, frame) => reduce(state, frame, 0),
      latest,
    );
    expect(whole.messages.map(({ toolCall }) => toolCall?.output)).toEqual([7, undefined, 1, undefined]);
  });

  test("an update of a message that was not loaded is left to the page that loads it", () => {
    const state = after(welcome(5), loaded([message(5)], true), updated(6, message(2, called(1))));
    expect(seqs(state)).toEqual([5]);
    expect(state.unplaced).toEqual({});
  });
});

describe("the cursor", () => {
  test("[D3] begins with the first welcome and follows durable events", () => {
    expect(after(welcome(7)).cursor).toBe(7);
    expect(after(welcome(7), said(8), start("a"), delta("a", "…")).cursor).toBe(8);
  });

  test("[D3] stays with what was seen when a welcome resumes: the replay comes after it", () => {
    expect(after(welcome(7), welcome(20)).cursor).toBe(7);
    expect(after(welcome(7), welcome(20), said(8)).cursor).toBe(8);
  });

  test("[D3] a cursor that does not resume gives the window up and loads anew", () => {
    const state = after(welcome(7), loaded([message(7)]), welcome(900, { resumed: false }));
    expect(state).toMatchObject({ cursor: 900, messages: [], history: { status: "loading" } });
    expect(seqs(next(state, loaded([message(899), message(900)], true)))).toEqual([899, 900]);
  });

  test("[D3] a server that forgot everything does not leave its old timeline standing", () => {
    const state = after(welcome(500), loaded([message(500)]), welcome(2, { resumed: false }), loaded([message(1)]));
    expect(seqs(state)).toEqual([1]);
    expect(state.cursor).toBe(2);
  });
});

describe("streams", () => {
  test("grow by their deltas, side by side, in the order in which they began", () => {
    const state = after(welcome(0), start("a"), start("b"), delta("b", "hey"), delta("a", "Hel"), delta("a", "lo"));
    expect(state.streams.map((stream) => stream.text)).toEqual(["Hello", "hey"]);
  });

  test("[D4] become their message in the same frame", () => {
    const state = after(welcome(0), start("a"), delta("a", "Hi"), said(1, { streamId: streamId("a"), sender: nova }));
    expect(state.streams).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("[D4] leave nothing behind when they are given up", () => {
    const error = { type: "tool-call.error", streamId: streamId("a"), code: "interrupted", message: "…" } as const;
    const state = after(welcome(0), start("a"), delta("a", "half a sen"), error);
    expect(state.streams).toEqual([]);
    expect(next(state, delta("a", "tence")).streams).toEqual([]);
  });

  test("[D3] a welcome tells their text whole and drops those that ended meanwhile", () => {
    const before = after(welcome(0), start("a"), delta("a", "Hel"), start("b"), delta("b", "gone"));
    const state = next(before, welcome(0, { streams: [snapshot("a", "Hello, w")] }), delta("a", "orld"));
    expect(state.streams.map((stream) => stream.text)).toEqual(["Hello, world"]);
  });

  test("a surrogate pair that was split between deltas becomes whole", () => {
    expect(after(welcome(0), start("a"), delta("a", "\ud83d"), delta("a", "\ude00")).streams[0]?.text).toBe("😀");
  });

  test("a call's completion alone does not take its words away", () => {
    const complete = { type: "tool-call.complete", streamId: streamId("a"), toolCallId: "tc", result: {} } as const;
    expect(after(welcome(0), start("a"), delta("a", "Hi"), complete).streams[0]?.text).toBe("Hi");
  });
});

describe("outgoing messages", () => {
  const send = { type: "local.send", clientKey: "k1", text: "hello", createdAt: "2026-02-18T15:06:55.000Z" } as const;

  test("[D1] become the log's message with their key", () => {
    const state = after(welcome(0), send, said(1, { sender: husam, clientKey: "k1" }));
    expect(state.outgoing).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("[D1] are answered by a message that the timeline has already", () => {
    const stored = said(1, { sender: husam, clientKey: "k1" });
    const state = after(welcome(0), stored, send, stored);
    expect(state.outgoing).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("are not answered by another person's message with the same key", () => {
    expect(after(welcome(0), send, said(1, { clientKey: "k1" })).outgoing).toHaveLength(1);
  });

  test("fail with their reason, wait again when retried, and go when discarded", () => {
    const error = { type: "error", clientKey: "k1", title: "…", status: 413, code: "text_too_long" } as const;
    const failed = after(welcome(0), send, { ...error, detail: "Too long." });
    expect(failed.outgoing[0]?.status).toEqual({ kind: "failed", code: "text_too_long", message: "Too long." });
    const retried = next(failed, { type: "local.retry", clientKey: "k1" });
    expect(retried.outgoing[0]?.status).toEqual({ kind: "pending" });
    expect(next(failed, { type: "local.discard", clientKey: "k1" }).outgoing).toEqual([]);
  });

  test("[D1] outlive a lost connection and a lost window", () => {
    expect(after(welcome(0), send, welcome(900, { resumed: false })).outgoing).toHaveLength(1);
  });
});

describe("the people and agents", () => {
  const joinedAt = "2026-02-18T15:06:55.000Z";

  test("members join once, leave and are renamed", () => {
    const joined = { type: "member.joined", cursor: 1, member: { ...sara, joinedAt } } as const;
    const left = { type: "member.left", cursor: 2, entityId: nova.id, name: "Nova" } as const;
    const renamed = { type: "member.renamed", cursor: 3, entityId: sara.id, name: "Sarah" } as const;
    const names = after(welcome(0), joined, left, renamed).members.map((member) => member.name);
    expect(names).toEqual(["Husam", "Sarah"]);
  });

  test("typing fades after its time, and ends with what was typed", () => {
    const typing = { type: "member.typing", entityId: sara.id } as const;
    const state = reduce(after(welcome(0)), typing, 1000);
    expect(reduce(state, { type: "local.tick" }, 6999).typing).toHaveLength(1);
    expect(reduce(state, { type: "local.tick" }, 7000).typing).toEqual([]);
    expect(reduce(state, said(1), 1001).typing).toEqual([]);
    expect(reduce(state, { type: "member.typing", entityId: husam.id }, 1001).typing).toHaveLength(1);
  });

  test("an agent is active for each of its runs until that run ends", () => {
    const active = (name: string) => ({ type: "agent.active", entityId: nova.id, runId: runId(name) }) as const;
    const inactive = (name: string) => ({ type: "agent.inactive", entityId: nova.id, runId: runId(name) }) as const;
    const state = after(welcome(0), active("a"), active("a"), active("b"), inactive("a"));
    expect(state.active).toEqual([{ entityId: nova.id, runId: runId("b") }]);
    expect(next(state, welcome(0, { active: [] })).active).toEqual([]);
  });

  test("read marks follow their reader", () => {
    const read = (seq: number) =>
      ({ type: "member.read", cursor: seq + 10, entityId: sara.id, messageId: messageId(seq) }) as const;
    const state = after(welcome(0), said(1), said(2), read(1), read(2));
    expect(state.reads[sara.id]).toEqual({ messageId: messageId(2), seq: 2 });
  });

  test("the space's new name shows", () => {
    const state = after(welcome(0), { type: "space.updated", cursor: 1, space: { ...space, name: "Beta" } });
    expect(state.space?.name).toBe("Beta");
  });
});

describe("runs", () => {
  const run = { runId: runId("a"), entityId: nova.id };

  test("a run that failed says so, with its reason, where it happened", () => {
    const failed = { type: "run.failed", ...run, error: { code: "model_stalled", message: "It stopped." } } as const;
    const note = { ...run, kind: "failed", reason: "It stopped.", afterSeq: 1 };
    expect(after(welcome(0), said(1), failed).notes).toEqual([note]);
  });

  test("a silent run is told once, though its end and its read mark both tell it", () => {
    const completed = { type: "run.completed", ...run, outcome: "silent" } as const;
    const read = { type: "member.read", cursor: 2, messageId: messageId(1), outcome: "silent", ...run } as const;
    const note = { ...run, kind: "silent", reason: "not for me", afterSeq: 1 };
    expect(after(welcome(0), said(1), completed, { ...read, reason: "not for me" }).notes).toEqual([note]);
  });

  test("a run that answered leaves its message and no note", () => {
    const completed = { type: "run.completed", ...run, outcome: "answered" } as const;
    expect(after(welcome(0), { type: "run.started", ...run }, completed).notes).toEqual([]);
  });
});

test("a router that failed is told at its message; whom one woke, or that it woke nobody, is not", () => {
  const agents: string[] = [];
  const routed = { type: "message.routed", cursor: 2, messageId: messageId(1), agents } as const;
  const failed = { ...routed, outcome: "failed", error: { code: "model_stalled", message: "Too late." } } as const;
  const note = { messageId: messageId(1), kind: "unrouted", reason: "Too late.", afterSeq: 1 };
  const state = after(welcome(0), said(1), failed, failed);
  expect(state.notes).toEqual([note]);
  expect(state.cursor).toBe(2);
  expect(after(welcome(0), said(1), { ...routed, outcome: "nobody" }).notes).toEqual([]);
  expect(after(welcome(0), failed).notes).toEqual([]);
});

test("a frame that changes nothing answers the same state", () => {
  const state = after(welcome(0), said(1));
  const complete = { type: "tool-call.complete", streamId: streamId("z"), toolCallId: "tc", result: {} } as const;
  expect(reduce(state, { type: "local.tick" }, 0)).toBe(state);
  expect(reduce(state, delta("z", "…"), 0)).toBe(state);
  expect(reduce(state, complete, 0)).toBe(state);
});
