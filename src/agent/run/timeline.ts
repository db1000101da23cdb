import { defaultChunkSize } from "../../protocol/context-config.ts";
import type { Message } from "../../protocol/message.ts";
import type { RunTrigger } from "../../protocol/run.ts";
import { isoTime } from "../../shared/clock.ts";
import { unwrap } from "../../shared/errors.ts";
import { maxOpenCalls, maxSummaryBacklog, maxToldRuns } from "../bounds.ts";
import { reach } from "../call-with-retry.ts";
import type { Activity } from "../context/activity.ts";
import type { ComposedConfig } from "../context/agent-state.ts";
import type { Composed } from "../context/composed.ts";
import type { InputParts } from "../context/input-parts.ts";
import type {
  ActiveRun,
  ActiveSpace,
  History,
  HistoryEntry,
  Resume,
  TimelineSnapshot,
  Trigger,
} from "../context/timeline/snapshot.ts";
import type { InboxData } from "../records.ts";
import type { RunRow } from "../runs.ts";
import { isUnknownOutcome } from "../tools/unknown-outcome.ts";
import { gatherActivity } from "./gather-activity.ts";
import { invocationOf } from "./invocation.ts";
import { shownBlocks } from "./known-blocks.ts";
import { callsOf, outputOf } from "./own-runs.ts";
import type { Parts } from "./parts.ts";
import { seenIn } from "./seen-in.ts";

/**
 * What a timeline run is given: the space read back as a timeline, what else the agent does, and why it runs. Gathered
 * once for each of its invocations (`compose-run.ts`).
 */
const actionRuns = 30;
/** Calls that show in the history already, or that only looked. */
const unshown = new Set([
  "send_message",
  "send_reply",
  "enter_space",
  "read_messages",
  "get_memories",
  "get_plans",
  "get_my_runs",
]);

const triggerOf = (data: InboxData): Trigger => {
  switch (data.type) {
    case "service":
      return { type: "service", serviceName: data.serviceName, payload: data.payload };
    case "tool_result":
      return { type: "tool_result", tool: data.tool, toolCallId: data.toolCallId, result: data.result };
    case "plan":
      return {
        type: "plan",
        plan: { id: data.planId, name: data.planName },
        instruction: data.instruction,
        scheduledAt: data.scheduledAt,
      };
    case "space_message": {
      const { message, triggerSource } = data.delivered;
      return {
        type: "space_message",
        triggerSource: triggerSource === "none" ? "every_message" : triggerSource,
        space: { id: message.spaceId, name: data.spaceName },
        sender: message.sender,
        text: message.text ?? "",
        messageId: message.id,
        timestamp: message.createdAt,
        senderExpectsReply: message.expectsReply === true && triggerSource !== "proactive_router",
      };
    }
  }
};

/** What the agent did in silence in earlier runs for this space, and what it may have done, oldest first. */
const actionsIn = (parts: Parts, spaceId: string, before: number): HistoryEntry[] => {
  const runs = parts.runs
    .page(before, actionRuns, undefined)
    .filter((run) => run.spaceIds.includes(spaceId) && run.completedAt !== null);
  const rows = parts.journal.ofRuns(runs);
  const inputs = new Map(
    rows.flatMap(({ meta }) => (meta?.kind === "assistant" ? meta.calls.map((call) => [call.callId, call.input]) : [])),
  );
  return rows.flatMap((row): HistoryEntry[] => {
    const { meta, createdAt } = row;
    if (meta?.kind !== "result" || unshown.has(meta.toolName)) return [];
    const unknown = meta.error ? outputOf(row) : undefined;
    if (meta.error && !isUnknownOutcome(unknown)) return [];
    const action = { toolName: meta.toolName, input: inputs.get(meta.callId), output: unknown };
    return [{ kind: "action", at: isoTime(createdAt), action }];
  });
};

const timeOf = (entry: HistoryEntry): string => (entry.kind === "message" ? entry.message.createdAt : entry.at);

