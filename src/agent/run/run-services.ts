import type { UsageReports } from "../../env/report-usage.ts";
import type { CallRequest } from "../../protocol/exported-history.ts";
import type { InboxServices } from "../inbox/deliver.ts";
import type { Journal } from "../journal.ts";
import type { Budget, Ledger } from "../ledger.ts";
import type { FeedState } from "../memory/feed-state.ts";
import type { Plans } from "../plans/plans.ts";
import type { RunRow } from "../runs.ts";
import type { Mcp } from "../tools/mcp/mcp.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { GuestDesk } from "./guest-desk.ts";
import type { Speech } from "./speech.ts";
import type { Summaries } from "./summaries.ts";
import type { Windows } from "./windows.ts";

/** The services of a run: all of the agent's tables, and the workers beside it. */
export type RunServices = InboxServices & {
  journal: Journal;
  windows: Windows;
  summaries: Summaries;
  ledger: Ledger;
  budget: Budget;
  /** Tells the workspace what was used. */
  usage: UsageReports;
  plans: Plans;
  /** What a compartment knows of its agent's open mind. */
  feed: FeedState;
  mcp: Mcp;
  tracer: Tracer;
  /** Where a guest's programs wait for runs. */
  guests: GuestDesk;
  /** Tells the space of this call now. Throws the space's refusal, or `unavailable`. */
  tellCall(callId: string): Promise<void>;
  /** Starts the work that calls need beside their runs. */
  wakeCalls(): void;
  /**
   * Asks for a summary: of the agent's cycles, or of a space's messages up to `upTo`, beginning after `from` where
   * there is none yet.
   */
  wantSummary(subject: string, messages?: { from: number; upTo: number }): void;
  /** Has old journals cut, once a space keeps messages for so many days. */
  armCuts(): void;
  /** Ends this compartment, with all that it stores: its agent was removed. */
  endMind(): void;
  /** Aborts another run, and waits until it has ended. */
  stopRun(runId: string, why: string): Promise<void>;
};

/** A run in its loop. */
export type LiveRun = {
  services: RunServices;
  run: RunRow;
  /** Aborted when the run is to stop. */
  signal: AbortSignal;
  /** Called with every sign of life. */
  progressed: () => void;
  /** Whose tokens it waits for, that steps under way have booked: a person's, everybody's, or none any more. */
  waitsFor: (person: string | undefined) => void;
  /** Resolves once it has its place among `maxConcurrentRuns` again, which it gave up while it waited for tokens. */
  place: () => Promise<void>;
};

/** One call of a step that is to be executed. */
export type Execution = LiveRun & {
  step: number;
  call: CallRequest;
  /** When an earlier life of this run journaled it as begun; undefined if none did. */
  begunAt: number | undefined;
  activeSpaceId: string | null;
  /** What the step said while it was generated; undefined in a replay. */
  speech: Speech | undefined;
};
