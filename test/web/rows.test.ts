import { describe, expect, test } from "vitest";
import { spentWords } from "../../src/web/timeline/presence.ts";
import { firstUnreadSeq, type Row, timelineRows } from "../../src/web/timeline/rows.ts";
import {
  after,
  delta,
  husam,
  loaded,
  message,
  messageId,
  nova,
  runId,
  said,
  sara,
  start,
  streamId,
  welcome,
} from "../client/frames.ts";

const at = (minutes: number): string => new Date(Date.UTC(2026, 1, 18, 12, minutes)).toISOString();

const rowsOf = (...frames: Parameters<typeof after>): Row[] => timelineRows(after(...frames), null);

const outline = (rows: Row[]): string[] =>
  rows.map((row) => `${row.kind}${row.kind !== "note" && row.opensGroup ? " opens" : ""}`);

test("[C11] the page says whose tokens are used up, and until when", () => {
  const told = (personId?: string, more: { budget?: "runs"; resetsAt?: string } = {}): string => {
    const until = { resetsAt: "2026-02-19T00:00:00.000Z", ...more };
    const spent = { entityId: nova.id, ...until, cursor: 2, ...(personId && { personId }) };
    const state = after(welcome(0), said(1), { type: "agent.budget_exhausted", ...spent });
    const [, row] = timelineRows(state, null);
    return row?.kind === "note" && row.note.kind === "spent" ? spentWords(row.note, state) : "no note";
  };
  expect(told()).toBe("Nova has used its tokens for today. It answers again after 00:00 UTC.");
  expect(told(sara.id)).toBe(
    "Sara has used what one person may use of Nova's tokens today. It answers them again after 00:00 UTC.",
  );
  expect(told(husam.id)).toBe(
    "You have used what one person may use of Nova's tokens today. It answers you again after 00:00 UTC.",
  );
  expect(told(husam.id, { budget: "runs", resetsAt: "2026-02-18T13:04:00.000Z" })).toBe(
    "You have used what one person may use of Nova's runs in an hour. It answers you again after 13:04 UTC.",
  );
});

test("messages of one sender within five minutes form a group", () => {
  const messages = [
    message(1, { createdAt: at(0) }),
    message(2, { createdAt: at(4) }),
    message(3, { createdAt: at(10) }),
  ];
  expect(outline(rowsOf(welcome(3), loaded(messages)))).toEqual(["message opens", "message", "message opens"]);
});

test("another sender, a reply and an origin each open a group", () => {
  const origin = { spaceId: message(1).spaceId };
  const messages = [
    message(1, { createdAt: at(0) }),
    message(2, { createdAt: at(0), sender: husam }),
    message(3, { createdAt: at(0), sender: husam, replyTo: messageId(1) }),
    message(4, { createdAt: at(0), sender: husam, origin }),
  ];
  expect(rowsOf(welcome(4), loaded(messages)).every((row) => row.kind === "message" && row.opensGroup)).toBe(true);
});

test("each day is opened once", () => {
  const messages = [0, 1, 60 * 24, 60 * 24 + 1].map((minutes, index) => message(index + 1, { createdAt: at(minutes) }));
  const days = rowsOf(welcome(4), loaded(messages)).map((row) => row.kind === "message" && row.opensDay);
  expect(days).toEqual([true, false, true, false]);
});

test("a stream and the message that it becomes are one row", () => {
  const streaming = [welcome(1), loaded([message(1)]), start("a"), delta("a", "Hi")] as const;
  const done = said(2, { sender: nova, streamId: streamId("a") });
  expect(rowsOf(...streaming).at(-1)).toMatchObject({ kind: "stream", key: streamId("a") });
  expect(rowsOf(...streaming, done).at(-1)).toMatchObject({ kind: "message", key: streamId("a") });
});

test("a message under way and its stored one are one row", () => {
  const send = { type: "local.send", clientKey: "k1", text: "hello", createdAt: at(0) } as const;
  const sending = [welcome(0), loaded([]), send, start("a")] as const;
  expect(outline(rowsOf(...sending))).toEqual(["stream opens", "outgoing opens"]);
  const stored = said(1, { sender: husam, clientKey: "k1" });
  expect(rowsOf(...sending, stored)[0]).toMatchObject({ kind: "message", key: "k1" });
});

