import { defaultChunkSize } from "../../../protocol/context-config.ts";
import { continuityFacts } from "../../../protocol/continuity.ts";
import type { InboxMeta } from "../../../protocol/exported-history.ts";
import type { Message } from "../../../protocol/message.ts";
import type { RunTrigger } from "../../../protocol/run.ts";
import { isoTime } from "../../../shared/clock.ts";
import { unwrap } from "../../../shared/errors.ts";
import { maxSummaryBacklog, maxToldRuns, maxWindowMessages } from "../../bounds.ts";
import { callWithRetry, spaceWindow } from "../../call-with-retry.ts";
import { compose } from "../../context/compose.ts";
import { messageNews, toldMessages } from "../../context/consciousness/state.ts";
import type { Composed } from "../../context/sections.ts";
import type { ActiveRun, TimelineSnapshot } from "../../context/timeline/compose-timeline.ts";
import type { History, HistoryEntry } from "../../context/timeline/history.ts";
import { firstLook, summaryWanted, type WindowConfig, windowSize } from "../../context/timeline/unshown.ts";
import { quoteJson } from "../../context/wording.ts";
import { homeOf, triggerOf } from "../../inbox/batch.ts";
import { messagesOf } from "../../journal.ts";
import type { InboxData, KnownMessage, ToldState } from "../../records.ts";
import type { RunRow } from "../../runs.ts";
import type { InboxRow } from "../../schema.ts";
import { estimateMessages, estimateText } from "../../tokens.ts";
import {
  knownShares,
  nextWindow,
  othersBlocks,
  ownBlocks,
  partsIn,
  shownBlocks,
  stateWith,
  windowOf,
} from "../composing.ts";
import { firstWaking, knownOrigin, seenIn, shownOf } from "../run-events.ts";
import { finishedCalls, inputsIn, invocationOf, readRows } from "../run-rows.ts";
import type { LiveRun, RunServices } from "../run-services.ts";
import type { WindowRow } from "../windows.ts";
import { beginRun, type Continuity } from "./continuity.ts";
import { begunBy, causeOf, deedsFor, type GatheredPast, gatherPast, spaceNameOf } from "./past-runs.ts";
import { gatherActivity } from "./peer-updates.ts";

/**
 * Stateless runs side by side, one event each, with the space's history as the past. The snapshot of each is gathered
 * once for each invocation.
 *
 * Invariants
 * 1. The input of each invocation is journaled as it was composed, in one transaction: a replay reads the same bytes (R3).
 * 2. A run is composed again at most once because its input was too long. Its journal says so (R4).
 */

const messagesIn = ({ entries }: History): Message[] =>
  entries.flatMap((entry) => (entry.kind === "message" ? [entry.message] : []));

const timeOf = (entry: HistoryEntry): string => (entry.kind === "message" ? entry.message.createdAt : entry.at);

/** The newest messages of a space, at least as many as its window shows, oldest first. */
const newestMessages = async (
  services: RunServices,
  spaceId: string,
  summary: History["summary"],
  signal: AbortSignal,
) => {
  const config = windowConfig(services);
  const look = async (limit: number, offset: number) => {
    const page = { limit: Math.min(limit, maxWindowMessages), offset };
    return unwrap(await callWithRetry(() => spaceWindow(services, spaceId, page), signal));
  };
  const { space, total, messages } = await look(firstLook(config), 0);
  const size = windowSize({ total, summary }, config);
  // The offset counts from the newest message, and more may come between the pages.
  for (let newer = 0; messages.length < size; ) {
    const page = await look(size - messages.length, messages.length + newer);
    const [{ seq: oldest } = { seq: 0 }] = messages;
    const older = page.messages.filter(({ seq }) => seq < oldest);
    if (older.length === 0) break;
    messages.unshift(...older);
    newer = page.total - total;
  }
  return { space, total, messages: messages.slice(-size) };
};

/**
 * One of the agent's own messages with its cause as the agent knows it. Others may not know the cause: it may lie in a
 * space that shares nothing.
 */
