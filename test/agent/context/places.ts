import { deedsIn } from "../../../src/agent/context/activity.ts";
import type { KnownBlock, KnownShare } from "../../../src/agent/context/blocks.ts";
import { blocksInInput, blocksText } from "../../../src/agent/context/blocks.ts";
import { compose } from "../../../src/agent/context/compose.ts";
import { summaryMessage } from "../../../src/agent/context/consciousness/compose-consciousness.ts";
import { type CycleFacts, selfSummary } from "../../../src/agent/context/consciousness/cycle-summary.ts";
import {
  eventLine,
  renderInboxMessage,
  renderInboxPreview,
} from "../../../src/agent/context/consciousness/inbox-message.ts";
import {
  renderStateChanges,
  shareNews,
  toldMessages,
  toldState,
} from "../../../src/agent/context/consciousness/state.ts";
import type { Deed } from "../../../src/agent/context/deeds.ts";
import { renderInstructions } from "../../../src/agent/context/instructions.ts";
import { cycleText, messageText, type SummaryQuestion, summaryPrompt } from "../../../src/agent/context/summary.ts";
import type { ActiveRun, TimelineSnapshot } from "../../../src/agent/context/timeline/compose-timeline.ts";
import type { History, HistoryEntry } from "../../../src/agent/context/timeline/history.ts";
import type { PastRun } from "../../../src/agent/context/timeline/past-runs.ts";
import type { InboxData, KnownMessage, KnownOrigin, Unanswered } from "../../../src/agent/records.ts";
import { acceptTools, mcpTool } from "../../../src/agent/tools/mcp/tool-list.ts";
import type { Goal, Memory } from "../../../src/protocol/mind.ts";
import type { Plan } from "../../../src/protocol/plan.ts";
import { routerPrompt } from "../../../src/space/router/prompt.ts";
import { analyst, callMessages, configOf, day, designer, husam, partsOf } from "./cast.ts";

/**
 * Every composer of text for a model, with inputs in which each field is set. `Required` sees to that: a new field does
 * not compile until it stands here too. From then on its text is a hostile one.
 */
/** A text that others write. */
export const free = "free text";
/** Any JSON that others write, keys too. */
export const freeJson = { [free]: [free] };

const at = day("15:00");

const origins: KnownOrigin[] = [
  { spaceId: "spc_1", messageId: "msg_9", sourceSpaceName: free, sourceSenderName: free, sourceEvent: free },
  { sourceType: "plan", sourceRunId: "run_1", sourceName: free, sourceEvent: free },
  { sourceType: "service", sourceRunId: "run_1", sourceName: free, sourceEvent: free },
];

const whole: Required<KnownMessage> = {
  ...{ id: "msg_1", seq: 1, spaceId: "spc_1", kind: "text", sender: { ...husam, name: free }, text: free },
  ...{
    replyTo: "msg_0",
    mentions: [],
    reads: [{ spaceId: "spc_2", name: free, members: 3 }],
    expectsReply: true,
    streamId: "str_1",
    clientKey: "k",
    createdAt: at,
    editedAt: at,
    deleted: { at },
  },
  origin: { spaceId: "spc_1", messageId: "msg_9", sourceSpaceName: free, sourceSenderName: free, sourceEvent: free },
  toolCall: { id: "tc_1", name: free, status: "complete", input: freeJson, output: freeJson },
};
const { toolCall: _call, ...said } = whole;
const { text: _text, ...call } = whole;
const own = { ...analyst, name: free };

const messages: KnownMessage[] = [
  ...[said, { ...said, id: "msg_2", sender: own }],
  ...origins.map(
    (origin, index): KnownMessage => ({ ...said, id: `msg_o${index}`, sender: { ...designer, name: free }, origin }),
  ),
  { ...call, id: "msg_call", kind: "tool_call" },
  {
    ...{ ...call, id: "msg_failed", kind: "tool_call", sender: own },
    toolCall: {
      id: "tc_1",
      name: free,
      status: "error",
      input: freeJson,
      error: { code: "tool_failed", message: free },
    },
  },
];

type Of<Union, Kind> = Required<Extract<Union, Kind>>;

const deeds: [Of<Deed, { kind: "action" }>, Of<Deed, { kind: "sent" }>] = [
  { kind: "action", at, callId: "tc_1", action: { toolName: free, input: freeJson, output: freeJson } },
  { kind: "sent", at, callId: "tc_2", text: free, spaceName: free, messageId: "msg_9", waitingFor: [free, free] },
];

const root = { id: "evt_1", kind: "service" } as const;
const unanswered: Required<Unanswered> = {
  ...{ question: { messageId: "msg_0", text: free }, spaceName: free, late: [free], left: [free], afterMs: 60_000 },
  ...{ formerSpaceId: "spc_1", confidential: true },
};
const result: Of<InboxData, { type: "tool_result" }> = {
  ...{
    type: "tool_result",
    toolCallId: "tc_1",
    tool: free,
    result: freeJson,
    failed: false,
    expired: true,
    late: true,
  },
  ...{ activeSpaceId: "spc_1", root, unanswered },
};
const { unanswered: _none, ...answered } = result;
const { formerSpaceId: _former, ...inSpace } = unanswered;

