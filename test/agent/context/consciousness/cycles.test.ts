import type { ModelMessage } from "ai";
import { expect, test } from "vitest";
import type { AgentState, KnownSpace } from "../../../../src/agent/context/agent-state.ts";
import { compose } from "../../../../src/agent/context/compose.ts";
import type { Cycle } from "../../../../src/agent/context/consciousness/compaction.ts";
import { compact } from "../../../../src/agent/context/consciousness/compaction.ts";
import type { CycleFacts } from "../../../../src/agent/context/consciousness/cycle-summary.ts";
import { eventLine, renderInboxPreview } from "../../../../src/agent/context/consciousness/inbox-message.ts";
import { toldState } from "../../../../src/agent/context/consciousness/state.ts";
import { renderInstructions } from "../../../../src/agent/context/instructions.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import type { Message } from "../../../../src/protocol/message.ts";
import {
  agent,
  arrived,
  callMessages,
  configOf,
  day,
  did,
  due,
  goal,
  husam,
  inboxText,
  livedSnapshot,
  memory,
  muhammad,
  plan,
  said,
  sarah,
  sent,
  space,
  stateOf,
} from "../cast.ts";
import { readable } from "../readable.ts";

/** Whole inputs of a consciousness over several cycles, as a model is given them. */
const self = agent("Assistant");
const config = configOf(self, { continuity: "consciousness", messaging: "simple" });
const instructions = renderInstructions(self.id, config);
const standing = "instructions-consciousness-simple.golden.txt";

const family = space("Family", husam, muhammad, self);
const dev = space("Dev Channel", self, sarah, agent("DevBot"));

const state = (changes: Partial<AgentState> = {}): AgentState => stateOf(self, { spaces: [family, dev], ...changes });

type Inbox = {
  time: string;
  events: InboxData[];
  now: AgentState;
  before: AgentState | null;
  active: KnownSpace | null;
};

const inbox = ({ time, events, now, before, active }: Inbox): ModelMessage => ({
  role: "user",
  content: inboxText(events, {
    now: day(time),
    told: toldState(now),
    toldBefore: before === null ? null : toldState(before),
    activeSpace: active,
  }),
});

let calls = 0;
const call = (toolName: string, input: object, value: object): ModelMessage[] => {
  calls += 1;
  return callMessages(toolName, input, value, `tc_${calls}`);
};

const entryOf = (message: Message) => ({
  id: message.id,
  senderName: message.sender.name,
  senderType: message.sender.type,
  content: message.text,
  timestamp: message.createdAt,
});

const entered = (spaceId: string, spaceName: string, messages: Message[], totalMessages: number) => ({
  ...{ spaceId, spaceName, history: messages.map(entryOf), totalMessages },
});

const enter = ({ id, name }: KnownSpace, ...messages: Message[]): ModelMessage[] =>
  call("enter_space", { spaceId: id }, { success: true, ...entered(id, name, messages, messages.length) });

const say = (text: string, messageId: string): ModelMessage[] =>
  call("send_message", { text }, { success: true, messageId, status: "delivered" });

const end = (text: string): ModelMessage => ({ role: "assistant", content: text });

const request = said("1", "14:00", husam, "Send the report to the dev channel");
const switching: Cycle = {
  runId: "run_1",
  messages: [
    inbox({ time: "14:00:01", events: [arrived(family, request)], now: state(), before: null, active: null }),
    ...enter(family, request),
    ...say("Got it, sending now", "msg_2"),
    ...enter(dev, said("0", "13:00", sarah, "Is there a report?")),
    ...say("Here's the Q4 report", "msg_3"),
    ...enter(family),
    ...say("Done — posted to dev channel", "msg_4"),
    end("Husam asked in Family for the report in Dev Channel; I posted it there and told him."),
  ],
};

test("seed 003: an agent that moves between spaces sees in later cycles where it was, and why", async () => {
  const thanks = said("5", "14:10", sarah, "Thanks! Who asked for it?", {});
  const own = inbox({
    time: "14:10:01",
    events: [arrived(dev, thanks)],
    now: state(),
    before: state(),
    active: family,
  });
  const composed = compose(
    livedSnapshot(config, [own], { window: { instructions, summary: null }, past: [switching] }),
  );
  await expect(readable(composed, standing)).toMatchFileSnapshot("./space-switching.golden.txt");
});