const withCause = (services: RunServices, past: GatheredPast, message: Message): KnownMessage => {
  const known = knownOrigin(services, message);
  const origin = known && ("sourceType" in known || known.sourceEvent !== undefined) ? known : undefined;
  const whole = origin ?? causeOf(past, message) ?? known;
  return whole ? { ...message, origin: whole } : message;
};

/** The window of a space, its messages marked by what this agent's runs have acknowledged. */
const historyOf = async (
  services: RunServices,
  spaceId: string,
  past: GatheredPast,
  signal: AbortSignal,
): Promise<History> => {
  const summary = summaryOf(services, spaceId);
  const window = await newestMessages(services, spaceId, summary, signal);
  const isSeen = seenIn(services, spaceId);
  const letOut = new Set(past.runs.flatMap((run) => (run.letOut ? run.deeds : [])).map(({ callId }) => callId));
  const messages = window.messages.map(
    (message): HistoryEntry => ({
      kind: "message",
      message: withCause(services, past, message),
      seen: isSeen(message),
      letOut: letOut.has(message.id),
    }),
  );
  const oldest = window.messages[0]?.createdAt ?? "";
  // A call that shows in the space stands there as its message.
  const calls = new Set(window.messages.map(({ toolCall }) => toolCall?.id));
  const deeds = deedsFor(services, past, spaceId).filter(({ at, callId }) => at >= oldest && !calls.has(callId));
  const entries = [...messages, ...deeds].sort((one, other) => timeOf(one).localeCompare(timeOf(other)));
  const { space, total } = window;
  return { space: { id: spaceId, name: space.name }, entries, total, summary };
};

/** The model's summary of the space's older messages, if the agent's config asks for such summaries. */
const summaryOf = (services: RunServices, spaceId: string): History["summary"] => {
  const row = windowConfig(services).chunkSize === null ? undefined : services.summaries.find(spaceId);
  if (!row || row.text === null) return undefined;
  return { text: row.text, messages: row.upTo - row.base, upTo: row.upTo };
};

const windowConfig = ({ identity }: RunServices): WindowConfig => {
  const { historyMessages, compaction } = identity.get().config.context;
  const { strategy, chunkSize = defaultChunkSize } = compaction;
  return { historyMessages, chunkSize: strategy === "recursive_summarization" ? chunkSize : null };
};

/** Asks for summaries of the messages that are not shown any more, up to `maxSummaryBacklog` of them. */
const wantSummaries = (services: RunServices, all: Composed["unshown"]): void => {
  const { chunkSize } = windowConfig(services);
  if (chunkSize === null) return;
  for (const { spaceId, ...unshown } of all) {
    const from = Math.max(0, unshown.messages - maxSummaryBacklog);
    const upTo = summaryWanted(unshown, services.summaries.find(spaceId)?.upTo ?? from, chunkSize);
    if (upTo !== null) services.wantSummary(spaceId, { from, upTo });
  }
};

/** The run's calls in earlier invocations, who answered its questions, and who did not in time. */
const resumeOf = (services: RunServices, run: RunRow): TimelineSnapshot["resume"] => {
  const rows = services.journal.ofRun(run);
  const soFar = finishedCalls(readRows(rows));
  const awaited = services.waits.ofRun(run.ordinal).flatMap((wait) => wait.awaited);
  const answers = inputsIn(invocationOf(rows))[0]?.answers;
  // Composing ends the waits. An input that is composed again takes the answers from the one before.
  if (awaited.length === 0 && answers) return { soFar, ...answers };
  return {
    soFar,
    replies: awaited.flatMap(({ name, replyId }) => (replyId === null ? [] : [{ messageId: replyId, name }])),
    timedOut: awaited.filter(({ replyId, left }) => replyId === null && !left).map(({ name }) => name),
    gone: awaited.filter(({ left }) => left === true).map(({ name }) => name),
    apart: awaited.filter(({ left }) => left === "agent").map(({ name }) => name),
    sealed: awaited.filter(({ left }) => left === "confidential").map(({ name }) => name),
  };
};

