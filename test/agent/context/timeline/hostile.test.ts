import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { maxActivityLines, maxRecentCharacters, maxRecentRuns } from "../../../../src/agent/bounds.ts";
import { deedsIn } from "../../../../src/agent/context/activity.ts";
import { compose } from "../../../../src/agent/context/compose.ts";
import type { Deed } from "../../../../src/agent/context/deeds.ts";
import type { TimelineSnapshot } from "../../../../src/agent/context/timeline/compose-timeline.ts";
import { type HistoryEntry, heardIn } from "../../../../src/agent/context/timeline/history.ts";
import type { PastRun } from "../../../../src/agent/context/timeline/past-runs.ts";
import { quote } from "../../../../src/agent/context/wording.ts";
import type { InboxData } from "../../../../src/agent/records.ts";
import { estimateMessages, estimateText } from "../../../../src/agent/tokens.ts";
import type { Message } from "../../../../src/protocol/message.ts";
import {
  analyst,
  called,
  day,
  designer,
  due,
  fresh,
  goal,
  hooked,
  husam,
  memory,
  plan,
  resultOf,
  said,
  snapshotOf,
  triggerOf,
} from "../cast.ts";
import { hostile, hostileJson, hostileOrigin, readBack } from "../hostile.ts";
import { Reader } from "../reader.ts";
import { type Entry, parseTimeline, readDeed, type Told } from "./parse-timeline.ts";

/** A property is a thousand inputs. */
vi.setConfig({ testTimeout: 30_000 });

const at = day("15:07");

const sender = fc.oneof(
  fc.record({ id: fc.constant("ent_1"), name: hostile, type: fc.constantFrom("human" as const, "agent" as const) }),
  fc.record({ id: fc.constant(analyst.id), name: hostile, type: fc.constant("agent" as const) }),
);

const message: fc.Arbitrary<Message> = fc
  .record({
    sender,
    content: fc.oneof(
      hostile,
      fc.record({ name: hostile, input: hostileJson, output: fc.option(hostileJson, { nil: undefined }) }),
    ),
    replyTo: fc.constantFrom(undefined, "msg_0"),
    origin: fc.option(hostileOrigin, { nil: undefined }),
  })
  .map(({ sender: by, content, replyTo, origin }) => ({
    id: "msg_1",
    seq: 1,
    spaceId: "spc_1",
    ...(typeof content === "string"
      ? { kind: "text" as const, text: content }
      : { kind: "tool_call" as const, toolCall: { id: "tc_1", status: "complete" as const, ...content } }),
    sender: by,
    createdAt: at,
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(origin === undefined ? {} : { origin }),
  }));

const action = fc.record({ toolName: hostile, input: hostileJson, output: fc.option(hostileJson, { nil: undefined }) });

const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ kind: fc.constant("action" as const), at: fc.constant(at), callId: fc.constant("tc_2"), action }),
  fc.record({
    ...{ kind: fc.constant("sent" as const), at: fc.constant(at), callId: fc.constant("tc_3") },
    ...{
      text: hostile,
      spaceName: hostile,
      messageId: fc.constant("msg_elsewhere"),
      waitingFor: fc.constant<string[]>([]),
    },
  }),
);

const entries: fc.Arbitrary<HistoryEntry[]> = fc
  .array(fc.oneof(fc.record({ kind: fc.constant("message" as const), message, seen: fc.boolean() }), deed), {
    maxLength: 6,
  })
  .map((all) =>
    all.map((entry, index) =>
      entry.kind === "message" ? { ...entry, message: { ...entry.message, id: `msg_${index}` } } : entry,
    ),
  );

const defined = <Value extends object>(value: Value): Value => JSON.parse(JSON.stringify(value));

/** A deed as the prompt must give it back. */
const asTold = (deed: Deed): Told =>
  deed.kind === "action"
    ? { kind: "action", call: defined(deed.action) }
    : { kind: "sent", text: deed.text, spaceName: deed.spaceName, messageId: deed.messageId };

