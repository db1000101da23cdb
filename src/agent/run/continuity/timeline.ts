import type { ActiveRun } from "../../context/timeline/snapshot.ts";
import { homeOf, triggerOf } from "../../inbox/batch.ts";
import type { InboxData } from "../../records.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import { nextWindow } from "../composing.ts";
import type { RunServices } from "../run-services.ts";
import { beginRun } from "./begin-run.ts";
import { composeInvocation, composeShorter } from "./compose-invocation.ts";
import type { Continuity } from "./continuity.ts";
import { begunBy, gatherTimeline } from "./gather-timeline.ts";

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

/** The event of a run that is shown while nothing waits: a timeline run begins with one. */
const nothingWaits = {
  type: "service",
  serviceName: "(nothing waits)",
  payload: null,
  root: { id: "", kind: "service" },
} satisfies InboxData;

/** Stateless runs side by side, one event each, with the space's history as the past. */
export const timeline: Continuity = {
  maxRuns: ({ maxConcurrentRuns }) => maxConcurrentRuns,
  runsAlone: false,
  waitsForAnswers: true,
  keepsRuns: false,
  marksSeen: true,
  // Messages that the agent's cycles have read are not [NEW] to its runs.
  takeOver: ({ spaces }) => spaces.settleAll(),
  begin,
  beforeFirstStep: async (live) => {
    if (live.services.journal.ofRun(live.run).length === 0) await composeInvocation(live, 0, null);
  },
  compose: composeInvocation,
  beforeStep: () => undefined,
  past: () => [],
  shorten: composeShorter,
  next: async (services, _, signal) => {
    const row = services.inbox.nextWaking();
    const events = row ? [row] : [];
    const ordinal = services.runs.nextOrdinal();
    const window = nextWindow(services, "timeline", ordinal);
    const snapshot = await gatherTimeline(services, window, row?.data ?? nothingWaits, ordinal, signal);
    // The next run is itself among the active runs in its input.
    const itself: ActiveRun = {
      runId: services.ids.deriveOwned("run", snapshot.state.agentId, ordinal),
      status: "running",
      isThis: true,
      begunBy: row
        ? begunBy(services, triggerOf(events))
        : { type: "service", name: nothingWaits.serviceName, text: "" },
    };
    const { shown: blocks } = snapshot.state.blocks ?? { shown: [] };
    return { snapshot: { ...snapshot, activeRuns: [...snapshot.activeRuns, itself] }, blocks, events };
  },
};
