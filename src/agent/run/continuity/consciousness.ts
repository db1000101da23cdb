import { continuityFacts } from "../../../protocol/continuity.ts";
import { isoTime } from "../../../shared/clock.ts";
import { quoteLines } from "../../../shared/quote.ts";
import { maxSkippedLines } from "../../bounds.ts";
import { tokensOf } from "../../context/blocks.ts";
import { compact, keepFrom } from "../../context/consciousness/compaction.ts";
import type { CycleFacts } from "../../context/consciousness/cycle-summary.ts";
import { eventLine, renderInboxMessage, renderInboxPreview } from "../../context/consciousness/inbox-message.ts";
import { renderState, toldMessages, toldState, untold } from "../../context/consciousness/state.ts";
import { inputBudget } from "../../context/limits.ts";
import type { JournalRow } from "../../journal.ts";
import type { RunRow } from "../../runs.ts";
import type { InboxRow } from "../../schema.ts";
import { estimateMessages, estimateText } from "../../tokens.ts";
import {
  composingOf,
  newWindow,
  nextWindow,
  ownBlocks,
  partsIn,
  shownBlocks,
  stateWith,
  windowOf,
} from "../composing.ts";
import { inputsIn } from "../run-rows.ts";
import type { RunServices } from "../run-services.ts";
import { ownCycles } from "../summaries.ts";
import type { OrdinalCycle, WindowRow } from "../windows.ts";
import { beginRun, type Continuity } from "./continuity.ts";
import { anyCall, deedsIn } from "./past-runs.ts";
import { newsOfOthers, sharesUntold, tellPeerUpdates } from "./peer-updates.ts";

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
const nextBatch = (services: RunServices) => {
  const composing = composingOf(services);
  return services.inbox.nextBatch(inputBudget(composing) * batchShare, composing.config.context.maxEvents);
};

/** A key of a compartment's told state: how many runs of the open mind it was not fed. */
const openRuns = "OPEN RUNS";

/** The beginning of a cycle that began now with this batch. Nothing is written. `ordinal` is that of the run. */
const prepareCycle = (services: RunServices, batch: InboxRow[], ordinal: number) => {
  const events = batch.map(({ data }) => data);
  const blocks = shownBlocks(services, ownBlocks(services), events);
  const window = nextWindow(services, "consciousness", ordinal, blocks.shown);
  const state = stateWith(services, blocks);
  const leftOut = services.feed.runs()?.left ?? 0;
  const told = {
    ...toldState(state, composingOf(services).limits.memoryTokens - tokensOf(blocks.shown)),
    ...toldMessages(services.redactions.known()),
    ...(leftOut === 0 ? {} : { [openRuns]: { left: String(leftOut) } }),
  };
  const active = state.spaces.find((space) => space.id === services.identity.get().activeSpaceId);
  const toldBefore = services.windows.toldBefore(window, ordinal);
  const history = services.spaces.leftToHistory();
  const text = renderInboxMessage({
    now: isoTime(services.clock.now()),
    canWait: window.toolset.messaging === "threaded",
    ...{ events, leftToHistory: history, told, toldBefore },
    unfed: leftOut - Number(toldBefore?.[openRuns]?.left ?? 0),
    silent: silentLines(services, ordinal),
    blocks: { shown: blocks.shown, head: window.blocks },
    activeSpace: active ?? null,
  });
  return {
    ...{ ordinal, batch, events, window, told, toldBefore, text },
    ...{ blocks: blocks.shown, withheld: [...blocks.dropped, ...untold(told)] },
    /** How many messages of which spaces it says to be in their history only. */
    history,
    activeSpaceId: active?.id ?? null,
  };
};

const previewEvents = 10;

