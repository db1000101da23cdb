import { expect, test } from "vitest";
import { quotedIn } from "../../src/web/timeline/quoted.ts";
import { asksOf } from "../../src/web/tool-calls/standing.ts";
import { after, called, husam, loaded, message, messageId, nova, sara, welcome } from "../client/frames.ts";

test("a quote is the beginning of a message as plain text, with its sender's current name", () => {
  const state = after(welcome(1), loaded([message(1, { text: `**who** brings\n\n${"keys ".repeat(99)}` })]));
  const quoted = quotedIn(state, messageId(1));
  expect(quoted?.name).toBe(sara.name);
  expect(quoted?.text).toMatch(/^who brings keys keys/);
  expect(quoted?.text?.length).toBe(300);
});

test("a message that is not loaded is quoted as an earlier message", () => {
  const state = after(welcome(1), loaded([]));
  expect(quotedIn(state, messageId(1))).toEqual({ id: messageId(1), name: "an earlier message", text: null });
  expect(quotedIn(state, undefined)).toBeNull();
});

test("the calls that ask a person are the open ones it may answer, oldest first", () => {
  const { toolCall } = called(0);
  const asking = (seq: number, approvers?: string[]) => {
    const awaits = { kind: "approval" as const, quorum: 1, answers: [], expiresAt: "2026-02-19T00:00:00.000Z" };
    const open = toolCall && {
      ...toolCall,
      status: "requires_action" as const,
      awaits: { ...awaits, ...(approvers ? { approvers } : {}) },
    };
    return message(seq, { kind: "tool_call", sender: nova, ...(open ? { toolCall: open } : {}) });
  };
  const state = after(
    welcome(9),
    loaded([asking(1), asking(2, [sara.id]), asking(3, [husam.id]), message(4, called(0))]),
  );
  const now = Date.parse("2026-02-18T15:00:00.000Z");
  expect(asksOf(state, now).map(({ seq }) => seq)).toEqual([1, 3]);
  expect(asksOf(state, now + 86_400_000)).toEqual([]);
});