/**
 * The events of the runs that this one absorbed, and of those that they had absorbed. They began each, or answered its
 * questions. They belong to this run now.
 */
const takenOverBy = (services: RunServices, run: RunRow): TimelineSnapshot["takenOver"] => {
  const told = new Set<string>();
  return services.runs.absorbedInto(run.id).flatMap(({ id: runId, trigger, events }) => {
    const its = services.inbox.rows(events).filter(({ eventId }) => !told.has(eventId));
    const own = its.filter(({ eventId, data }) => eventId === trigger.eventId || "answers" in data);
    for (const { eventId } of own) told.add(eventId);
    return own.map(({ data: event }) => ({ runId, event }));
  });
};

const waitingOf = (services: RunServices, run: RunRow): ActiveRun["waiting"] => {
  const nameOf = (spaceId: string | null): string | undefined => spaceNameOf(services, spaceId);
  if (run.status === "waiting_tool") {
    const call = services.calls
      .ofRun(run.ordinal)
      .find(({ attached, phase }) => attached && (phase === "asked" || phase === "out"));
    if (!call) return undefined;
    const people = call.tool.executionType === "space" ? "answer" : "approval";
    const { tool, input, spaceId, phase } = call;
    const awaits = phase === "asked" ? people : "server";
    return { call: { toolName: tool.name, input }, spaceName: nameOf(spaceId), awaits };
  }
  const [wait] = run.status === "waiting_reply" ? services.waits.ofRun(run.ordinal) : [];
  if (!wait) return undefined;
  const names = wait.awaited.filter(({ replyId }) => replyId === null).map(({ name }) => name);
  return { callId: wait.callId, text: wait.text, spaceName: nameOf(wait.spaceId) ?? "", names };
};

/**
 * The active runs, oldest first, this one too even if it has not begun. Only the newest that wait for tools are shown;
 * `moreRuns` counts the others.
 */
const activeRunsOf = (
  services: RunServices,
  { ordinal, trigger }: RunToCompose,
): Pick<TimelineSnapshot, "activeRuns" | "moreRuns"> => {
  const active = services.runs.active();
  const known = new Set(active.map((run) => run.ordinal));
  const waiting = services.calls.waitingRuns().filter((each) => !known.has(each));
  const newest = services.runs.those(waiting.slice(-maxToldRuns));
  const told = [...active, ...newest].sort((one, other) => one.ordinal - other.ordinal);
  const activeRuns: ActiveRun[] = told.map((run) => ({
    runId: run.id,
    status: run.status,
    isThis: run.ordinal === ordinal,
    begunBy: begunBy(services, run.trigger),
    waiting: waitingOf(services, run),
  }));
  if (!activeRuns.some(({ isThis }) => isThis)) {
    const runId = services.ids.deriveOwned("run", services.identity.mindId(), ordinal);
    activeRuns.push({ runId, status: "running", isThis: true, begunBy: begunBy(services, trigger) });
  }
  return { activeRuns, moreRuns: waiting.length - newest.length };
};

/** Where a run of this event begins. In a compartment that is its own space, if the event is of none. */
const beginsIn = ({ identity }: RunServices, event: InboxData): string | null =>
  homeOf(event) ?? identity.get().compartmentSpaceId;

/** A run, or the one that would come next: its window, its event and what it is said to begin with. */
type RunToCompose = { ordinal: number; window: WindowRow; event: InboxData; trigger: RunTrigger };

const toldNow = ({ redactions }: RunServices): ToldState => toldMessages(redactions.known());

/** A line for each message that was edited or deleted since the run was told of such changes. */
const changesSince = (services: RunServices, run: () => RunRow | undefined): string[] => {
  const now = toldNow(services);
  return Object.keys(now).length === 0 ? [] : messageNews(run()?.told ?? {}, now);
};