/** Begins a cycle, if a waiting event may wake this agent. One transaction stores the run and its inbox message. */
const begin = (services: RunServices): RunRow | undefined => {
  if (!services.inbox.nextWaking()) return undefined;
  const { rows: batch, passed } = nextBatch(services);
  if (batch.length === 0) return undefined;
  return services.transaction(() => {
    services.inbox.leave(passed);
    const prepared = prepareCycle(services, batch, services.runs.nextOrdinal());
    const { events, withheld, history, text } = prepared;
    const run = beginRun(services, prepared);
    services.journal.append({
      runOrdinal: run.ordinal,
      step: 0,
      kind: "inbox",
      content: { role: "user", content: text },
      meta: {
        kind: "inbox",
        lines: events.map((event) => eventLine(event)),
        eventIds: batch.map(({ eventId }) => eventId),
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

/** A compaction is due from this share of the budget on, early enough that no run waits for one. */
const dueShare = 0.8;

/** How the cycles in a window are compacted: how many may stay whole, and the tokens that these and the summary may fill. */
const limitsIn = (services: RunServices, { instructions }: WindowRow) => {
  const composing = composingOf(services);
  const { minRecentCycles, compaction } = composing.config.context;
  const { strategy, keepRecent = minRecentCycles } = compaction;
  return { strategy, keepRecent, maxTokens: inputBudget(composing) - estimateText(instructions) };
};

/** A model's summary of the oldest cycles in a window, up to the run with this ordinal, as far as it is made. */
export const foldedIn = ({ summaries }: RunServices, window: WindowRow): { text: string; upTo: number } | null => {
  const row = summaries.find(ownCycles);
  return row && row.text !== null && row.base === window.firstRun ? { text: row.text, upTo: row.upTo } : null;
};

/** The cycles that a compaction now would take out of the next run's input, oldest first. */
export const leavingCycles = (services: RunServices, window: WindowRow): OrdinalCycle[] => {
  const past = services.windows.past(window.firstRun, services.runs.nextOrdinal());
  return past.slice(0, keepFrom(past, limitsIn(services, window)));
};

/** Begins a window in which this summary, as a model wrote it, stands for all cycles up to run `upTo`. */
export const beginFolded = (services: RunServices, window: WindowRow, text: string, upTo: number): void => {
  const { runs, windows } = services;
  const toldFrom = runs.nextOrdinal();
  const firstRun = runs.kept(upTo + 1, toldFrom)[0]?.ordinal ?? toldFrom;
  windows.save(newWindow(services, { ...window, summary: quoteLines(text), firstRun, toldFrom }));
};

const factsOfCycle = (services: RunServices, ordinal: number): CycleFacts => {
  const rows = services.journal.ofRuns(services.runs.those([ordinal]), { texts: false });
  return { lines: inputsIn(rows).flatMap(({ lines }) => lines), deeds: deedsIn(services, rows, anyCall) };
};

/**
 * Compacts the cycles before run `ordinal`, which is told the new window's state in full; null if there was nothing to
 * compact. If a model `refused` the input as too long, the past is halved, whatever the config allows.
 */
const compactBefore = (
  services: RunServices,
  window: WindowRow,
  ordinal: number,
  refused = false,
): WindowRow | null => {
  const past = services.windows.past(window.firstRun, ordinal);
  const limits = limitsIn(services, window);
  if (refused) {
    limits.keepRecent = Math.min(limits.keepRecent, Math.floor(past.length / 2));
    limits.maxTokens = past.reduce((sum, cycle) => sum + estimateMessages(cycle.messages), 0);
  }
  const folded = foldedIn(services, window);
  const inSummary = past.filter((cycle) => cycle.ordinal <= (folded?.upTo ?? 0)).length;
  const compaction = compact(
    past,
    folded ? quoteLines(folded.text) : window.summary,
    limits,
    ({ ordinal: of }) => factsOfCycle(services, of),
    inSummary,
  );
  if (!compaction) return null;
  const firstRun = past[compaction.keptFrom]?.ordinal ?? ordinal;
  const { summary } = compaction;
  return services.windows.save(newWindow(services, { ...window, summary, firstRun, toldFrom: ordinal }));
};

/**
 * Compacts after a run whose last input came near `context.maxTokens`: the next run begins a new window with the
 * earlier cycles summarised. If a model has to write the summary, a later run does.
 */
export const compactIfDue = (services: RunServices, run: RunRow): void => {
  const composing = composingOf(services);
  const rows = services.journal.ofRun(run, run.journalTo ?? undefined);
  const last = rows.findLast((row) => row.meta?.kind === "assistant")?.meta;
  if (last?.kind !== "assistant" || last.estimatedInput < inputBudget(composing) * dueShare) return;
  if (composing.config.context.compaction.strategy === "recursive_summarization") services.wantSummary(ownCycles);
  else compactBefore(services, windowOf(services, run), services.runs.nextOrdinal());
};

/**
 * The input of a running run is too long: compacts what lies before it and moves it to the new window. The cycle
 * that told the whole state may be gone with that, so the run is told it again. `refused`: the model said so.
 */
export const compactForRun = (services: RunServices, run: RunRow, step: number, refused = false): boolean => {
  return services.transaction(() => {
    const next = compactBefore(services, windowOf(services, run), run.ordinal, refused);
    if (!next) return false;
    const events = services.inbox.rows(run.events).map(({ data }) => data);
    const { shown } = shownBlocks(services, ownBlocks(services), events);
    services.journal.tell(run.ordinal, step, renderState(run.told, shown, next.blocks));
    run.windowId = next.id;
    run.told = services.redactions.cleanTold({ ...run.told, ...sharesUntold });
    services.runs.update(run.ordinal, { windowId: next.id, told: run.told });
    return true;
  });
};

/** One cycle at a time, over everything that waits, with the earlier cycles as its past. */
export const consciousness: Continuity = {
  maxRuns: () => 1,
  ...continuityFacts({ continuity: "consciousness" }),
  takeOver: () => undefined,
  begin,
  compose: tellPeerUpdates,
  beforeStep: preview,
  past: (services, { firstRun }, run) => services.windows.past(firstRun, run.ordinal),
  shorten: async ({ services, run }, step) => compactForRun(services, run, step, true),
  next: async (services, signal) => {
    const { rows } = nextBatch(services);
    const { ordinal, window, ...prepared } = prepareCycle(services, rows, services.runs.nextOrdinal());
    const asked = { services, told: prepared.toldBefore, events: () => prepared.events, signal };
    const news = await newsOfOthers(asked);
    return {
      snapshot: {
        ...partsIn(services, window),
        continuity: "consciousness",
        window,
        past: services.windows.past(window.firstRun, ordinal),
        own: [{ text: prepared.text }, ...news].flatMap(({ text, ...of }) =>
          text === null ? [] : [{ ...of, message: { role: "user", content: text } }],
        ),
        withheld: [...prepared.withheld, ...news.flatMap(({ dropped }) => dropped)],
      },
      blocks: [...prepared.blocks, ...news.flatMap(({ blocks }) => blocks)],
      events: rows,
    };
  },
};