/** All kinds of events. */
const events: { [Type in InboxData["type"]]: InboxData[] } = {
  space_message: messages.map(
    (each): Of<InboxData, { type: "space_message" }> => ({
      ...{ type: "space_message", spaceName: free, answers: [{ messageId: "msg_0", text: free }] },
      delivered: { message: each, root: { id: "msg_1", kind: "person" }, triggerSource: "mention" },
    }),
  ),
  plan: [{ type: "plan", planId: "pln_1", planName: free, instruction: free, scheduledAt: at, root }],
  service: [{ type: "service", serviceName: free, payload: freeJson, root, blockRefs: [] }],
  tool_result: [answered, result, { ...result, unanswered: inSpace }],
};
const allEvents = Object.values(events).flat();

const goals: Required<Goal>[] = [
  { id: "g", description: free, status: "active", priority: 1, longTerm: true, updatedAt: at },
];
const memories: Required<Memory>[] = [{ key: free, value: free, updatedAt: at }];
const plans: Required<Plan>[] = [
  {
    ...{ id: "p", name: free, instruction: free, runAfter: free, scheduledAt: at, cron: free, timezone: free },
    ...{
      nextRunAt: at,
      updatedAt: at,
      status: "active",
      setBy: "agent",
      lastError: { code: "internal", message: free },
    },
  },
];
const spaces = [
  { id: "spc_1", name: free, members: [husam, analyst].map((who) => ({ ...who, name: free, joinedAt: at })) },
];
const blocks: Required<KnownBlock>[] = (["core", "working"] as const).map((type) => ({
  ...{ key: type, label: type, type, permission: "ReadWrite", sharedFrom: free, description: free, fields: free },
  ...{ rendered: free, pinned: true, usedAt: 1 },
}));
const shares: Required<KnownShare>[] = [{ key: "plan@ent_1", label: "plan", owner: free, permission: "Append" }];
const deedsOfOthers = { ...{ id: "spc_1", name: free }, messages };
const begunBy = { type: "space_message", senderName: free, spaceName: free, text: free } as const;

const histories: Required<History>[] = [
  {
    ...{ space: { id: "spc_1", name: free }, total: 60, summary: { text: free, messages: 40, upTo: 45 } },
    entries: [...messages.map((each): HistoryEntry => ({ kind: "message", message: each, seen: false })), ...deeds],
  },
];
const past: Required<Omit<PastRun, "letOut">> = {
  ...{ runId: "run_1", at, end: "completed", begunBy, tookOver: [begunBy], isResult: false },
  deeds: deeds.map((each) => ({
    ...each,
    callId: "tc_past",
    ...("messageId" in each ? { messageId: "msg_past" } : {}),
  })),
};
const run: Required<ActiveRun> = {
  ...{ runId: "run_2", status: "waiting_reply", isThis: false, begunBy },
  waiting: { callId: "tc_3", text: free, spaceName: free, names: [free] },
};
const waitsForCall: Required<ActiveRun> = {
  ...{ ...run, runId: "run_3", status: "waiting_tool" },
  waiting: { call: { toolName: free, input: freeJson }, spaceName: free, awaits: "approval" },
};
type Config = "config" | "limits" | "tools" | "correction" | "continuity" | "refused";
const snapshot = (trigger: InboxData): Required<Omit<TimelineSnapshot, Config | "state">> => ({
  ...{ now: at, moreRuns: 2, trigger, histories, past: { earlier: 3, runs: [past] } },
  activeRuns: [run, waitsForCall, { ...run, runId: "run_4", isThis: true, waiting: undefined }],
  activeSpace: { id: "spc_1", name: free, why: "trigger" },
  resume: {
    soFar: [{ toolName: free, input: freeJson, output: freeJson }],
    ...{ replies: [{ messageId: "msg_1", name: free }], timedOut: [free], gone: [free] },
  },
  answers: allEvents,
  takenOver: allEvents.map((event) => ({ runId: "run_5", event })),
  changes: [],
});

/** What others write in the tool of an MCP server. */
const listed = {
  ...{ name: "find", title: free, description: free },
  inputSchema: { type: "object", properties: { q: { type: "string", description: free, title: free } } },
};

type Composer = { input: unknown; write(input: unknown): string };
const composer = <Input>(input: Input, write: (input: Input) => string): Composer => ({
  input,
  write: (changed) => write(changed as Input),
});

const composed = ({ instructions, messages: all }: ReturnType<typeof compose>): string =>
  [instructions, ...all.map(({ content }) => content)].join("\n");

const config = configOf(analyst, { messaging: "threaded" });
const state = { agentId: analyst.id, spaces, goals, memories, plans };
const facts: CycleFacts = { lines: [], deeds };

