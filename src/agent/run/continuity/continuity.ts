import type { AgentConfig } from "../../../protocol/agent.ts";
import type { ShownBlock } from "../../context/blocks.ts";
import type { Snapshot } from "../../context/snapshot.ts";
import type { InboxRow } from "../../inbox/inbox.ts";
import type { JournalRow } from "../../journal.ts";
import type { RunRow } from "../../runs.ts";
import type { Composing } from "../composing.ts";
import type { RunServices } from "../run-services.ts";
import type { OrdinalCycle, WindowRow } from "../windows.ts";

/** What the next run would read: the snapshot, the blocks in it, and the events that it would begin with. */
export type NextInput = { snapshot: Snapshot; blocks: ShownBlock[]; events: InboxRow[] };

/** How an agent's past becomes the context of its runs. `consciousness.ts` and `timeline.ts` are the two ways. */
export interface Continuity {
  /** How many runs may go on at once. */
  maxRuns(limits: AgentConfig["limits"]): number;
  /** Nothing runs beside a run: its rows lie together in the journal. */
  runsAlone: boolean;
  /** A run that asks people or agents rests until they answer. Without it, answers come as events of later runs. */
  waitsForAnswers: boolean;
  /** A run that lived is part of the past of later ones. */
  keepsRuns: boolean;
  /** The space's messages are told apart by whether a run is done with them. */
  marksSeen: boolean;
  /** The agent's config changes to this continuity. In the transaction of the change. */
  takeOver(services: RunServices): void;
  /** Begins a run with what waits, if that may wake the agent. `newest` is its newest run so far. */
  begin(services: RunServices, newest: RunRow | undefined): RunRow | undefined;
  /** Composes and journals the input of the invocation that begins with `step`. */
  compose(
    services: RunServices,
    run: RunRow,
    step: number,
    activeSpaceId: string | null,
    signal: AbortSignal,
  ): Promise<void>;
  /** Adds to the input what the run reads before its first step. */
  beforeFirstStep(services: RunServices, run: RunRow, signal: AbortSignal): Promise<void>;
  /** Adds to the input what came since the step before. */
  beforeStep(services: RunServices, run: RunRow, step: number, rows: JournalRow[]): void;
  /** The earlier cycles that a run reads in its window. */
  past(services: RunServices, window: WindowRow, run: RunRow): OrdinalCycle[];
  /** The model refused the input of this step as too long: makes it shorter. False if it cannot be made shorter. */
  shorten(
    services: RunServices,
    run: RunRow,
    step: number,
    activeSpaceId: string | null,
    signal: AbortSignal,
  ): Promise<boolean>;
  /** What the next run would read, whether or not anything wakes it now. Writes nothing. */
  next(services: RunServices, composing: Composing, signal: AbortSignal): Promise<NextInput>;
}
