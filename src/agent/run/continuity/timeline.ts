import type { ActiveRun } from "../../context/timeline/snapshot.ts";
import { eventSpaces, triggerOf } from "../../inbox/batch.ts";
import { take } from "../../inbox/deliver.ts";
import type { InboxData } from "../../records.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import { toolsetOf } from "../../tools/toolset.ts";
import { partsWith } from "../composing.ts";
import { plainHeadOf } from "../head.ts";
import type { RunServices } from "../run-services.ts";
import { composeInvocation, composeShorter } from "./compose-invocation.ts";
import type { Continuity } from "./continuity.ts";
import { begunBy, gatherTimeline } from "./gather-timeline.ts";

/** Begins a run with one event. The run gathers its input itself. */
const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  const agent = services.identity.get();
  const row = services.inbox.nextWaking();
  if (!row) return undefined;
  return services.transaction(() => {
    const ordinal = ordinalAfter(newest);
    const toolset = toolsetOf(agent.config, services.mcp.newestList());
    const head = plainHeadOf(services);
    const window = services.windows.save(services.windows.windowFor(head, toolset, ordinal, "timeline"));
    const spaceIds = eventSpaces([row]);
    const [home] = spaceIds;
    // Overheard messages are acknowledged with this run. The history shows them.
    const events = [row, ...(home === undefined ? [] : services.inbox.overheardIn(home))];
    take(services, events, [row]);
    services.journal.hold(ordinal, true);
    return services.runs.begin(
      {
        id: services.ids.deriveOwned("run", agent.id, ordinal),
        continuity: "timeline",
        trigger: triggerOf([row]),
        events: events.map(({ seq }) => seq),
        roots: [row.rootId],
        spaceIds,
        windowId: window.id,
        journalFrom: services.journal.nextSeq(),
        told: {},
        activeSpaceId: home !== undefined && services.spaces.isMember(home) ? home : null,
        startedAt: services.clock.now(),
      },
      newest,
    );
  });
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
  compose: composeInvocation,
  beforeFirstStep: async () => undefined,
  beforeStep: () => undefined,
  past: () => [],
  shorten: composeShorter,
  next: async (services, composing, signal) => {
    const row = services.inbox.nextWaking();
    const events = row ? [row] : [];
    const ordinal = services.runs.nextOrdinal();
    const toolset = toolsetOf(services.identity.get().config, services.mcp.newestList());
    const common = { ...partsWith(services, toolset, composing), config: composing.config };
    const snapshot = await gatherTimeline(services, common, row?.data ?? nothingWaits, ordinal, signal);
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
