import fc from "fast-check";
import { expect, test } from "vitest";
import { eventLine, messageIn, renderInboxPreview } from "../../../../src/agent/context/consciousness/inbox-message.ts";
import { toldState } from "../../../../src/agent/context/consciousness/state.ts";
import { quoteJson } from "../../../../src/agent/context/wording.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import {
  analyst,
  arrived,
  called,
  goal,
  hooked,
  husam,
  inboxText,
  memory,
  resultOf,
  said,
  space,
  stateOf,
} from "../cast.ts";
import { hostile } from "../hostile.ts";

const family = space("Family", husam, analyst);
const state = toldState(
  stateOf(analyst, {
    spaces: [family],
    goals: [goal("q4", "Complete Q4", { priority: 2 })],
    memories: [memory("deadline", "Feb 28")],
  }),
);

const message = (text: string, more: object = {}): InboxData => arrived(family, said("1", "14:00", husam, text, more));
const unchanged = { told: state, toldBefore: state };

test("a tool call of another agent tells its name, input, status, and what came of it", () => {
  const tellOf = (toolCall: Parameters<typeof called>[3]) => {
    const event = arrived(family, called("1", "14:00", husam, toolCall));
    const line = inboxText([event], unchanged).split("\n")[1] ?? "";
    return { line, glance: renderInboxPreview([event], 1) };
  };
  const call = { id: "tc_1", name: "deploy", input: { version: "1.2" } };
  const waiting = tellOf({ ...call, status: "requires_action" });
  expect(waiting.line).toContain('called deploy({"version":"1.2"}) [requires_action]');
  expect(waiting.glance).toContain('"Husam": called "deploy" [requires_action]');
  const failed = tellOf({ ...call, status: "error", error: { code: "tool_failed", message: "no\nlight" } });
  expect(failed.line).toContain('[error] → {"error":{"code":"tool_failed","message":"no\\nlight"}}');
});
test("[K3] [S2] a message is read back from its line or trigger, whatever its words are", () => {
  fc.assert(
    fc.property(hostile, hostile, hostile, (name, place, words) => {
      const event = arrived({ ...family, name: place }, said("1", "14:00", { ...husam, name }, words));
      if (event.type !== "space_message") throw new Error("a message is expected");
      const { id: messageId, spaceId } = event.delivered.message;
      const told = { messageId, spaceId, spaceName: place, senderId: husam.id, senderName: name, text: words };
      expect(messageIn(eventLine(event))).toMatchObject(told);
      expect(messageIn(quoteJson(event))).toMatchObject(told);
      const answer = { ...event, answers: [{ messageId: "msg_QUESTION", text: name }] };
      expect(messageIn(eventLine(answer))).toMatchObject(told);
    }),
  );
  for (const event of [hooked("jira", { issue: 'a "b"' }), resultOf("confirm", "tc_1", {})]) {
    expect(messageIn(eventLine(event))).toBeUndefined();
    expect(messageIn(quoteJson(event))).toBeUndefined();
  }
});

test("the first inbox message of a window tells the whole state", async () => {
  const events = [
    message("Tell Muhammad the meeting is at 3pm"),
    message("Here it is", {
      replyTo: "msg_0",
      origin: {
        spaceId: "spc_ALPHA",
        sourceSpaceName: "Project Alpha",
        sourceSenderName: "Ahmad",
        sourceEvent: "Send the report",
      },
    }),
    hooked("jira", { issue: "PROJ-123" }),
    resultOf("confirmAction", "tc_1", { confirmed: true }),
  ];
  await expect(inboxText(events, { told: state })).toMatchFileSnapshot("./first-inbox.golden.txt");
});

test("a later inbox message tells what was read in silence, and only what changed", async () => {
  const before = { ...state, MEMORIES: { old: '"old": "gone soon"' }, GOALS: {} };
  const text = inboxText([message("And now?")], {
    leftToHistory: [{ id: "spc_FAMILY", name: "Family", messages: 12 }],
    silent: { lines: ['["Family", spc_FAMILY] "Husam" (human, id: ent_HUSAM, msg_0): "Option A"'], omitted: 2 },
    told: state,
    toldBefore: before,
    activeSpace: family,
  });
  await expect(text).toMatchFileSnapshot("./later-inbox.golden.txt");
});

test("nothing changed, nothing is told", () => {
  expect(inboxText([message("hi")], { ...unchanged, activeSpace: family })).not.toContain("STATE");
});

test("a preview shows fifty characters and how many wait", () => {
  expect(renderInboxPreview([message("x".repeat(60))], 3)).toBe(
    `INBOX PREVIEW (3 waiting; they come in full in the next cycle):\n  ["Family"] "Husam": "${"x".repeat(50)}…"`,
  );
});

test("of memories that do not fit, the newest are told, of the others that they are kept", () => {
  const memories = [memory("old", "words ".repeat(50)), memory("new", "short", "10:00")];
  const told = toldState(stateOf(analyst, { memories }), 20);
  expect(told.MEMORIES).toEqual({ old: '"old" is kept, not shown: get_memories reads it', new: '"new": "short"' });
});

test("[K8] answers that were awaited, who did not answer, and who waits, each on its line", async () => {
  const question = { messageId: "msg_0", text: "@Husam @Ahmad @Sarah which quarter?" };
  const facts = { question, spaceName: family.name, late: ["Ahmad"], left: ["Sarah"], afterMs: 7_200_000 };
  const silence = resultOf("wait", "tc_1", facts);
  if (silence.type !== "tool_result") throw new Error("a result is expected");
  const only = (late: string[], left: string[]): InboxData => ({
    ...{ ...silence, activeSpaceId: family.id, unanswered: { ...facts, late, left, afterMs: 5_400_000 } },
  });
  const answer = arrived(family, said("2", "14:01", husam, "The last one", { replyTo: "msg_0" }), "none");
  const events = [
    { ...answer, answers: [question] },
    { ...silence, activeSpaceId: family.id, unanswered: facts },
    only(["Ahmad", "Sarah"], []),
    only([], ["Ahmad"]),
    message("Which one is it?", { expectsReply: true }),
  ];
  const text = inboxText(events, { ...unchanged, canWait: true });
  await expect(text).toMatchFileSnapshot("./answers-inbox.golden.txt");
  expect(inboxText([message("Which one?", { expectsReply: true })], unchanged)).not.toContain("expects a reply");
});
