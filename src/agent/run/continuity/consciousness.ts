import { renderInboxPreview } from "../../context/consciousness/inbox-message.ts";
import { eventSpaces, triggerOf } from "../../inbox/batch.ts";
import { leave } from "../../inbox/dead-letters.ts";
import { take } from "../../inbox/deliver.ts";
import type { JournalRow } from "../../journal.ts";
import { ordinalAfter, type RunRow } from "../../runs.ts";
import { partsWith } from "../composing.ts";
import type { RunServices } from "../run-services.ts";
import { compactForRun } from "./compact.ts";
import type { Continuity } from "./continuity.ts";
import { tellingsTo, tellPeerUpdates } from "./peer-updates.ts";
import { nextBatch, prepareCycle } from "./prepare-cycle.ts";

const previewEvents = 10;

/**
 * Begins a cycle, if a waiting event may wake this agent. One transaction stores the run and its inbox message, takes
 * its events and counts their roots.
 */
const begin = (services: RunServices, newest: RunRow | undefined): RunRow | undefined => {
  if (!services.inbox.nextWaking()) return undefined;
  const { rows: batch, passed } = nextBatch(services);
  if (batch.length === 0) return undefined;
  return services.transaction(() => {
    leave(services, passed);
    const prepared = prepareCycle(services, batch, ordinalAfter(newest));
    const window = services.windows.save(prepared.window);
    const agent = services.identity.get();
    take(services, batch, batch);
    services.journal.hold(prepared.ordinal, true);
    const inboxRow = services.journal.append({
      runOrdinal: prepared.ordinal,
      step: 0,
      kind: "inbox",
      content: { role: "user", content: prepared.text },
      meta: {
        kind: "inbox",
        lines: prepared.lines,
        ...(prepared.withheld.length === 0 ? {} : { dropped: prepared.withheld }),
        ...(prepared.history.length === 0 ? {} : { history: prepared.history }),
      },
    });
    return services.runs.begin(
      {
        id: services.ids.deriveOwned("run", agent.id, prepared.ordinal),
        trigger: triggerOf(batch),
        events: batch.map(({ seq }) => seq),
        roots: [...new Set(batch.map((row) => row.rootId))],
        continuity: "consciousness",
        spaceIds: eventSpaces(batch),
        windowId: window.id,
        journalFrom: inboxRow.seq,
        told: prepared.told,
        activeSpaceId: prepared.activeSpaceId,
        startedAt: services.clock.now(),
      },
      newest,
    );
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
  const text = renderInboxPreview(
    arrived.rows.map(({ data }) => data),
    arrived.total,
  );
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
  compose: () => {
    throw new Error("a cycle's input is journaled as it begins");
  },
  beforeFirstStep: tellPeerUpdates,
  beforeStep: preview,
  past: (services, { firstRun }, run) => services.windows.past(firstRun, run.ordinal),
  shorten: async (services, run, { step }) => compactForRun(services, run, step, true),
  next: async (services, composing, signal) => {
    const { rows: events } = nextBatch(services);
    const prepared = prepareCycle(services, events, services.runs.nextOrdinal());
    const { window, told, ordinal } = prepared;
    const before = {
      told: () => services.windows.toldBefore(window, ordinal),
      events: () => events.map(({ data }) => data),
    };
    const { tellings, dropped, blocks } = await tellingsTo(services, before, signal);
    return {
      snapshot: {
        ...partsWith(services, window.toolset, composing),
        continuity: "consciousness",
        ...{ window, told, tellings },
        past: services.windows.past(window.firstRun, ordinal),
        own: [{ role: "user", content: prepared.text }, ...tellings.map(({ message }) => message)],
        withheld: [...prepared.withheld, ...dropped],
      },
      blocks: [...prepared.blocks, ...blocks],
      events,
    };
  },
};
