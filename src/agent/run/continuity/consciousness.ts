import { isoTime } from "../../../shared/clock.ts";
import { maxSkippedLines } from "../../bounds.ts";
import { tokensOf } from "../../context/blocks.ts";
import { eventLine, renderInboxMessage, renderInboxPreview } from "../../context/consciousness/inbox-message.ts";
import { toldState } from "../../context/consciousness/state.ts";
import { leave } from "../../inbox/dead-letters.ts";
import type { Batch } from "../../inbox/inbox.ts";
import type { JournalRow } from "../../journal.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import type { InboxRow } from "../../schema.ts";
import { composingOf, nextWindow, partsIn } from "../composing.ts";
import { shownOwnBlocks } from "../known-blocks.ts";
import { inputsIn } from "../run-rows.ts";
import type { RunServices } from "../run-services.ts";
import { beginRun } from "./begin-run.ts";
import { compactForRun } from "./compact.ts";
import type { Continuity } from "./continuity.ts";
import { newsOfOthers, tellPeerUpdates } from "./peer-updates.ts";

/** One line per event of the cycles that ended in silence since the last kept one, oldest first. */
const silentLines = (services: RunServices, ordinal: number): { lines: string[]; omitted: number } => {
  const { rows, events } = services.runs.silent(ordinal, maxSkippedLines);
  // Its inbox message is the first row of each.
  const firstRows = rows.reverse().flatMap((run) => services.journal.ofRun(run, run.journalFrom));
  const lines = inputsIn(firstRows).flatMap((input) => input.lines);
  const shown = lines.slice(-maxSkippedLines);
  return { lines: shown, omitted: events - shown.length };
};

/** The share of a model's input that a batch of events may fill. The rest is for the state, the past and the run. */
const batchShare = 0.5;

/** The events that a cycle which began now would take. */
const nextBatch = (services: RunServices): Batch => {
  const { config, correction } = composingOf(services);
  const budget = (config.context.maxTokens - config.context.reservedResponseTokens) / correction;
  return services.inbox.nextBatch(budget * batchShare);
};

/** The beginning of a cycle that began now with this batch. Nothing is written. `ordinal` is that of the run. */
const prepareCycle = (services: RunServices, batch: InboxRow[], ordinal: number) => {
  const agent = services.identity.get();
  const { config } = composingOf(services);
  const events = batch.map(({ data }) => data);
  const blocks = shownOwnBlocks(services, config, events);
  const window = nextWindow(services, "consciousness", ordinal, blocks.shown);
  const spaces = services.spaces.mine();
  const state = {
    agentId: agent.id,
    spaces,
    goals: services.goals.list(),
    memories: services.memories.list(),
    plans: services.plans.list(),
    blocks,
  };
  const told = toldState(state, config.context.memoryTokens - tokensOf(blocks.shown));
  const active = spaces.find((space) => space.id === agent.activeSpaceId);
  const history = services.spaces.leftToHistory();
  const text = renderInboxMessage({
    now: isoTime(services.clock.now()),
    events,
    leftToHistory: history,
    silent: silentLines(services, ordinal),
    told,
    toldBefore: services.windows.toldBefore(window, ordinal),
    blocks: { shown: blocks.shown, head: window.blocks },
    activeSpace: active ? { id: active.id, name: active.name } : null,
  });
  return {
    ...{ ordinal, batch, window, told, text },
    /** Its own blocks as the model reads them, and those that did not fit, or not whole. */
    blocks: blocks.shown,
    withheld: blocks.dropped,
    lines: events.map(eventLine),
    /** How many messages of which spaces it says to be in their history only. */
    history,
    activeSpaceId: active?.id ?? null,
  };
};

const previewEvents = 10;

/** Begins a cycle, if a waiting event may wake this agent. One transaction stores the run and its inbox message. */
const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  if (!services.inbox.nextWaking()) return undefined;
  const { rows: batch, passed } = nextBatch(services);
  if (batch.length === 0) return undefined;
  return services.transaction(() => {
    leave(services, passed);
    const prepared = prepareCycle(services, batch, ordinalAfter(newest));
    const { withheld, history, lines, text } = prepared;
    const run = beginRun(services, newest, prepared);
    services.journal.append({
      runOrdinal: run.ordinal,
      step: 0,
      kind: "inbox",
      content: { role: "user", content: text },
      meta: {
        ...{ kind: "inbox", lines },
        ...(withheld.length === 0 ? {} : { dropped: withheld }),
        ...(history.length === 0 ? {} : { history }),
      },
    });
    return run;
  });
};

/** Shows each event that arrived during the cycle once. The text is kept in the journal, since the model acts on it. */
const preview = (services: RunServices, run: RunRow, step: number, rows: JournalRow[]): void => {
  const shownTo = rows.reduce(
    (upTo, row) => (row.meta?.kind === "preview" ? Math.max(upTo, row.meta.upTo) : upTo),
    Math.max(0, ...run.events),
  );
  const arrived = services.inbox.arrivedAfter(shownTo, previewEvents);
  const newest = arrived.rows.at(-1);
  if (!newest) return;
  const events = arrived.rows.map(({ data }) => data);
  const text = renderInboxPreview(events, arrived.total);
  services.journal.tell(run.ordinal, step, text, { kind: "preview", upTo: newest.seq });
};

/** One cycle at a time, over everything that waits, with the earlier cycles as its past. */
export const consciousness: Continuity = {
  maxRuns: () => 1,
  runsAlone: true,
  waitsForAnswers: false,
  keepsRuns: true,
  marksSeen: false,
  takeOver: () => undefined,
  begin,
  compose: tellPeerUpdates,
  beforeStep: preview,
  past: (services, { firstRun }, run) => services.windows.past(firstRun, run.ordinal),
  shorten: async ({ services, run }, step) => compactForRun(services, run, step, true),
  next: async (services, composing, signal) => {
    const { rows: events } = nextBatch(services);
    const prepared = prepareCycle(services, events, services.runs.nextOrdinal());
    const { window, told, ordinal } = prepared;
    const before = services.windows.toldBefore(window, ordinal);
    const news = await newsOfOthers({ services, told: before, events: () => events.map(({ data }) => data), signal });
    return {
      snapshot: {
        ...partsIn(services, window, composing),
        continuity: "consciousness",
        ...{ window, told },
        past: services.windows.past(window.firstRun, ordinal),
        own: [{ text: prepared.text }, ...news].flatMap(({ text, ...of }) =>
          text === null ? [] : [{ ...of, message: { role: "user", content: text } }],
        ),
        withheld: [...prepared.withheld, ...news.flatMap(({ dropped }) => dropped)],
      },
      blocks: [...prepared.blocks, ...news.flatMap(({ blocks }) => blocks)],
      events,
    };
  },
};
