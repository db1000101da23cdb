import fc from "fast-check";
import { expect, test } from "vitest";
import { toldState } from "../../../../src/agent/context/consciousness/state.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import type { Origin } from "../../../../src/protocol/message.ts";
import {
  analyst,
  arrived,
  due,
  goal,
  hooked,
  human,
  inboxText,
  memory,
  plan,
  resultOf,
  said,
  stateOf,
} from "../cast.ts";
import { hostile, hostileJson, hostileOrigin, readBack } from "../hostile.ts";
import { linesOf, Reader, readOrigin } from "../reader.ts";

type Called = { name: string; input: unknown; output: unknown };
type Said = {
  call: Called | undefined;
  space: string;
  sender: string;
  text: string;
  replyTo: string | undefined;
  origin: Origin | undefined;
  question: string | undefined;
  expectsReply: boolean;
};

const asEvent = ({ call, space, sender, text, replyTo, origin, question, expectsReply }: Said): InboxData => {
  const { text: _, ...message } = said("1", "15:07", { ...human("1"), name: sender }, text);
  const content = call
    ? { kind: "tool_call" as const, toolCall: { id: "tc_1", status: "complete" as const, ...call } }
    : { text };
  const notes = { ...(replyTo === undefined ? {} : { replyTo }), ...(origin === undefined ? {} : { origin }) };
  const waits = expectsReply ? { expectsReply } : {};
  return {
    ...arrived({ id: "spc_1", name: space }, { ...message, ...content, ...notes, ...waits }),
    ...(question === undefined ? {} : { answers: [{ messageId: "msg_Q", text: question }] }),
  };
};

/** Two who did not answer, one in time and one who left. */
const unanswered = (spaceName: string, text: string, late: string, left: string): InboxData => {
  const facts = { question: { messageId: "msg_Q", text }, spaceName, late: [late], left: [left], afterMs: 7_200_000 };
  const result = resultOf("wait", "tc_1", facts);
  return result.type === "tool_result" ? { ...result, activeSpaceId: "spc_1", unanswered: facts } : result;
};

const event: fc.Arbitrary<InboxData> = fc.oneof(
  fc
    .record({
      space: hostile,
      sender: hostile,
      text: hostile,
      call: fc.option(fc.record({ name: hostile, input: hostileJson, output: hostileJson }), { nil: undefined }),
      replyTo: fc.constantFrom(undefined, "msg_0"),
      origin: fc.option(hostileOrigin, { nil: undefined }),
      question: fc.option(hostile, { nil: undefined }),
      expectsReply: fc.boolean(),
    })
    .map(asEvent),
  fc.tuple(hostile, hostile, hostile, hostile).map((texts) => unanswered(...texts)),
  fc.tuple(hostile, hostile).map(([name, instruction]) => due("p", name, instruction)),
  fc.tuple(hostile, hostileJson).map(([service, payload]) => hooked(service, payload)),
  fc
    .tuple(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), hostileJson)
    .map(([tool, result]) => resultOf(tool, "tc_1", result)),
);

/** What an event says, without the ids that the runtime gave it. */
const facts = (each: InboxData): unknown => {
  if (each.type === "plan") return { plan: each.planName, instruction: each.instruction };
  if (each.type === "service") return { service: each.serviceName, payload: each.payload };
  if (each.type === "tool_result" && each.unanswered) {
    const { spaceName, question, late, left } = each.unanswered;
    return { space: spaceName, question: question.text, late: late[0], left: left[0] };
  }
  if (each.type === "tool_result") return { tool: each.tool, result: each.result };
  const { sender, text, toolCall, replyTo, origin, expectsReply = false } = each.delivered.message;
  const question = each.answers?.[0]?.text;
  const { name, input, output } = toolCall ?? {};
  const said = toolCall ? JSON.parse(JSON.stringify({ name, input, output })) : text;
  return {
    space: each.spaceName,
    sender: sender.name,
    said,
    replyTo,
    origin: origin && readBack(origin),
    question,
    expectsReply,
  };
};

const readCall = (reader: Reader): unknown => {
  const name = reader.rest.startsWith('"') ? reader.string() : reader.match(/[\w.-]+/);
  reader.take("(");
  const input = reader.json();
  reader.take(") [complete] → ");
  return { name, input, output: reader.json() };
};

