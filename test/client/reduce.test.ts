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

  test("[D3] a loaded page and live events make one timeline, in either order", () => {
    const page = loaded([message(1), message(2), message(3)]);
    expect(seqs(after(welcome(2), said(3), page, said(5)))).toEqual([1, 2, 3, 5]);
    expect(seqs(after(welcome(2), page, said(3), said(5)))).toEqual([1, 2, 3, 5]);
  });

  test("a page of older messages is placed before the window", () => {
    const state = after(welcome(9), loaded([message(7), message(9)], true), {
      type: "local.page",
      messages: [message(2), message(5)],
      hasOlder: false,
    });
    expect(seqs(state)).toEqual([2, 5, 7, 9]);
    expect(state.history).toEqual({ status: "ready", hasOlder: false, loadingOlder: false });
  });

  test("a repeated message from before the window leaves no hole in the timeline", () => {
    expect(seqs(after(welcome(9), loaded([message(7), message(9)], true), said(3)))).toEqual([7, 9]);
  });

  test("an updated message replaces its earlier version", () => {
    const state = after(welcome(0), said(1), said(2), {
      type: "space.message.updated",
      cursor: 3,
      message: message(1, { text: "changed" }),
    });
    expect(state.messages.map((one) => one.text)).toEqual(["changed", "message 2"]);
    expect(state.cursor).toBe(3);
  });

  test("[D3] a repeated event does not undo a later update", () => {
    const first = said(1, called(0));
    const [second, third] = [updated(2, message(1, called(1))), updated(3, message(1, called(2)))];
    const state = after(welcome(0), first, second, third, first, second);
    expect(state.messages[0]?.toolCall?.output).toBe(2);
    expect(reduce(state, second, 0)).toBe(state);
  });

  test("[D3] an update that comes while a page is loading wins over the page", () => {
    const page = [message(4, called(0)), message(5)];
    const latest = after(welcome(5), updated(6, message(4, called(1))), loaded(page, true));
    expect(latest.messages[0]?.toolCall?.output).toBe(1);
    expect(latest.unplaced).toEqual({});
    const older = [message(2, called(0)), message(3)];
    const asked = [{ type: "local.page.begin" } as const, updated(7, message(2, called(7)))];
    const whole = [...asked, { type: "local.page" as const, messages: older, hasOlder: false }].reduce(
      (state: SpaceState, frame) => reduce(state, frame, 0),
      latest,
    );
    expect(whole.messages.map(({ toolCall }) => toolCall?.output)).toEqual([7, undefined, 1, undefined]);
  });

  test("[L1] what a person changes shows at once, and is undone where it is refused", () => {
    const shown = after(welcome(0), said(1), { type: "local.change", messageId: messageId(1), shown: { text: "new" } });
    expect(shown.messages[0]?.text).toBe("new");
    const undone = next(shown, { type: "local.change.failed", messageId: messageId(1) });
    expect(undone.messages[0]?.text).toBe("message 1");
    const [edited, later] = [message(1, { text: "new" }), message(1, { text: "newer" })];
    const done = next(shown, { type: "local.changed", messageId: messageId(1), message: edited });
    expect([done.messages[0], done.changing]).toEqual([edited, {}]);
    // Its event, and one after it, came before the answer.
    const told = next(shown, { type: "message.updated", cursor: 2, message: later });
    expect(next(told, { type: "local.changed", messageId: messageId(1), message: edited })).toBe(told);
  });

  test("an update of a message outside the window is dropped when no page is loading", () => {
    const state = after(welcome(5), loaded([message(5)], true), updated(6, message(2, called(1))));
    expect(seqs(state)).toEqual([5]);
    expect(state.unplaced).toEqual({});
  });
});

describe("the cursor", () => {
  test("[D3] the cursor begins with the first welcome and follows durable events", () => {
    expect(after(welcome(7)).cursor).toBe(7);
    expect(after(welcome(7), said(8), start("a"), delta("a", "…")).cursor).toBe(8);
  });

  test("[D3] the cursor does not move by a welcome that resumes: the replay follows", () => {
    expect(after(welcome(7), welcome(20)).cursor).toBe(7);
    expect(after(welcome(7), welcome(20), said(8)).cursor).toBe(8);
  });

  test("[D3] a welcome that does not resume empties the window and loads anew", () => {
    const state = after(welcome(7), loaded([message(7)]), welcome(900, { resumed: false }));
    expect(state).toMatchObject({ cursor: 900, messages: [], history: { status: "loading" } });
    expect(seqs(next(state, loaded([message(899), message(900)], true)))).toEqual([899, 900]);
  });

  test("[D3] a server that lost its log leaves no old timeline on the page", () => {
    const state = after(welcome(500), loaded([message(500)]), welcome(2, { resumed: false }), loaded([message(1)]));
    expect(seqs(state)).toEqual([1]);
    expect(state.cursor).toBe(2);
  });
});