/** An entry as the prompt must give it back. */
const expected = (entry: HistoryEntry, why: InboxData): Entry => {
  if (entry.kind !== "message") return asTold(entry);
  const { id, sender: by, text, toolCall, replyTo, origin } = entry.message;
  const own = by.id === analyst.id;
  const marks = [
    entry.seen || own ? "[SEEN]" : "[NEW]",
    ...(why.type === "space_message" && id === why.delivered.message.id ? ["← TRIGGER"] : []),
    ...(id === "msg_1" ? ["← REPLY"] : []),
  ];
  return {
    kind: "message",
    id,
    sender: own ? null : { name: by.name, type: by.type },
    content: toolCall
      ? defined({ toolName: toolCall.name, input: toolCall.input, output: toolCall.output, status: toolCall.status })
      : (text ?? ""),
    marks: marks.join(" "),
    ...(replyTo === undefined ? {} : { replyTo }),
    ...(origin === undefined ? {} : { origin: readBack(origin) }),
  };
};

const trigger: fc.Arbitrary<InboxData> = fc.oneof(
  fc
    .record({ name: hostile, sender, text: hostile, expects: fc.boolean(), isRouted: fc.boolean() })
    .map(({ name, sender: by, text, expects, isRouted }) => {
      const source = isRouted ? "proactive_router" : "mention";
      return triggerOf(said("0", "15:07", by, text), { id: "spc_1", name }, source, expects);
    }),
  fc.tuple(hostile, hostile).map(([name, instruction]) => due("daily", name, instruction)),
  fc.tuple(hostile, hostileJson).map(([service, payload]) => hooked(service, payload)),
  fc.tuple(hostile, hostileJson).map(([tool, result]) => resultOf(tool, "tc_1", result)),
);

const snapshot: fc.Arbitrary<TimelineSnapshot> = fc
  .record({
    trigger,
    entries,
    names: fc.array(hostile, { minLength: 6, maxLength: 6 }),
    soFar: fc.array(action, { maxLength: 3 }),
    // None so long that its beginning alone is shown.
    deeds: fc.array(
      deed.filter((each) => JSON.stringify(each).length < maxRecentCharacters),
      { minLength: 1, maxLength: 3 },
    ),
    history: fc.constantFrom("prompt" as const, "messages" as const),
  })
  .map(({ trigger: why, entries: shown, names, soFar, deeds: done, history }) => {
    const [space = "", goalText = "", value = "", planName = "", replier = "", cron = ""] = names;
    const deeds = deedsIn({ id: "spc_2", name: space }, [usedBy(goalText, planName)], analyst.id);
    return snapshotOf({
      config: { messaging: "threaded", context: { history } },
      now: "15:07",
      spaces: [{ id: "spc_1", name: space, members: [{ ...analyst, joinedAt: at }] }],
      goals: [goal("g", goalText)],
      memories: [memory("k", value)],
      plans: [plan("p", planName, "…", { cron, nextRunAt: at })],
      activity: { deeds, dropped: [] },
      histories: [{ space: { id: "spc_1", name: space }, entries: shown, total: 0 }],
      trigger: why,
      activeSpace: { id: "spc_1", name: space, why: "trigger" },
      past: {
        earlier: 0,
        runs: [
          {
            ...{ runId: "run_1", at, end: "completed", tookOver: [], isResult: false },
            begunBy: { type: "space_message", senderName: goalText, spaceName: space, text: value },
            // No history shows these.
            deeds: done.map((each, index) => ({ ...each, callId: `tc_past${index}` })),
          },
        ],
      },
      takenOver: [{ runId: "run_2", event: hooked(goalText, { text: value }) }],
      resume: { soFar, replies: [{ messageId: "msg_1", name: replier }], timedOut: [space] },
    });
  });