test("seed 003: a foreign space, words with no active space, and messages before the window", async () => {
  const refused = (code: string, message: string) => ({ success: false, error: { code, message } });
  const asked = said("60", "14:20", sarah, "What did Husam say first?");
  const own = [
    inbox({ time: "14:20:01", events: [arrived(dev, asked)], now: state(), before: null, active: null }),
    ...call(
      "send_message",
      { text: "One moment" },
      refused("no_active_space", "no space is active: call enter_space first"),
    ),
    ...call(
      "enter_space",
      { spaceId: "spc_ELSEWHERE" },
      refused("not_a_member", "you are not a member of that space; YOUR SPACES lists yours"),
    ),
    ...call("enter_space", { spaceId: dev.id, limit: 1 }, { success: true, ...entered(dev.id, dev.name, [asked], 61) }),
    ...call(
      "read_messages",
      { offset: 60, limit: 50 },
      { messages: [entryOf(said("0", "09:00", husam, "Welcome, all"))], total: 61 },
    ),
  ];
  const composed = compose(livedSnapshot(config, own, { window: { instructions, summary: null } }));
  await expect(readable(composed, standing)).toMatchFileSnapshot("./refusals-and-paging.golden.txt");
});

test("plans, goals and memories are told as they change, in absolute times; due plans as events", async () => {
  const daily = plan("daily", "Daily Report", "Post the daily summary", {
    cron: "0 9 * * *",
    nextRunAt: "2026-02-19T09:00:00.000Z",
  });
  const follow = plan("follow", "Follow up", "Ask Designer", { runAfter: "2 hours", nextRunAt: day("17:07") });
  const drop = plan("drop", "Old one", "Forget it", { cron: "0 0 * * 1", nextRunAt: "2026-02-23T00:00:00.000Z" });
  const before = state({
    plans: [daily, follow, drop],
    goals: [goal("q4", "Complete Q4")],
    memories: [memory("a", "1")],
  });
  const after = state({
    plans: [daily, { ...plan("follow", "Follow up", "Ask Designer", { runAfter: "2 hours" }), status: "done" }],
    goals: [goal("q4", "Complete Q4", { status: "completed" })],
    memories: [],
  });
  const preview = renderInboxPreview([due("daily", "Daily Report", "Post it")], 1);
  const own = [
    inbox({ time: "17:07", events: [due("follow", "Follow up", "Ask Designer")], now: after, before, active: null }),
    { role: "user", content: preview } as const,
  ];
  const messages = [
    inbox({ time: "15:07", events: [arrived(family, request)], now: before, before: null, active: null }),
    end("Nothing to do yet; I planned to follow up."),
  ];
  const window = { instructions, summary: "- Husam asked for the Q4 numbers; I posted them in Project Alpha." };
  const composed = compose(livedSnapshot(config, own, { window, past: [{ runId: "run_1", messages }] }));
  await expect(readable(composed, standing)).toMatchFileSnapshot("./plans.golden.txt");
});

test("[K2] a compaction leaves each cycle's own words or its facts, and the newest cycles whole", async () => {
  const small = (index: number): Cycle => ({
    runId: `run_${index}`,
    messages: [
      inbox({
        time: `15:0${index}`,
        events: [arrived(family, said(`${index}`, `15:0${index}`, husam, `Question ${index}`))],
        now: state(),
        before: state(),
        active: family,
      }),
      ...say(`Answer ${index}`, `msg_A${index}`),
      end(`Answered question ${index} of Husam.`),
    ],
  });
  const asked = arrived(family, said("1", "15:00", husam, "Refund order A1, and ask Muhammad whether that is all"));
  const fired = due("daily", "Daily Report", "Post the numbers in Dev Channel");
  const facts: Record<string, CycleFacts> = {
    run_ASKED: {
      lines: [eventLine(asked)],
      deeds: [
        did("15:00", "refund", { order: "A1" }, { refunded: 12 }),
        sent("15:00", "Refunded. @Muhammad is that all?", family.name, "msg_A1", ["Muhammad"]),
      ],
    },
    run_FIRED: { lines: [eventLine(fired)], deeds: [sent("15:01", "12 orders, 1 refund.", dev.name, "msg_A2")] },
  };
  const wordless = Object.keys(facts).map((runId): Cycle => ({ runId, messages: [] }));
  const past = [switching, ...wordless, ...[1, 2, 3].map(small)];
  for (const strategy of ["self_summaries", "truncate"] as const) {
    const limits = { strategy, keepRecent: 1, maxTokens: 50_000 };
    const factsOf = ({ runId }: Cycle) => facts[runId] ?? { lines: [], deeds: [] };
    const compaction = compact(past, "- Introduced myself in Family.", limits, factsOf);
    expect(compaction?.keptFrom).toBe(5);
    const window = { instructions, summary: compaction?.summary ?? null };
    const events = [arrived(family, request)];
    const own = inbox({ time: "15:09", events, now: state(), before: null, active: family });
    const composed = compose(livedSnapshot(config, [own], { window, past: past.slice(compaction?.keptFrom) }));
    await expect(readable(composed, standing)).toMatchFileSnapshot(`./compacted-${strategy}.golden.txt`);
  }
});