describe("streams", () => {
  test("streams grow by their deltas, side by side, in the order of their starts", () => {
    const state = after(welcome(0), start("a"), start("b"), delta("b", "hey"), delta("a", "Hel"), delta("a", "lo"));
    expect(state.streams.map((stream) => stream.text)).toEqual(["Hello", "hey"]);
  });

  test("[D4] a stream becomes its message in one frame", () => {
    const state = after(welcome(0), start("a"), delta("a", "Hi"), said(1, { streamId: streamId("a"), sender: nova }));
    expect(state.streams).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("[D4] a stream that fails leaves nothing behind", () => {
    const error = { type: "tool-call.error", streamId: streamId("a"), code: "interrupted", message: "…" } as const;
    const state = after(welcome(0), start("a"), delta("a", "half a sen"), error);
    expect(state.streams).toEqual([]);
    expect(next(state, delta("a", "tence")).streams).toEqual([]);
  });

  test("[D3] a welcome holds the full text of running streams and drops ended ones", () => {
    const before = after(welcome(0), start("a"), delta("a", "Hel"), start("b"), delta("b", "gone"));
    const state = next(before, welcome(0, { streams: [snapshot("a", "Hello, w")] }), delta("a", "orld"));
    expect(state.streams.map((stream) => stream.text)).toEqual(["Hello, world"]);
  });

  test("a surrogate pair that is split between two deltas is joined", () => {
    expect(after(welcome(0), start("a"), delta("a", "\ud83d"), delta("a", "\ude00")).streams[0]?.text).toBe("😀");
  });

  test("a completed call keeps its stream until the message comes", () => {
    const complete = { type: "tool-call.complete", streamId: streamId("a"), toolCallId: "tc", result: {} } as const;
    expect(after(welcome(0), start("a"), delta("a", "Hi"), complete).streams[0]?.text).toBe("Hi");
  });
});

describe("outgoing messages", () => {
  const send = { type: "local.send", clientKey: "k1", text: "hello", createdAt: "2026-02-18T15:06:55.000Z" } as const;

  test("[D1] an outgoing message is replaced by the stored message with its clientKey", () => {
    const state = after(welcome(0), send, said(1, { sender: husam, clientKey: "k1" }));
    expect(state.outgoing).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("[D1] an outgoing message goes when the repeated stored message comes", () => {
    const stored = said(1, { sender: husam, clientKey: "k1" });
    const state = after(welcome(0), stored, send, stored);
    expect(state.outgoing).toEqual([]);
    expect(seqs(state)).toEqual([1]);
  });

  test("another person's message with the same clientKey replaces no outgoing message", () => {
    expect(after(welcome(0), send, said(1, { clientKey: "k1" })).outgoing).toHaveLength(1);
  });

  test("an outgoing message fails with a reason, waits when retried, goes when discarded", () => {
    const error = { type: "error", clientKey: "k1", title: "…", status: 413, code: "text_too_long" } as const;
    const failed = after(welcome(0), send, { ...error, detail: "Too long." });
    expect(failed.outgoing[0]?.status).toEqual({ kind: "failed", code: "text_too_long", message: "Too long." });
    const retried = next(failed, { type: "local.retry", clientKey: "k1" });
    expect(retried.outgoing[0]?.status).toEqual({ kind: "pending" });
    expect(next(failed, { type: "local.discard", clientKey: "k1" }).outgoing).toEqual([]);
  });

  test("[D1] an outgoing message outlives a lost connection and a new window", () => {
    expect(after(welcome(0), send, welcome(900, { resumed: false })).outgoing).toHaveLength(1);
  });
});

describe("the people and agents", () => {
  const joinedAt = "2026-02-18T15:06:55.000Z";

  test("a member joins once, is renamed, and leaves", () => {
    const joined = { type: "member.joined", cursor: 1, member: { ...sara, joinedAt } } as const;
    const left = { type: "member.left", cursor: 2, entityId: nova.id, name: "Nova" } as const;
    const renamed = { type: "member.renamed", cursor: 3, entityId: sara.id, name: "Sarah" } as const;
    const names = after(welcome(0), joined, left, renamed).members.map((member) => member.name);
    expect(names).toEqual(["Husam", "Sarah"]);
  });

  test("typing ends after six seconds, or with the message", () => {
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

  test("an agent that waits to try again is told to who comes later, until it runs", () => {
    const agent = { entityId: nova.id, runId: runId("a") };
    const state = after(welcome(0, { waiting: [{ ...agent, reason: "unavailable" }] }));
    expect(state.backingOff).toEqual([agent]);
    expect(next(state, { type: "agent.active", ...agent }).backingOff).toEqual([]);
    expect(next(state, welcome(0, { waiting: [] })).backingOff).toEqual([]);
  });

  test("a member has one read mark, the latest", () => {
    const read = (seq: number) =>
      ({ type: "member.read", cursor: seq + 10, entityId: sara.id, messageId: messageId(seq) }) as const;
    const state = after(welcome(0), said(1), said(2), read(1), read(2));
    expect(state.reads[sara.id]).toEqual({ messageId: messageId(2), seq: 2 });
  });

  test("a renamed space shows its new name", () => {
    const state = after(welcome(0), { type: "space.updated", cursor: 1, space: { ...space, name: "Beta" } });
    expect(state.space?.name).toBe("Beta");
  });
});

describe("runs", () => {
  const run = { runId: runId("a"), entityId: nova.id };

  test("a failed run leaves a note with its reason after the newest message", () => {
    const failed = { type: "run.failed", ...run, error: { code: "model_stalled", message: "It stopped." } } as const;
    const note = { ...run, kind: "failed", reason: "It stopped.", afterSeq: 1 };
    expect(after(welcome(0), said(1), failed).notes).toEqual([note]);
  });

  test("a silent run leaves one note, though its end and its read mark both report it", () => {
    const completed = { type: "run.completed", ...run, outcome: "silent" } as const;
    const read = { type: "member.read", cursor: 2, messageId: messageId(1), outcome: "silent", ...run } as const;
    const note = { ...run, kind: "silent", reason: "not for me", afterSeq: 1 };
    expect(after(welcome(0), said(1), completed, { ...read, reason: "not for me" }).notes).toEqual([note]);
  });

  test("a run that answered leaves no note", () => {
    const completed = { type: "run.completed", ...run, outcome: "answered" } as const;
    expect(after(welcome(0), { type: "run.started", ...run }, completed).notes).toEqual([]);
  });
});

test("only a failed router leaves a note, at the message that it could not route", () => {
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

test("[C11] an agent without tokens leaves one note for each person, however it is told", () => {
  const spent = { entityId: nova.id, resetsAt: "2026-02-19T00:00:00.000Z", cursor: 2 };
  const event = { type: "agent.budget_exhausted", ...spent } as const;
  const note = { kind: "spent", entityId: nova.id, resetsAt: spent.resetsAt, afterSeq: 2 };
  const state = after(welcome(0), said(1), event, event, { ...event, personId: sara.id, cursor: 3 });
  expect(state.notes).toEqual([note, { ...note, personId: sara.id, afterSeq: 3 }]);
  expect(state.cursor).toBe(3);
  const [, , runs] = next(state, {
    ...event,
    personId: sara.id,
    budget: "runs",
    resetsAt: "2026-02-18T13:04:00.000Z",
  }).notes;
  expect(runs).toMatchObject({ budget: "runs", personId: sara.id });
  expect(after(welcome(2, { spent: [spent] })).notes).toEqual([note]);
  expect(next(state, welcome(3, { resumed: true, spent: [spent] })).notes).toHaveLength(2);
  // The notice stands for the failure of the run that found no tokens.
  const error = { code: "budget_exhausted", message: "maxTokensPerDay (1000) does not allow this step" };
  const failed = { type: "run.failed", runId: runId("one"), entityId: nova.id, error } as const;
  expect(next(state, failed).notes).toEqual(state.notes);
});

test("a frame that changes nothing answers the same state", () => {
  const state = after(welcome(0), said(1));
  const complete = { type: "tool-call.complete", streamId: streamId("z"), toolCallId: "tc", result: {} } as const;
  expect(reduce(state, { type: "local.tick" }, 0)).toBe(state);
  expect(reduce(state, delta("z", "…"), 0)).toBe(state);
  expect(reduce(state, complete, 0)).toBe(state);
});
