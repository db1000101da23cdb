import type { AgentConfig } from "../../../protocol/agent.ts";
import type { ContinuityFacts } from "../../../protocol/continuity.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import type { Snapshot } from "../../context/compose.ts";
import { eventSpaces, triggerOf } from "../../inbox/batch.ts";
import type { JournalRow } from "../../journal.ts";
import type { NewRun, RunRow } from "../../runs.ts";
import type { InboxRow } from "../../schema.ts";
import { holdBeyondHour, payersIn } from "../run-events.ts";
import type { LiveRun, RunServices } from "../run-services.ts";
import type { OrdinalCycle, WindowRow } from "../windows.ts";

/** The input of the next run: its snapshot, the blocks in it, and the events that it would begin with. */
export type NextInput = { snapshot: Snapshot; blocks: ShownBlock[]; events: InboxRow[] };

/** How an agent's past becomes the context of its runs. `consciousness.ts` and `timeline.ts` are the two ways. */
export interface Continuity extends ContinuityFacts {
  /** How many runs may go on at once. */
  maxRuns(limits: AgentConfig["limits"]): number;
  /** Prepares the agent for this continuity, in the transaction that changes its config. */
  takeOver(services: RunServices): void;
  /** Begins a run with the waiting events, if they may wake the agent. */
  begin(services: RunServices): RunRow | undefined;
  /**
   * Journals what an invocation reads before its first step, as far as it is not journaled yet. Step 0 is the run's
   * first; any other goes on after a wait.
   */
  compose(live: LiveRun, step: number, activeSpaceId: string | null): Promise<void>;
  /** Adds to the input what has come since the step before. */
  beforeStep(services: RunServices, run: RunRow, step: number, rows: JournalRow[]): void;
  /** Shortens an input that the model refused as too long. False if it cannot be made shorter. */
  shorten(live: LiveRun, step: number, activeSpaceId: string | null): Promise<boolean>;
  /** The earlier cycles that a run reads in its window. */
  past(services: RunServices, window: WindowRow, run: RunRow): OrdinalCycle[];
  /** The input that the next run would have, whether or not anything wakes it now. Writes nothing. */
  next(services: RunServices, signal: AbortSignal): Promise<NextInput>;
}

type Begun = {
  /** The events that it begins with, and others that are acknowledged with it. */
  batch: InboxRow[];
  overheard?: InboxRow[];
  /** Stored with it, if it is a new one. */
  window: WindowRow;
} & Pick<NewRun, "told" | "activeSpaceId">;

/**
 * Stores a run: takes its events, counts their roots, and holds what else its person asks if that was their share of the
 * hour. Its rows of the journal begin with the next one. Belongs in the transaction that writes what the run reads.
 */
export const beginRun = (
  services: RunServices,
  { batch, overheard = [], window, told, activeSpaceId }: Begun,
): RunRow => {
  const { redactions } = services;
  const ordinal = services.runs.nextOrdinal();
  const events = [...batch, ...overheard];
  services.inbox.take(events, batch);
  // A redaction may be past the inbox and all runs, and not yet have come to what this one is made of.
  const cleaned = events.map((row) => ({ ...row, data: redactions.clean(row.data, row.receivedAt) }));
  for (const [index, row] of cleaned.entries()) {
    if (row.data !== events[index]?.data) services.inbox.become(row, row.data);
  }
  services.journal.hold(ordinal, true);
  const [person = null] = payersIn(batch);
  const run = {
    id: services.ids.deriveOwned("run", services.identity.mindId(), ordinal),
    continuity: window.continuity,
    trigger: triggerOf(cleaned.slice(0, batch.length)),
    events: events.map(({ seq }) => seq),
    roots: [...new Set(batch.map(({ rootId }) => rootId))],
    spaceIds: eventSpaces(batch),
    windowId: services.windows.save(window).id,
    journalFrom: services.journal.nextSeq(),
    told: redactions.cleanTold(told),
    activeSpaceId,
    startedAt: services.clock.now(),
    person,
    fed: services.identity.get().compartmentId === null ? null : false,
  };
  const begun = services.runs.begin(run);
  holdBeyondHour(services, begun.person);
  return begun;
};
