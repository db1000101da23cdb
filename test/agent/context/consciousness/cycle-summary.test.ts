import type { ModelMessage } from "ai";
import fc from "fast-check";
import { expect, test } from "vitest";
import { selfSummary } from "../../../../src/agent/context/consciousness/cycle-summary.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import { arrived, callMessages, due, hooked, human, husam, inboxText, resultOf, said, sarah, space } from "../cast.ts";
import { hostile, hostileJson } from "../hostile.ts";

const alpha = space("Alpha", husam, sarah);
const dev = space("Dev", husam);
const inbox = (events: InboxData[], activeSpace: typeof alpha | null = null): ModelMessage => ({
  role: "user",
  content: inboxText(events, { activeSpace }),
});
const asked = (text: string, from = husam) => arrived(alpha, said("1", "15:06", from, text));
let calls = 0;
const call = (toolName: string, input: object, value: object | string): ModelMessage[] => {
  calls += 1;
  return callMessages(toolName, input, value as object, `tc_${calls}`);
};
const enter = ({ id, name }: typeof alpha) =>
  call("enter_space", { spaceId: id }, { success: true, spaceId: id, spaceName: name, history: [] });
const say = (text: string, more: object = {}) =>
  call("send_message", { text }, { success: true, messageId: "msg_9", status: "delivered", ...more });

test("a cycle that ended with words of its own is summarised by them", () => {
  const messages: ModelMessage[] = [
    inbox([asked("Refund?")]),
    { role: "assistant", content: "Let me see." },
    ...say("Done."),
    { role: "assistant", content: "Told Husam\nthat it is done. " },
  ];
  expect(selfSummary(messages)).toBe("Told Husam that it is done.");
});

test("[K2] a cycle without last words is told by its trigger, what it said where, and its calls", () => {
  const messages = [
    inbox([asked("Refund A1, and tell Dev")]),
    ...enter(alpha),
    ...call("refund", { order: "A1" }, "ok"),
    ...call("audit", { order: "A1" }, { success: true }),
    ...call("ledger", {}, { success: true, balance: 7 }),
    ...call("post", {}, { success: false, error: { code: "tool_failed", message: "no paper" } }),
    ...say("Refunded."),
    ...enter(dev),
    ...say("A1 was refunded. Agreed?", { waitingFor: ["Sarah", "Tom"] }),
  ];
  expect(selfSummary(messages)).toBe(
    '"Husam" asked "Refund A1, and tell Dev" in "Alpha"; called refund({"order":"A1"}) → "ok"; ' +
      'called audit({"order":"A1"}) → ok; called ledger({}) → ok {"balance":7}; called post({}) → error "no paper"; ' +
      'said "Refunded." there; said "A1 was refunded. Agreed?" in "Dev" and waited for "Sarah", "Tom"',
  );
});

test("[K2] every kind of event can have begun such a cycle, and the space may have been active", () => {
  const begun = (event: InboxData) => selfSummary([inbox([event], alpha), ...say("Noted.")]);
  expect(begun(due("daily", "Daily", "Say hello"))).toBe('plan "Daily" was due: "Say hello"; said "Noted." in "Alpha"');
  expect(begun(hooked("jira", { issue: 7 }))).toBe('service "jira" sent {"issue":7}; said "Noted." in "Alpha"');
  expect(begun(resultOf("approve", "tc_1", { yes: true }))).toBe(
    'approve answered {"yes":true}; said "Noted." in "Alpha"',
  );
  expect(begun(asked("Note this"))).toBe('"Husam" asked "Note this" in "Alpha"; said "Noted." there');
});

test("[K2] [K8] answers that came, and those that did not, are told as what they are", () => {
  const question = { messageId: "msg_0", text: "Which quarter?" };
  const facts = { question, spaceName: "Alpha", late: ["Tom"], left: [], afterMs: 7_200_000 };
  const silence = resultOf("wait", "tc_1", facts);
  const unanswered = { activeSpaceId: alpha.id, unanswered: facts };
  const events = [{ ...asked("Q4", sarah), answers: [question] }, Object.assign(silence, unanswered)];
  expect(selfSummary([inbox(events), ...enter(alpha), ...say("It is Q4.")])).toBe(
    '"Sarah" answered "Q4" in "Alpha", no answer came from "Tom" after 2 h to "Which quarter?" in "Alpha"; said "It is Q4." there',
  );
});

test("[K2] a cycle that neither said nor did anything says that too", () => {
  expect(selfSummary([inbox([asked("Hm")]), { role: "assistant", content: "(no answer)" }])).toBe(
    '"Husam" asked "Hm" in "Alpha"; said and did nothing',
  );
  expect(selfSummary([{ role: "user", content: "x" }])).toBe("(no summary was written)");
});

test("[K2] words beside a last call are kept, and the facts with them", () => {
  const [spoken, result] = say("Sent.");
  const content = spoken?.role === "assistant" && typeof spoken.content !== "string" ? spoken.content : [];
  const last: ModelMessage = { role: "assistant", content: [{ type: "text", text: "I tell him." }, ...content] };
  expect(selfSummary([inbox([asked("Sent?")], alpha), last, ...(result ? [result] : [])])).toBe(
    'I tell him. — "Husam" asked "Sent?" in "Alpha"; said "Sent." there',
  );
});

test("[K2] of many events and calls those that woke it and spoke are told, the rest counted", () => {
  const chatter = Array.from({ length: 5 }, (_, index) =>
    arrived(alpha, said(`c${index}`, "15:00", sarah, `Chatter ${index}`), "none"),
  );
  const messages = [
    inbox([asked("One"), ...chatter, asked("Two")], alpha),
    ...say("First."),
    ...Array.from({ length: 30 }, (_, index) => call("look_up", { index, why: "because it matters" }, "ok")).flat(),
  ];
  const summary = selfSummary(messages);
  expect(summary).toMatch(/^"Husam" asked "One" in "Alpha", "Sarah" asked "Chatter 4" in "Alpha", "Husam" asked "Two"/);
  expect(summary).toContain(', 4 more events; said "First." there; called look_up(');
  expect(summary).toMatch(/; \d+ more calls$/);
  expect(summary.length).toBeLessThanOrEqual(1000);
});

test("[K2] [S2] [B3] hostile words make no line of their own, nor a summary beyond its bound", () => {
  const event = fc.oneof(
    fc.record({ name: hostile, text: hostile }).map(({ name, text }) => asked(text, { ...human("X"), name })),
    fc.tuple(hostile, hostile).map(([name, instruction]) => due("p", name, instruction)),
    fc.tuple(hostile, hostileJson).map(([service, payload]) => hooked(service, payload)),
  );
  const deed = fc.oneof(
    fc.record({ text: hostile }).map(({ text }) => say(text.repeat(20))),
    fc
      .record({ input: hostileJson, value: hostileJson })
      .map(({ input, value }) => call("refund", { input }, { value })),
    fc.record({ message: hostile }).map(({ message }) => call("post", {}, { success: false, error: { message } })),
  );
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 5 }), fc.array(deed, { maxLength: 12 }), (events, deeds) => {
      const summary = selfSummary([inbox(events), ...deeds.flat()]);
      expect(summary.length).toBeLessThanOrEqual(2000);
      expect(summary).not.toMatch(/[\r\n\u2028\u2029]/);
      // Outside of quoted strings nothing is left but the runtime's own words.
      const own = summary.replace(/"(?:[^"\\]|\\.)*"/g, '""');
      expect(own).toMatch(/^[\w\s"()[\]{}:,;.→+-]*$/);
    }),
    { numRuns: 1000, seed: 5 },
  );
});
