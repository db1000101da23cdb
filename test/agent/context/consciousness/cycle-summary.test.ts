import type { ModelMessage } from "ai";
import fc from "fast-check";
import { expect, test } from "vitest";
import { selfSummary } from "../../../../src/agent/context/consciousness/cycle-summary.ts";
import { eventLine } from "../../../../src/agent/context/consciousness/inbox-message.ts";
import type { Deed } from "../../../../src/agent/context/deeds.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import { arrived, callMessages, did, due, hooked, human, husam, resultOf, said, sarah, sent, space } from "../cast.ts";
import { hostile, hostileJson } from "../hostile.ts";

const alpha = space("Alpha", husam, sarah);
const asked = (text: string, from = husam) => arrived(alpha, said("1", "15:06", from, text));
const say = (text: string, where = "Alpha", waitingFor: string[] = []) =>
  sent("15:07", text, where, "msg_9", waitingFor);
const call = (toolName: string, input: unknown, output?: unknown) => did("15:07", toolName, input, output);

/** The summary of a cycle with these events and deeds, whose messages after its inbox are `last`. */
const summary = (events: InboxData[], deeds: Deed[], last: ModelMessage[] = []): string =>
  selfSummary([{ role: "user", content: "INBOX" }, ...last], () => ({
    lines: events.map((event) => eventLine(event)),
    deeds,
  }));

test("a cycle that ended with words of its own is summarised by them", () => {
  const last: ModelMessage[] = [
    { role: "assistant", content: "Let me see." },
    ...callMessages("send_message", { text: "Done." }, { success: true }),
    { role: "assistant", content: "Told Husam\nthat it is done. " },
  ];
  expect(summary([asked("Refund?")], [say("Done.")], last)).toBe("Told Husam that it is done.");
});

test("[K2] a cycle without last words is told by its trigger, what it said where, and its calls", () => {
  const deeds = [
    call("refund", { order: "A1" }, "ok"),
    call("audit", { order: "A1" }),
    call("ledger", {}, { success: true, balance: 7 }),
    call("post", {}, { success: false, error: { code: "tool_failed", message: "no paper" } }),
    say("Refunded."),
    say("A1 was refunded. Agreed?", "Dev", ["Sarah", "Tom"]),
  ];
  expect(summary([asked("Refund A1, and tell Dev")], deeds)).toBe(
    '"Husam" asked "Refund A1, and tell Dev" in "Alpha"; called refund({"order":"A1"}) → "ok"; ' +
      'called audit({"order":"A1"}); called ledger({}) → {"success":true,"balance":7}; ' +
      'called post({}) → {"success":false,"error":{"code":"tool_failed","message":"no paper"}}; ' +
      'sent "Refunded." to "Alpha" (msg_9); ' +
      'sent "A1 was refunded. Agreed?" to "Dev" (msg_9), waiting for "Sarah", "Tom"',
  );
});

test("[K2] every kind of event can have begun such a cycle", () => {
  const begun = (event: InboxData) => summary([event], []);
  expect(begun(due("daily", "Daily", "Say hello"))).toBe('plan "Daily" was due: "Say hello"; said and did nothing');
  expect(begun(hooked("jira", { issue: 7 }))).toBe('service "jira" sent {"issue":7}; said and did nothing');
  expect(begun(resultOf("approve", "tc_1", { yes: true }))).toBe('approve answered {"yes":true}; said and did nothing');
  expect(begun(asked("Note this"))).toBe('"Husam" asked "Note this" in "Alpha"; said and did nothing');
  expect(selfSummary([], () => ({ lines: ["x"], deeds: [] }))).toBe("(no summary was written)");
  // An imported agent does not know the spaces of the workspace that it comes from.
  expect(summary([], [sent("15:07", "Hi", undefined, "msg_8")])).toBe('sent "Hi" (msg_8)');
});

test("[K2] [K8] answers that came, and those that did not, are told as what they are", () => {
  const question = { messageId: "msg_0", text: "Which quarter?" };
  const facts = { question, spaceName: "Alpha", late: ["Tom"], left: [], afterMs: 7_200_000 };
  const silence = resultOf("wait", "tc_1", facts);
  const unanswered = { activeSpaceId: alpha.id, unanswered: facts };
  const events = [{ ...asked("Q4", sarah), answers: [question] }, Object.assign(silence, unanswered)];
  expect(summary(events, [say("It is Q4.")])).toBe(
    '"Sarah" answered "Q4" in "Alpha", no answer came from "Tom" after 2 h to "Which quarter?" in "Alpha"; sent "It is Q4." to "Alpha" (msg_9)',
  );
});

test("[K2] words beside a last call are kept, and the facts with them", () => {
  const [spoken, result] = callMessages("send_message", { text: "Sent." }, { success: true });
  const content = spoken?.role === "assistant" && typeof spoken.content !== "string" ? spoken.content : [];
  const last: ModelMessage = { role: "assistant", content: [{ type: "text", text: "I tell him." }, ...content] };
  expect(summary([asked("Sent?")], [say("Sent.")], [last, ...(result ? [result] : [])])).toBe(
    'I tell him. — "Husam" asked "Sent?" in "Alpha"; sent "Sent." to "Alpha" (msg_9)',
  );
});

test("[K2] of many events and calls those that woke it and spoke are told, the rest counted", () => {
  const chatter = Array.from({ length: 5 }, (_, index) =>
    arrived(alpha, said(`c${index}`, "15:00", sarah, `Chatter ${index}`), "none"),
  );
  const calls = Array.from({ length: 30 }, (_, index) => call("look_up", { index, why: "because it matters" }, "ok"));
  const told = summary([asked("One"), ...chatter, asked("Two")], [say("First."), ...calls]);
  expect(told).toMatch(/^"Husam" asked "One" in "Alpha", "Sarah" asked "Chatter 4" in "Alpha", "Husam" asked "Two"/);
  expect(told).toContain(', 4 more events; sent "First." to "Alpha" (msg_9); called look_up(');
  expect(told).toMatch(/; \d+ more calls$/);
  expect(told.length).toBeLessThanOrEqual(1000);
});

test("[K2] [S2] [B3] hostile words make no line of their own, nor a summary beyond its bound", () => {
  const event = fc.oneof(
    fc.record({ name: hostile, text: hostile }).map(({ name, text }) => asked(text, { ...human("X"), name })),
    fc.tuple(hostile, hostile).map(([name, instruction]) => due("p", name, instruction)),
    fc.tuple(hostile, hostileJson).map(([service, payload]) => hooked(service, payload)),
  );
  const deed = fc.oneof(
    fc.record({ text: hostile }).map(({ text }) => say(text.repeat(20), text)),
    fc
      .record({ input: hostileJson, value: hostileJson })
      .map(({ input, value }) => call("refund", { input }, { value })),
  );
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 5 }), fc.array(deed, { maxLength: 12 }), (events, deeds) => {
      const told = summary(events, deeds);
      expect(told.length).toBeLessThanOrEqual(2000);
      expect(told).not.toMatch(/[\r\n\u2028\u2029]/);
      // Outside of quoted strings nothing is left but the runtime's own words.
      const own = told.replace(/"(?:[^"\\]|\\.)*"/g, '""');
      expect(own).toMatch(/^[\w\s"()[\]{}:,;.→+-]*$/);
    }),
    { numRuns: 1000, seed: 5 },
  );
});