/** The window of a space, its messages marked by what this agent's runs have acknowledged. */
const historyOf = async (parts: Parts, spaceId: string, before: number, signal: AbortSignal): Promise<History> => {
  const { id: agentId, workspaceId, config } = parts.identity.get();
  const page = { limit: config.context.historyMessages, offset: 0 };
  const window = unwrap(
    await reach(() => parts.env.SPACE.getByName(spaceId).window(workspaceId, agentId, page), signal),
  );
  const isSeen = seenIn(parts, spaceId);
  const messages = window.messages.map(
    (message): HistoryEntry => ({ kind: "message", message, seen: isSeen(message) }),
  );
  const oldest = window.messages[0]?.createdAt ?? "";
  const actions = actionsIn(parts, spaceId, before).filter((entry) => timeOf(entry) >= oldest);
  const entries = [...messages, ...actions].sort((one, other) => timeOf(one).localeCompare(timeOf(other)));
  const summary = summaryOf(parts, spaceId);
  return { space: { id: spaceId, name: window.space.name }, entries, total: window.total, ...summary };
};

/** What a model made of the space's older messages, where the agent has such summaries written. */
const summaryOf = (parts: Parts, spaceId: string): Pick<History, "summary"> => {
  if (!foldsMessages(parts)) return {};
  const row = parts.summaries.find(spaceId);
  if (!row || row.text === null) return {};
  return { summary: { text: row.text, messages: row.upTo - row.base, upTo: row.upTo } };
};

const foldsMessages = (parts: Parts): boolean =>
  parts.identity.get().config.context.compaction.strategy === "recursive_summarization";

/** What is shown no more is summarised, a chunk at a time; of what is older than the agent, the newest part. */
export const wantSummaries = (parts: Parts, { unshown }: Composed): void => {
  if (!foldsMessages(parts)) return;
  const { chunkSize = defaultChunkSize } = parts.identity.get().config.context.compaction;
  for (const { spaceId, messages } of unshown) {
    const from = Math.max(0, messages - maxSummaryBacklog);
    const upTo = parts.summaries.find(spaceId)?.upTo ?? from;
    if (messages - upTo >= chunkSize) parts.wantSummary(spaceId, { from, upTo: messages });
  }
};

/** What the run did in earlier invocations, who answered what it asked, and who did not in time. */
const resumeOf = (parts: Parts, run: RunRow): Resume => {
  const rows = parts.journal.ofRun(run);
  const soFar = callsOf(rows);
  const waits = parts.waits.ofRun(run.ordinal);
  const [input] = invocationOf(rows);
  // They end with the composing: who answered stands beside the input that is composed again.
  if (waits.length === 0 && input?.meta?.kind === "inbox" && input.meta.answers)
    return { soFar, ...input.meta.answers };
  const awaited = waits.flatMap((wait) => wait.awaited);
  return {
    soFar,
    replies: awaited.flatMap(({ name, replyId }) => (replyId === null ? [] : [{ messageId: replyId, name }])),
    timedOut: awaited.filter(({ replyId, left }) => replyId === null && !left).map(({ name }) => name),
    gone: awaited.filter(({ left }) => left).map(({ name }) => name),
  };
};

const calledOf = (parts: Parts, run: RunRow): Pick<ActiveRun, "waiting"> => {
  const call = parts.calls
    .ofRun(run.ordinal)
    .find(({ attached, phase }) => attached && (phase === "asked" || phase === "out"));
  if (!call) return {};
  const { tool, input, spaceId, phase } = call;
  const spaceName = spaceId === null ? undefined : parts.spaces.get(spaceId)?.snapshot.name;
  const people = tool.executionType === "space" ? "answer" : "approval";
  const awaits = phase === "asked" ? people : "server";
  return { waiting: { call: { toolName: tool.name, input }, spaceName, awaits } };
};

const waitingOf = (parts: Parts, run: RunRow): Pick<ActiveRun, "waiting"> => {
  if (run.status === "waiting_tool") return calledOf(parts, run);
  const [wait] = run.status === "waiting_reply" ? parts.waits.ofRun(run.ordinal) : [];
  if (!wait) return {};
  const names = wait.awaited.filter(({ replyId }) => replyId === null).map(({ name }) => name);
  const spaceName = parts.spaces.get(wait.spaceId)?.snapshot.name ?? "";
  return { waiting: { text: wait.text, spaceName, names } };
};