const read = (line: string): unknown => {
  const reader = new Reader(line);
  reader.take("  [");
  if (reader.takes("Plan ")) {
    const name = reader.string();
    reader.take("] ");
    const instruction = reader.string();
    reader.end();
    return { plan: name, instruction };
  }
  if (reader.takes("Service ")) {
    const service = reader.string();
    reader.take("] ");
    const payload = reader.json();
    reader.end();
    return { service, payload };
  }
  if (reader.takes("Tool result ")) {
    const tool = reader.match(/[A-Za-z0-9_-]+/);
    reader.take(", tc_1] ");
    const result = reader.json();
    reader.end();
    return { tool, result };
  }
  if (reader.takes("no answer from ")) {
    const late = reader.string();
    reader.take(" after 2 h; ");
    const left = reader.string();
    reader.take(" left] [");
    const space = reader.string();
    reader.take(", spc_1] to msg_Q ");
    const question = reader.string();
    reader.end();
    return { space, question, late, left };
  }
  const question = reader.takes("answer to msg_Q ") ? reader.string() : undefined;
  if (question !== undefined) reader.take("] [");
  const space = reader.string();
  reader.take(", spc_1] ");
  const sender = reader.string();
  reader.take(" (human, id: ent_1, msg_1): ");
  const said = reader.takes("called ") ? readCall(reader) : reader.string();
  reader.take(" [triggerSource: every_message]");
  const replyTo = reader.takes(" [reply to ") ? reader.match(/\w+/) : undefined;
  if (replyTo !== undefined) reader.take("]");
  const isSent = reader.rest.startsWith(" [sent because ");
  if (isSent) reader.take(" [");
  const origin = isSent ? readOrigin(reader) : undefined;
  const expectsReply = reader.takes(" [expects a reply]");
  reader.end();
  return { space, sender, said, replyTo, origin, question, expectsReply };
};

test("[S2] hostile names, texts and payloads come back from the inbox exactly, and add no line", () => {
  fc.assert(
    fc.property(fc.array(event, { minLength: 1, maxLength: 4 }), (events) => {
      const lines = linesOf(inboxText(events, { canWait: true, toldBefore: toldState(stateOf(analyst)) }));
      expect(lines).toHaveLength(events.length + 3);
      expect(lines.slice(1, -2).map(read)).toEqual(events.map(facts));
    }),
    { numRuns: 1000, seed: 11 },
  );
});

test("[S2] spaces, goals, memories and plans cannot leave their lines, and come back exactly", () => {
  fc.assert(
    fc.property(fc.array(hostile, { minLength: 7, maxLength: 7 }), (texts) => {
      const [space = "", member = "", described = "", value = "", name = "", instruction = "", cron = ""] = texts;
      const told = toldState({
        agentId: analyst.id,
        spaces: [{ id: "spc_1", name: space, members: [{ id: "ent_1", name: member, type: "human", joinedAt: "" }] }],
        goals: [goal("g", described)],
        memories: [memory("k", value)],
        plans: [plan("p", name, instruction, { cron, timezone: cron })],
      });
      const line = (section: string): Reader => {
        const [only = ""] = Object.values(told[section] ?? {});
        expect(linesOf(only)).toHaveLength(1);
        return new Reader(only);
      };
      const spaces = line("YOUR SPACES");
      expect(spaces.string()).toBe(space);
      spaces.take(" (id: spc_1) — ");
      expect(spaces.string()).toBe(member);
      expect(spaces.rest).toBe(" (human)");
      const goals = line("GOALS");
      expect(goals.string()).toBe(described);
      expect(goals.rest).toBe(" (id: g, active)");
      const memories = line("MEMORIES");
      memories.take('"k": ');
      expect(memories.string()).toBe(value);
      expect(memories.rest).toBe("");
      const plans = line("PLANS");
      expect(plans.string()).toBe(name);
      plans.take(" (id: p, recurring, cron: ");
      if (plans.rest.startsWith('"')) expect(plans.string()).toBe(cron);
      else plans.take(cron);
      plans.take(", timezone: ");
      if (plans.rest.startsWith('"')) expect(plans.string()).toBe(cron);
      else plans.take(cron);
      plans.take("): ");
      const short = [...instruction].length <= 200;
      expect(plans.string()).toBe(short ? instruction : `${[...instruction].slice(0, 200).join("")}…`);
      expect(plans.rest).toBe("");
    }),
    { numRuns: 1000, seed: 12 },
  );
});