/** By name; each writes its input as a model reads it. */
export const composers: Record<string, Composer> = {
  ...Object.fromEntries(
    (["prompt", "messages"] as const).flatMap((history) =>
      Object.values(events).flatMap((some) =>
        some.map((trigger, index) => [
          `timeline (${history}), ${trigger.type} ${index + 1}`,
          composer({ ...snapshot(trigger), state, blocks, shares, deedsOfOthers }, ({ state: known, ...input }) => {
            const shown = blocksInInput(input.blocks, { batchBlocks: new Set(), maxTokens: 20_000 });
            const activity = {
              deeds: deedsIn(input.deedsOfOthers, input.deedsOfOthers.messages, analyst.id),
              dropped: [],
            };
            return composed(
              compose({
                ...partsOf({ ...config, context: { ...config.context, history } }),
                ...{
                  ...input,
                  continuity: "timeline",
                  state: { ...known, blocks: shown, shares: input.shares, activity },
                },
              }),
            );
          }),
        ]),
      ),
    ),
  ),
  "inbox of a consciousness": composer({ events: allEvents, state, blocks, name: free }, (input) =>
    renderInboxMessage({
      ...{ now: at, events: input.events, canWait: true, toldBefore: null, told: toldState(input.state) },
      silent: { lines: input.events.map((event) => eventLine(event, true)), omitted: 2 },
      leftToHistory: [{ id: "spc_1", name: input.name, messages: 3 }],
      blocks: { ...blocksInInput(input.blocks, { batchBlocks: new Set(), maxTokens: 20_000 }), head: {} },
      activeSpace: { id: "spc_1", name: input.name },
    }),
  ),
  "inbox preview": composer({ events: allEvents }, (input) => renderInboxPreview(input.events, 20)),
  "state changes": composer({ state, blocks, shares, changed: [{ messageId: "msg_1", text: free }] }, (input) => {
    const { shown } = blocksInInput(input.blocks, { batchBlocks: new Set(), maxTokens: 20_000 });
    const gone = toldState({ ...input.state, goals: [], plans: [], memories: [] });
    const news = shareNews({ "old@ent_1": "Append" }, input.shares, { inInput: {}, inLast: {} });
    const changed = toldMessages(input.changed);
    const changes = renderStateChanges(gone, { ...toldState(input.state), ...changed, BLOCKS: {} }, shown, news);
    return [changes, renderStateChanges(toldState(input.state), gone)].join("\n");
  }),
  "a summary of cycles": composer({ summary: free }, (input) => String(summaryMessage(input.summary)[0]?.content)),
  "a cycle's own summary": composer({ words: free }, ({ words }) =>
    String(summaryMessage(`- ${selfSummary([{ role: "assistant", content: words }], () => facts)}`)[0]?.content),
  ),
  "a wordless cycle's summary": composer({ events: allEvents, deeds }, (input) => {
    const lived = { lines: input.events.map((event) => eventLine(event)), deeds: input.deeds };
    return String(summaryMessage(`- ${selfSummary([], () => lived)}`)[0]?.content);
  }),
  "a summariser's question": composer(
    { agent: free, space: free, earlier: free, parts: [free], words: 100 } satisfies Required<SummaryQuestion>,
    (input) => Object.values(summaryPrompt(input)).join("\n"),
  ),
  "cycles and messages for a summariser": composer({ messages, input: freeJson }, (input) => {
    const cycle = cycleText(callMessages("refund", input.input, input.input));
    const parts = [cycle, ...input.messages.map((each) => messageText(each, analyst.id))];
    return Object.values(summaryPrompt({ agent: "A", earlier: null, parts, words: 100 })).join("\n");
  }),
  "a router's question": composer(
    {
      ...{ space: { id: "spc_1", name: free }, instructions: free },
      ...{ agents: [{ id: "ent_1", name: free, description: free }], messages },
    },
    (input) => Object.values(routerPrompt(input)).join("\n"),
  ),
  instructions: composer({ name: free, blocks }, (input) => {
    const { shown } = blocksInInput(input.blocks, { batchBlocks: new Set(), maxTokens: 20_000 });
    return renderInstructions(analyst.id, { ...config, name: input.name }, [blocksText(shown)]);
  }),
  "a core block that is cut": composer({ lines: Array.from({ length: 90 }, () => free) }, ({ lines }) => {
    const long = { ...blocks[0], description: "", fields: "", sharedFrom: "Scribe", rendered: lines.join("\n") };
    return blocksText(blocksInInput([long as KnownBlock], { batchBlocks: new Set(), maxTokens: 120 }).shown);
  }),
  "a tool of an MCP server": composer({ listed }, (input) => {
    const [tool] = acceptTools({ name: "shop" }, [input.listed]).tools;
    if (!tool) throw new Error("the tool was left out");
    const { description, schema } = mcpTool(tool, async () => null);
    const texts: string[] = [description];
    JSON.stringify(schema(), (_, held: unknown) => {
      if (typeof held === "string") texts.push(held);
      return held;
    });
    return texts.join("\n");
  }),
};