/** What began a run, as the list of active runs tells it. */
export const begunBy = (parts: Parts, trigger: RunTrigger): ActiveRun["begunBy"] => {
  const { type, senderName = "", text = "", spaceId } = trigger;
  const spaceName = spaceId === undefined ? undefined : parts.spaces.get(spaceId)?.snapshot.name;
  return { type, name: senderName, ...(spaceName === undefined ? {} : { spaceName }), text };
};

/** Those under way and those that wait, oldest first; of the ones that wait for tools the newest, and how many more. */
const activeRunsOf = (parts: Parts, thisRun: number): { activeRuns: ActiveRun[]; moreRuns: number } => {
  const active = parts.runs.active();
  const known = new Set(active.map(({ ordinal }) => ordinal));
  const waiting = parts.calls.waitingRuns(maxOpenCalls).filter((ordinal) => !known.has(ordinal));
  const newest = parts.runs.those(waiting.slice(-maxToldRuns));
  const told = [...active, ...newest].sort((one, other) => one.ordinal - other.ordinal);
  const activeRuns = told.map((run) => ({
    runId: run.id,
    status: run.status,
    isThis: run.ordinal === thisRun,
    begunBy: begunBy(parts, run.trigger),
    ...waitingOf(parts, run),
  }));
  return { activeRuns, moreRuns: waiting.length - newest.length };
};

/** The space that the event came from, or that the agent was in when it called the tool whose result it brings. */
const homeOf = (event: InboxData): string | null => {
  if (event.type === "space_message") return event.delivered.message.spaceId;
  return event.type === "tool_result" ? event.activeSpaceId : null;
};

const whyActive = (event: InboxData, isHome: boolean): ActiveSpace["why"] => {
  if (!isHome) return "wait";
  return event.type === "tool_result" ? "call" : "trigger";
};

/** What other agents did, where the config asks for it: the spaces that were read already are not asked again. */
const activityIn = async (parts: Parts, histories: History[], signal: AbortSignal): Promise<Activity | undefined> => {
  if (!parts.identity.get().config.context.activity) return undefined;
  const known = histories.map(({ space, entries }): [string, { name: string; messages: Message[] }] => [
    space.id,
    { name: space.name, messages: entries.flatMap((entry) => (entry.kind === "message" ? [entry.message] : [])) },
  ]);
  return (await gatherActivity(parts, {}, signal, new Map(known))).activity;
};

/** As of now. `ordinal` is that of the run, or of the one that would come next; `common` what its config says. */
export const gatherTimeline = async (
  parts: Parts,
  { config, ...common }: InputParts & { config: ComposedConfig },
  event: InboxData,
  ordinal: number,
  signal: AbortSignal,
  resumed: { run: RunRow; activeSpaceId: string | null } | null = null,
): Promise<TimelineSnapshot> => {
  const { id: agentId } = parts.identity.get();
  const spaces = parts.spaces.mine();
  const trigger = triggerOf(event);
  const homeId = homeOf(event);
  const home = spaces.find((space) => space.id === homeId);
  const waited = resumed && spaces.find((space) => space.id === resumed.activeSpaceId);
  const histories: History[] = [];
  for (const space of new Set([home, waited])) {
    if (space) histories.push(await historyOf(parts, space.id, ordinal, signal));
  }
  const active = resumed ? waited : home;
  const state = {
    agentId,
    spaces,
    goals: parts.goals.list(),
    memories: parts.memories.list(),
    plans: parts.plans.list(),
    blocks: await shownBlocks(parts, config, [event], signal),
    activity: await activityIn(parts, histories, signal),
  };
  return {
    ...common,
    continuity: "timeline",
    now: isoTime(parts.clock.now()),
    state,
    histories,
    ...activeRunsOf(parts, ordinal),
    trigger,
    activeSpace: active ? { id: active.id, name: active.name, why: whyActive(event, active === home) } : null,
    resume: resumed ? resumeOf(parts, resumed.run) : null,
    own: [],
  };
};
