import type { InboxMeta } from "../../../protocol/exported-history.ts";
import type { RunTrigger } from "../../../protocol/run.ts";
import { compose } from "../../context/compose.ts";
import type { Composed } from "../../context/sections.ts";
import type { TimelineSnapshot } from "../../context/timeline/compose-timeline.ts";
import { estimateMessages, estimateText } from "../../context/tokens.ts";
import { quoteJson } from "../../context/wording.ts";
import { homeOf, triggerOf } from "../../inbox/batch.ts";
import { messagesOf } from "../../journal.ts";
import type { InboxData } from "../../records.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import { nextWindow, windowOf } from "../composing.ts";
import { shownOf } from "../run-events.ts";
import { inputsIn, invocationOf } from "../run-rows.ts";
import type { LiveRun, RunServices } from "../run-services.ts";
import { beginRun } from "./begin-run.ts";
import type { Continuity } from "./continuity.ts";
import { gatherTimeline, messagesIn, wantSummaries } from "./gather-timeline.ts";

/**
 * Stateless runs side by side, one event each, with the space's history as the past.
 *
 * Invariants
 * 1. The input of each invocation is journaled as it was composed, in one transaction: a replay reads the same bytes (R3).
 * 2. A run is composed again at most once because its input was too long. Its journal says so (R4).
 */
type Input = { snapshot: TimelineSnapshot; composed: Composed };

/** Begins a run with one event. The run gathers its input itself. */
const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  const row = services.inbox.nextWaking();
  if (!row) return undefined;
  const home = homeOf(row.data);
  return services.transaction(() =>
    beginRun(services, newest, {
      batch: [row],
      // Overheard messages are acknowledged with this run. The history shows them.
      overheard: home === null ? [] : services.inbox.overheardIn(home),
      window: nextWindow(services, "timeline", ordinalAfter(newest)),
      told: {},
      activeSpaceId: home !== null && services.spaces.isMember(home) ? home : null,
    }),
  );
};

/** `refused`: estimated tokens of an input that the model refused as too long. */
const inputFor = async (
  { services, run, signal }: LiveRun,
  step: number,
  activeSpaceId: string | null,
  refused?: number,
): Promise<Input> => {
  const row = services.inbox.byEventId(run.trigger.eventId);
  if (!row) throw new Error(`run ${run.id} has no event`);
  const asked = { ordinal: run.ordinal, window: windowOf(services, run), event: row.data, trigger: run.trigger };
  const gathered = await gatherTimeline(services, asked, signal, step === 0 ? null : { run, activeSpaceId });
  signal.throwIfAborted();
  const snapshot = { ...gathered, refused };
  return { snapshot, composed: compose(snapshot) };
};

/** Journals the input. `more`: further facts for its first row. */
const journal = (
  { services, run }: LiveRun,
  step: number,
  { snapshot, composed }: Input,
  more: Pick<InboxMeta, "shortened"> = {},
): void => {
  const shown = snapshot.histories.flatMap(({ space, entries }) => shownOf(space.id, messagesIn(entries)));
  const made = { sections: composed.sections.map(({ name, tokens }) => ({ name, tokens })), dropped: composed.dropped };
  const { soFar: _, ...answers } = snapshot.resume ?? { soFar: [] };
  const first = { made, ...("replies" in answers ? { answers } : {}), ...more };
  wantSummaries(services, composed);
  if (step > 0) services.waits.endOf(run.ordinal);
  for (const [index, content] of composed.messages.entries()) {
    const lines = [quoteJson(snapshot.trigger)];
    const meta: InboxMeta = { kind: "inbox", lines, shown, ...(index === 0 ? first : {}) };
    services.journal.append({ runOrdinal: run.ordinal, step, kind: "inbox", content, meta });
  }
};

const composeInvocation = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<void> => {
  const { services, run } = live;
  if (step === 0 && services.journal.ofRun(run).length > 0) return;
  const input = await inputFor(live, step, activeSpaceId);
  services.transaction(() => journal(live, step, input));
};

/** The run goes on in a fresh and shorter invocation, as after a wait. False if that was done in this run before. */
const shorten = async (live: LiveRun, step: number, activeSpaceId: string | null): Promise<boolean> => {
  const { services, run } = live;
  const rows = services.journal.ofRun(run);
  if (inputsIn(rows).some(({ shortened }) => shortened)) return false;
  const instructions = estimateText(windowOf(services, run).instructions);
  const refused = instructions + estimateMessages(messagesOf(invocationOf(rows)));
  const input = await inputFor(live, step, activeSpaceId, refused);
  // The model has not acted on reminders that came after the last step.
  const sinceStep = rows.slice(rows.findLastIndex(({ kind }) => kind === "assistant") + 1);
  const again = sinceStep.filter(({ kind }) => kind === "preview");
  const shorter = instructions + estimateMessages([...input.composed.messages, ...messagesOf(again)]);
  if (shorter >= refused) return false;
  services.transaction(() => {
    journal(live, step, input, { shortened: true });
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
  runsAlone: false,
  waitsForAnswers: true,
  keepsRuns: false,
  marksSeen: true,
  // Messages that the agent's cycles have read are not [NEW] to its runs.
  takeOver: ({ spaces }) => spaces.settleAll(),
  begin,
  compose: composeInvocation,
  beforeStep: () => undefined,
  past: () => [],
  shorten,
  next: async (services, _, signal) => {
    const row = services.inbox.nextWaking();
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