/** The snapshot as of now. `resumed`: the run that goes on after a wait, and where it is. */
const gatherTimeline = async (
  services: RunServices,
  run: RunToCompose,
  signal: AbortSignal,
  resumed: { run: RunRow; activeSpaceId: string | null } | null,
): Promise<TimelineSnapshot> => {
  const { ordinal, window, event } = run;
  const spaces = services.spaces.mine();
  const home = spaces.find((space) => space.id === beginsIn(services, event));
  const waited = resumed && spaces.find((space) => space.id === resumed.activeSpaceId);
  const histories: History[] = [];
  const past = gatherPast(services, ordinal);
  for (const space of new Set([home, waited])) {
    if (space) histories.push(await historyOf(services, space.id, past, signal));
  }
  const active = resumed ? waited : home;
  const resume = resumed ? resumeOf(services, resumed.run) : null;
  const begun = homeOf(event) === null ? "own" : event.type === "tool_result" ? "call" : "trigger";
  const parts = partsIn(services, window);
  const read = histories.map((history) => ({ ...history.space, ...history, messages: messagesIn(history) }));
  const others = parts.config.context.activity ? await gatherActivity(services, {}, signal, read) : undefined;
  const shared = await othersBlocks(services, [event], signal);
  const blocks = shownBlocks(services, [...ownBlocks(services), ...shared], [event]);
  const shares = knownShares(services).filter(({ key }) => blocks.shown.every((shown) => shown.key !== key));
  return {
    ...parts,
    continuity: "timeline",
    now: isoTime(services.clock.now()),
    state: { ...stateWith(services, blocks), shares, spaces, activity: others?.activity },
    histories,
    past,
    ...activeRunsOf(services, run),
    trigger: event,
    activeSpace: active ? { id: active.id, name: active.name, why: active === home ? begun : "wait" } : null,
    resume,
    answers: resumed ? answersOf(services, resumed.run, resume).map(({ data }) => data) : [],
    takenOver: resumed ? takenOverBy(services, resumed.run) : [],
    changes: changesSince(services, () => resumed?.run ?? services.runs.own(ordinal)),
  };
};

/** Begins a run with one event. The run gathers its input itself. */
const begin = (services: RunServices): RunRow | undefined => {
  const row = firstWaking(services);
  if (!row) return undefined;
  const home = beginsIn(services, row.data);
  return services.transaction(() =>
    beginRun(services, {
      batch: [row],
      // Overheard messages are acknowledged with this run. The history shows them.
      overheard: home === null ? [] : services.inbox.overheardIn(home),
      window: nextWindow(services, "timeline", services.runs.nextOrdinal()),
      told: toldNow(services),
      activeSpaceId: home !== null && services.spaces.isMember(home) ? home : null,
    }),
  );
};

/** The answers that a run goes on with, as events of its own. */
const answersOf = (
  services: RunServices,
  { ordinal, events }: RunRow,
  resume: TimelineSnapshot["resume"],
): InboxRow[] => {
  const ids = new Set(resume?.replies.map(({ messageId }) => messageId));
  const rows = ids.size === 0 ? [] : services.inbox.rows(services.runs.at(ordinal)?.events ?? events);
  return rows.filter(({ data }) => data.type === "space_message" && ids.has(data.delivered.message.id));
};

/**
 * Gathers and composes the input of an invocation. `refused`: estimated tokens of one that the model refused as too long.
 * `journal` stores it, with further facts for its first row.
 */
