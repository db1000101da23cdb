import { expect, test } from "vitest";
import type { InboxEvent } from "../../../../src/agent/context/consciousness/inbox-message.ts";
import { renderInboxMessage, renderInboxPreview } from "../../../../src/agent/context/consciousness/inbox-message.ts";
import { toldState } from "../../../../src/agent/context/consciousness/state.ts";

const joinedAt = "2026-02-18T14:00:00.000Z";
const family = {
  id: "spc_FAMILY",
  name: "Family",
  members: [
    { id: "ent_HUSAM", name: "Husam", type: "human" as const, joinedAt },
    { id: "ent_ME", name: "Analyst", type: "agent" as const, joinedAt },
  ],
};
const state = toldState({
  agentId: "ent_ME",
  spaces: [family],
  goals: [
    {
      id: "q4",
      description: "Complete Q4",
      status: "active",
      priority: 2,
      longTerm: false,
      updatedAt: joinedAt,
    },
  ],
  memories: [{ key: "deadline", value: "Feb 28", updatedAt: joinedAt }],
  plans: [],
});

const message = (text: string, more: object = {}): InboxEvent => ({
  type: "space_message",
  spaceName: "Family",
  delivered: {
    message: {
      id: "msg_1",
      seq: 7,
      spaceId: "spc_FAMILY",
      kind: "text",
      sender: { id: "ent_HUSAM", name: "Husam", type: "human" },
      text,
      createdAt: joinedAt,
      ...more,
    },
    root: { id: "msg_1", kind: "person" },
    triggerSource: "every_message",
  },
});

const now = "2026-02-18T15:07:00.000Z";

test("a tool call of another agent tells its name, input, status, and what came of it", () => {
  const tellOf = (toolCall: object) => {
    const event = message("", { kind: "tool_call", text: undefined, toolCall: { id: "tc_1", ...toolCall } });
    const input = { now, events: [event], silent: { lines: [], omitted: 0 }, leftToHistory: [] };
    const whole = renderInboxMessage({ ...input, told: state, toldBefore: state, activeSpace: null });
    return { line: whole.split("\n")[1] ?? "", glance: renderInboxPreview([event], 1) };
  };
  const call = { name: "deploy", input: { version: "1.2" } };
  const waiting = tellOf({ ...call, status: "requires_action" });
  expect(waiting.line).toContain('called deploy({"version":"1.2"}) [requires_action]');
  expect(waiting.glance).toContain('"Husam": called "deploy" [requires_action]');
  const failed = tellOf({ ...call, status: "error", error: { code: "tool_failed", message: "no\nlight" } });
  expect(failed.line).toContain('[error] → {"error":{"code":"tool_failed","message":"no\\nlight"}}');
});
test("the first inbox message of a window tells the whole state", async () => {
  const text = renderInboxMessage({
    now,
    events: [
      message("Tell Muhammad the meeting is at 3pm"),
      message("Here it is", {
        replyTo: "msg_0",
        origin: {
          sourceSpaceId: "spc_ALPHA",
          sourceSpaceName: "Project Alpha",
          sourceSenderName: "Ahmad",
          sourceEvent: "Send the report",
        },
      }),
      { type: "service", serviceName: "jira", payload: { issue: "PROJ-123" } },
      {
        type: "tool_result",
        tool: "confirmAction",
        toolCallId: "tc_1",
        result: { confirmed: true },
      },
    ],
    leftToHistory: [],
    silent: { lines: [], omitted: 0 },
    told: state,
    toldBefore: null,
    activeSpace: null,
  });
  await expect(text).toMatchFileSnapshot("./first-inbox.golden.txt");
});

test("a later inbox message tells what was read in silence, and only what changed", async () => {
  const before = { ...state, MEMORIES: { old: '"old": "gone soon"' }, GOALS: {} };
  const text = renderInboxMessage({
    now,
    events: [message("And now?")],
    leftToHistory: [{ id: "spc_FAMILY", name: "Family", messages: 12 }],
    silent: { lines: ['["Family", spc_FAMILY] "Husam" (human, id: ent_HUSAM, msg_0): "Option A"'], omitted: 2 },
    told: state,
    toldBefore: before,
    activeSpace: family,
  });
  await expect(text).toMatchFileSnapshot("./later-inbox.golden.txt");
});

test("nothing changed, nothing is told", () => {
  const text = renderInboxMessage({
    now,
    events: [message("hi")],
    leftToHistory: [],
    silent: { lines: [], omitted: 0 },
    told: state,
    toldBefore: state,
    activeSpace: family,
  });
  expect(text).not.toContain("STATE");
});

test("a preview shows fifty characters and how many wait", () => {
  expect(renderInboxPreview([message("x".repeat(60))], 3)).toBe(
    `INBOX PREVIEW (3 waiting; they come in full in the next cycle):\n  ["Family"] "Husam": "${"x".repeat(50)}…"`,
  );
});

test("of memories that do not fit, the newest are told, of the others that they are kept", () => {
  const memories = [
    { key: "old", value: "words ".repeat(50), updatedAt: "2026-02-18T09:00:00.000Z" },
    { key: "new", value: "short", updatedAt: "2026-02-18T10:00:00.000Z" },
  ];
  const told = toldState({ agentId: "ent_ME", spaces: [], goals: [], memories, plans: [] }, 20);
  expect(told.MEMORIES).toEqual({ old: '"old" is kept, not shown: get_memories reads it', new: '"new": "short"' });
});