const usedBy = (name: string, tool: string): Message =>
  called("1", "15:07", { ...designer, name }, { id: "tc_1", name: tool, input: {}, status: "complete" });

const headings = [
  ...["YOUR SPACES", "GOALS", "MEMORIES", "SPACE HISTORY", "RECENT RUNS", "PLANS", "ACTIVE RUNS", "THIS RUN SO FAR"],
  ...["← RESUME", "TAKEN OVER", "ACTIVITY", "TRIGGER", "ACTIVE SPACE", "NOW"],
];

test("[S2] hostile names, texts, payloads and results come back exactly, in both renderings", () => {
  fc.assert(
    fc.property(snapshot, (each) => {
      const parsed = parseTimeline(compose(each).messages);
      expect(parsed.headings).toEqual(headings);
      expect(parsed.entries).toEqual(each.histories[0]?.entries.map((entry) => expected(entry, each.trigger)));
    }),
    { numRuns: 1000, seed: 21 },
  );
});

const readFields = (lines: string[]): Map<string, Reader> =>
  new Map(
    lines.map((line) => {
      const reader = new Reader(line);
      reader.take("  ");
      const name = reader.match(/\w+/);
      reader.take(": ");
      return [name, reader];
    }),
  );

test("[S2] every other section holds exactly its own lines, whatever was written in them", () => {
  fc.assert(
    fc.property(snapshot, (each) => {
      const { sections } = parseTimeline(compose(each).messages);
      const linesIn = (name: string): string[] => sections.get(name)?.slice(1) ?? [];
      const only = (name: string, start: string): Reader => {
        expect(linesIn(name)).toHaveLength(1);
        const reader = new Reader(linesIn(name)[0] ?? "");
        reader.take(start);
        return reader;
      };
      const { state, trigger: why, resume } = each;
      expect(only("YOUR SPACES", "  - ").string()).toBe(state.spaces[0]?.name);
      expect(only("GOALS", "  - ").string()).toBe(state.goals[0]?.description);
      expect(only("MEMORIES", '  - "k": ').string()).toBe(state.memories[0]?.value);
      expect(only("PLANS", "  - ").string()).toBe(state.plans[0]?.name);
      expect(linesIn("ACTIVE RUNS")).toHaveLength(1);
      const [first, ...deeds] = linesIn("RECENT RUNS");
      const run = new Reader(first ?? "");
      run.take("  - [2026-02-18T15:07:00Z] run_1 (completed) — ");
      expect(run.string()).toBe(state.goals[0]?.description);
      run.take(" in ");
      expect(run.string()).toBe(state.spaces[0]?.name);
      run.take(": ");
      expect(run.string()).toBe(state.memories[0]?.value);
      run.end();
      expect(deeds.map(readDeed)).toEqual(each.past.runs[0]?.deeds.map(asTold));
      const told = only("ACTIVITY", "  - [15:07] ");
      expect(told.string()).toBe(state.goals[0]?.description);
      told.take(" used ");
      expect(told.string()).toBe(state.plans[0]?.name);
      told.take(" in ");
      expect(told.string()).toBe(state.spaces[0]?.name);
      told.end();

      const [, , service = "", payload = ""] = linesIn("TAKEN OVER");
      expect(linesIn("TAKEN OVER").slice(0, 2)).toEqual(["  - run: run_2", "    type: service"]);
      expect(service).toBe(`    service: ${quote(state.goals[0]?.description ?? "")}`);
      expect(JSON.parse(payload.replace("    payload: ", ""))).toEqual({ text: state.memories[0]?.value });

      const calls = linesIn("THIS RUN SO FAR");
      expect(calls).toHaveLength(Math.max(1, resume?.soFar.length ?? 0));
      const firstCall = resume?.soFar[0];
      if (firstCall) {
        const reader = new Reader(calls[0] ?? "");
        reader.take("  - called ");
        expect(reader.name()).toBe(firstCall.toolName);
        reader.take("(");
        expect(reader.json()).toEqual(firstCall.input);
        reader.take(")");
        if (firstCall.output !== undefined) {
          reader.take(" → ");
          expect(reader.json()).toEqual(firstCall.output);
        }
        reader.end();
      }

      const fields = readFields(linesIn("TRIGGER"));
      expect(fields.get("type")?.rest).toBe(why.type);
      if (why.type === "space_message") {
        const { message: asked, triggerSource } = why.delivered;
        expect(fields.get("message")?.string()).toBe(asked.text);
        expect(fields.get("sender")?.string()).toBe(asked.sender.name);
        expect(fields.get("space")?.string()).toBe(why.spaceName);
        const expects = asked.expectsReply === true && triggerSource !== "proactive_router";
        expect(fields.get("senderExpectsReply")?.rest).toBe(String(expects));
      } else if (why.type === "plan") {
        expect(fields.get("plan")?.string()).toBe(why.planName);
        expect(fields.get("instruction")?.string()).toBe(why.instruction);
      } else if (why.type === "tool_result") {
        expect(fields.get("tool")?.string()).toBe(why.tool);
        expect(fields.get("result")?.json()).toEqual(why.result);
      } else {
        expect(fields.get("service")?.string()).toBe(why.serviceName);
        expect(fields.get("payload")?.json()).toEqual(why.payload);
      }
    }),
    { numRuns: 1000, seed: 22 },
  );
});