const prepare = async (live: LiveRun, step: number, activeSpaceId: string | null, refused?: number) => {
  const { services, run, signal } = live;
  const row = services.inbox.rows(run.events).find(({ eventId }) => eventId === run.trigger.eventId);
  if (!row) throw new Error(`run ${run.id} has no event`);
  const asked = { ordinal: run.ordinal, window: windowOf(services, run), event: row.data, trigger: run.trigger };
  const gathered = await gatherTimeline(services, asked, signal, step === 0 ? null : { run, activeSpaceId });
  signal.throwIfAborted();
  const { messages, sections, dropped, unshown } = compose({ ...gathered, refused });
  const journal = (more: Pick<InboxMeta, "shortened"> = {}): void => {
    const shown = gathered.histories.flatMap((history) => shownOf(history.space.id, messagesIn(history)));
    const made = { sections: sections.map(({ name, tokens }) => ({ name, tokens })), dropped };
    const { soFar: _, ...answers } = gathered.resume ?? { soFar: [] };
    const first = { made, ...("replies" in answers ? { answers } : {}), ...more };
    wantSummaries(services, unshown);
    if (step > 0) {
      services.waits.endOf(run.ordinal);
      if (gathered.changes?.length) services.runs.update(run.ordinal, { told: toldNow(services) });
    }
    const told = [row, ...answersOf(services, run, gathered.resume)];
    for (const [index, content] of messages.entries()) {
      const lines = told.map(({ data }) => quoteJson(data));
      const eventIds = told.map(({ eventId }) => eventId);
      const meta: InboxMeta = { kind: "inbox", lines, eventIds, shown, ...(index === 0 ? first : {}) };
      services.journal.append({ runOrdinal: run.ordinal, step, kind: "inbox", content, meta });
    }
  };
  return { messages, journal };
};

const composeInvocation = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<void> => {
  const { services, run } = live;
  if (step === 0 && services.journal.ofRun(run).length > 0) return;
  const { journal } = await prepare(live, step, activeSpaceId);
  services.transaction(() => journal());
};

/** The run goes on in a fresh and shorter invocation, as after a wait. False if that was done in this run before. */
const shorten = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<boolean> => {
  const { services, run } = live;
  const rows = services.journal.ofRun(run);
  if (inputsIn(rows).some(({ shortened }) => shortened)) return false;
  const instructions = estimateText(windowOf(services, run).instructions);
  const refused = instructions + estimateMessages(messagesOf(invocationOf(rows)));
  const { messages, journal } = await prepare(live, step, activeSpaceId, refused);
  // The model has not acted on reminders that came after the last step.
  const sinceStep = rows.slice(rows.findLastIndex(({ kind }) => kind === "assistant") + 1);
  const again = sinceStep.filter(({ kind }) => kind === "preview");
  const shorter = instructions + estimateMessages([...messages, ...messagesOf(again)]);
  if (shorter >= refused) return false;
  services.transaction(() => {
    journal({ shortened: true });
    for (const { kind, content, meta } of again) {
      services.journal.append({ runOrdinal: run.ordinal, step, kind, content, meta });
    }
  });
  return true;
};

/** The event of a run that is shown while nothing waits: a timeline run begins with one. */
const nothingWaits = {
  type: "service",
  serviceName: "(nothing waits)",
  payload: null,
  root: { id: "", kind: "service" },
} satisfies InboxData;

export const timeline: Continuity = {
  maxRuns: ({ maxConcurrentRuns }) => maxConcurrentRuns,
  ...continuityFacts({ continuity: "timeline" }),
  // Messages that the agent's cycles have read are not [NEW] to its runs.
  takeOver: ({ spaces }) => spaces.settleAll(),
  begin,
  compose: composeInvocation,
  beforeStep: () => undefined,
  past: () => [],
  shorten,
  next: async (services, signal) => {
    const row = firstWaking(services);
    const events = row ? [row] : [];
    const ordinal = services.runs.nextOrdinal();
    const window = nextWindow(services, "timeline", ordinal);
    const none: RunTrigger = { type: "service", eventId: "", eventCount: 0, senderName: nothingWaits.serviceName };
    const trigger = row ? triggerOf(events) : none;
    const event = row?.data ?? nothingWaits;
    const snapshot = await gatherTimeline(services, { ordinal, window, event, trigger }, signal, null);
    return { snapshot, blocks: snapshot.state.blocks?.shown ?? [], events };
  },
};