test("the message of another person keeps its own key, whatever its clientKey", () => {
  expect(rowsOf(welcome(0), said(1, { sender: sara, clientKey: "k1" }))[0]?.key).toBe(messageId(1));
});

test("a note comes after the message that its run read, and ends a group", () => {
  const failed = { type: "run.failed", runId: runId("a"), entityId: nova.id } as const;
  const rows = rowsOf(welcome(0), said(1), failed, said(2));
  expect(outline(rows)).toEqual(["message opens", "note", "message opens"]);
});

test("a failed router leaves a note after its message", () => {
  const error = { code: "model_stalled", message: "Too late." };
  const agents: string[] = [];
  const why = { outcome: "failed", agents, error } as const;
  const routed = { type: "message.routed", cursor: 3, messageId: messageId(1), ...why } as const;
  const rows = rowsOf(welcome(0), said(1), said(2), routed);
  expect(outline(rows)).toEqual(["message opens", "note", "message opens"]);
  expect(rows[1]?.key).toBe(messageId(1));
});

describe("the readers of a message", () => {
  const read = (entityId: string, seq: number, extra = {}) =>
    ({ type: "member.read", cursor: seq + 10, entityId, messageId: messageId(seq), ...extra }) as const;
  const readersOf = (...frames: Parameters<typeof after>) =>
    rowsOf(welcome(0), said(1, { sender: husam }), said(2, { sender: husam }), ...frames).map((row) =>
      row.kind === "message" ? row.readers.map((reader) => reader.words) : row.kind,
    );

  test("a reader moves on with its mark, and takes no row", () => {
    expect(readersOf(read(sara.id, 1))).toEqual([["Sara"], []]);
    expect(readersOf(read(sara.id, 1), read(sara.id, 2))).toEqual([[], ["Sara"]]);
  });

  test("a silent agent is a reader, with its reason", () => {
    const silence = { runId: runId("a"), outcome: "silent", reason: "not for me" } as const;
    expect(readersOf(read(nova.id, 2, silence))).toEqual([[], ["Nova (said nothing: not for me)"]]);
    const completed = { type: "run.completed", entityId: nova.id, ...silence } as const;
    expect(readersOf(completed)).toEqual([[], ["Nova (said nothing: not for me)"]]);
  });

  test("readers are there after a reload, when marks come before the messages", () => {
    const mark = { messageId: messageId(2), runId: runId("a") } as const;
    const reads = [
      { entityId: nova.id, ...mark, outcome: "silent" as const, reason: "not for me" },
      { entityId: sara.id, ...mark, outcome: "failed" as const },
    ];
    const rows = rowsOf({ ...welcome(4), reads }, loaded([message(1), message(2, { sender: husam })]));
    const readers = rows.map((row) => (row.kind === "message" ? row.readers.map((reader) => reader.words) : row.kind));
    expect(readers).toEqual([[], ["Sara (failed)", "Nova (said nothing: not for me)"]]);
  });

  test("the person of the page and those who have spoken since are left out", () => {
    expect(readersOf(read(husam.id, 2), read(sara.id, 2), said(13, { sender: sara }))).toEqual([[], [], []]);
  });
});

describe("the first unread message", () => {
  const state = after(welcome(4), loaded([message(1), message(2, { sender: husam }), message(3), message(4)]));

  test("it is the first of the newest messages that others wrote", () => {
    expect(firstUnreadSeq(state, 2)).toBe(3);
    expect(firstUnreadSeq(state, 3)).toBe(1);
    expect(timelineRows(state, 3).map((row) => row.kind === "message" && row.opensUnread)).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  test("it is missing if nothing is unread, or if it is not loaded", () => {
    expect(firstUnreadSeq(state, 0)).toBeNull();
    expect(firstUnreadSeq(state, 9)).toBeNull();
  });
});