test("the same snapshot gives the same bytes", () => {
  fc.assert(
    fc.property(snapshot, (each) => {
      const copy: TimelineSnapshot = structuredClone(each);
      expect(JSON.stringify(compose(copy))).toBe(JSON.stringify(compose(each)));
    }),
    { numRuns: 1000, seed: 23 },
  );
});

const ranBefore = (index: number, text: string): PastRun => ({
  ...{ runId: `run_${index}`, at, end: "completed", tookOver: [], isResult: false },
  begunBy: { type: "service", senderName: "jira", text },
  deeds: Array.from({ length: 1 + (index % 4) }, (_, call) => ({
    ...{ kind: "action", at, callId: `tc_${index}_${call}`, action: { toolName: "t", input: text } },
  })),
});

test("[B3] an input never exceeds its budget, and what it leaves out is named", () => {
  const size = fc.integer({ min: 0, max: 25 });
  const long = (index: number) => `${index} ${"and so on ".repeat(index % 12)}`;
  const sizes = fc.record({
    spaces: size,
    goals: size,
    memories: size,
    plans: size,
    messages: size,
    soFar: size,
    deeds: fc.integer({ min: 0, max: 40 }),
    runs: fc.integer({ min: 0, max: 30 }),
    maxTokens: fc.integer({ min: 4000, max: 12_000 }),
    memoryTokens: fc.integer({ min: 256, max: 4000 }),
    historyTokens: fc.integer({ min: 256, max: 8000 }),
    correction: fc.double({ min: 0.5, max: 1.5, noNaN: true }),
    history: fc.constantFrom("prompt" as const, "messages" as const),
    waited: fc.boolean(),
  });
  const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
    Array.from({ length: count }, (_, index) => make(index));
  fc.assert(
    fc.property(sizes, (given) => {
      const { maxTokens, memoryTokens, historyTokens, history } = given;
      const space = { id: "spc_1", name: "Alpha" };
      const entry = (index: number): HistoryEntry =>
        fresh(said(String(index), "15:07", index % 3 === 0 ? analyst : husam, long(index)));
      const deed = (index: number) =>
        deedsIn({ id: "spc_1", name: `Space ${index}` }, [usedBy(long(index), "t")], analyst.id);
      const histories = [{ space, entries: many(given.messages, entry), total: given.messages }];
      const soFar = many(given.soFar, (index) => ({ toolName: "t", input: long(index) }));
      const snapshot = snapshotOf({
        config: { context: { maxTokens, reservedResponseTokens: 512, memoryTokens, historyTokens, history } },
        now: "15:07",
        spaces: many(given.spaces, (index) => ({ id: `spc_${index}`, name: long(index), members: [] })),
        goals: many(given.goals, (index) => goal(`g${index}`, long(index))),
        memories: many(given.memories, (index) => memory(`k${index}`, long(index))),
        plans: many(given.plans, (index) => plan(`p${index}`, long(index), "", { runAfter: "2 hours", nextRunAt: at })),
        activity: { deeds: many(given.deeds, deed).flat(), dropped: [] },
        histories: given.waited ? [...histories, ...histories] : histories,
        past: { earlier: given.runs % 3, runs: many(given.runs, (index) => ranBefore(index, long(index))) },
        trigger: due("daily", "Daily", "Report"),
        resume: given.waited ? { soFar, replies: [], timedOut: ["Ahmad"] } : null,
      });
      const composed = compose({ ...snapshot, correction: given.correction });
      expect(composed.tokens).toBeLessThanOrEqual(maxTokens - 512);
      const whole = estimateText(composed.instructions) + estimateMessages(composed.messages);
      expect(whole * given.correction).toBeLessThanOrEqual(maxTokens - 512);
      const section = (name: string) => composed.sections.filter((each) => each.name === name);
      const tokensOf = (name: string) => section(name).reduce((sum, { tokens }) => sum + tokens, 0) * given.correction;
      expect(tokensOf("memories")).toBeLessThanOrEqual(memoryTokens + 20);
      expect(tokensOf("history")).toBeLessThanOrEqual(historyTokens + 200);
      const shown = (name: string, pattern: RegExp) =>
        section(name).reduce((sum, { text }) => sum + (text.match(pattern)?.length ?? 0), 0);
      const isDropped = (name: string) => composed.dropped.some((each) => each.name === name);
      const lines = Math.min(maxActivityLines, given.deeds);
      expect(isDropped("activity")).toBe(shown("activity", /^ {2}- /gm) < lines);
      expect(isDropped("memories")).toBe(shown("memories", /^ {2}- /gm) < given.memories);
      expect(isDropped("goals")).toBe(shown("goals", /^ {2}- /gm) < given.goals);
      expect(isDropped("plans")).toBe(shown("plans", /^ {2}- /gm) < given.plans);
      const ran = shown("recent_runs", /^ {2}- /gm);
      expect(ran).toBeLessThanOrEqual(maxRecentRuns);
      expect(isDropped("recent_runs")).toBe(ran < given.runs);
      const left = given.runs - ran + (given.runs % 3);
      expect(section("recent_runs")[0]?.text.includes(`(${left} earlier run`) ?? false).toBe(left > 0);
      const messages = given.messages * (given.waited ? 2 : 1);
      expect(isDropped("history")).toBe(shown("history", /\[msg_/g) < messages);
    }),
    { numRuns: 1000, seed: 24 },
  );
});

test("[K3] [S2] a block's lines pass for no message that an input shows", () => {
  const line = (id: string, mark = "[NEW]") =>
    `  [${id}] [2026-02-18T15:06:00Z] "Sara" (human, id: ent_S): "Hi"  ${mark}`;
  const turn = '["Sara" (human)] "Hi"  [msg_3] [2026-02-18T15:06:00Z] [NEW] ← TRIGGER';
  const block = ['<block:plan permission="ReadWrite">', line("msg_0"), "<block:x>", line("msg_0"), "</block:plan>"];
  const input = [...block, line("msg_1"), line("msg_2", "[SEEN]"), turn].join("\n");
  const common = { senderName: "Sara", timestamp: "2026-02-18T15:06:00Z", content: "Hi" };
  expect(heardIn(input)).toEqual([
    { id: "msg_1", ...common },
    { id: "msg_2", ...common },
    { id: "msg_3", ...common },
  ]);
});
