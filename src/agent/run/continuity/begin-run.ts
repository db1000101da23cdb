import { eventSpaces, triggerOf } from "../../inbox/batch.ts";
import { take } from "../../inbox/deliver.ts";
import { type NewRun, ordinalAfter, type RunRow } from "../../runs.ts";
import type { InboxRow } from "../../schema.ts";
import type { RunServices } from "../run-services.ts";
import type { WindowRow } from "../windows.ts";

type Begun = {
  /** The events that it begins with, and others that are acknowledged with it. */
  batch: InboxRow[];
  overheard?: InboxRow[];
  /** Stored with it, if it is a new one. */
  window: WindowRow;
} & Pick<NewRun, "told" | "activeSpaceId">;

/**
 * Stores a run: takes its events and counts their roots. Its rows of the journal begin with the next one. Belongs in the
 * transaction that writes what the run reads.
 */
export const beginRun = (
  services: RunServices,
  newest: RunRow | undefined,
  { batch, overheard = [], window, told, activeSpaceId }: Begun,
): RunRow => {
  const { id: agentId } = services.identity.get();
  const ordinal = ordinalAfter(newest);
  const events = [...batch, ...overheard];
  take(services, events, batch);
  services.journal.hold(ordinal, true);
  const run = {
    id: services.ids.deriveOwned("run", agentId, ordinal),
    continuity: window.continuity,
    trigger: triggerOf(batch),
    events: events.map(({ seq }) => seq),
    roots: [...new Set(batch.map(({ rootId }) => rootId))],
    spaceIds: eventSpaces(batch),
    windowId: services.windows.save(window).id,
    journalFrom: services.journal.nextSeq(),
    told,
    activeSpaceId,
    startedAt: services.clock.now(),
  };
  return services.runs.begin(run, newest);
};
