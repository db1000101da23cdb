import type { Clock } from "../../shared/clock.ts";
import type { Env } from "../../shared/env.ts";
import type { Crashable } from "../../shared/fault.ts";
import type { Ids } from "../../shared/ids.ts";
import type { Calls } from "../calls/calls.ts";
import type { Identity } from "../identity.ts";
import type { DeadEvents } from "../inbox/dead-letters.ts";
import type { SeenEvents } from "../inbox/dedupe-keys.ts";
import type { Hooks } from "../inbox/hooks.ts";
import type { Inbox } from "../inbox/inbox.ts";
import type { Roots } from "../inbox/roots.ts";
import type { Waits } from "../inbox/waits.ts";
import type { Journal } from "../journal.ts";
import type { Ledger } from "../ledger.ts";
import type { Archival } from "../memory/archival.ts";
import type { BlockShares } from "../memory/blocks/block-shares.ts";
import type { BlockSpaces } from "../memory/blocks/block-spaces.ts";
import type { Blocks } from "../memory/blocks/blocks.ts";
import type { SharedBlocks } from "../memory/blocks/shared-blocks.ts";
import type { Watchers } from "../memory/blocks/watchers.ts";
import type { Goals } from "../memory/goals.ts";
import type { Memories } from "../memory/memories.ts";
import type { Search } from "../memory/search/search.ts";
import type { Plans } from "../plans/plans.ts";
import type { Runs } from "../runs.ts";
import type { Spaces } from "../spaces.ts";
import type { Mcp } from "../tools/mcp/mcp.ts";
import type { Registry } from "../tools/registry.ts";
import type { Tracer } from "../tracing/tracer.ts";
import type { Consciousness } from "./consciousness.ts";
import type { Summaries } from "./summaries.ts";

/** All that an agent is made of, in one object: its tables, its clock, its way to the world. */
export type Parts = {
  env: Env;
  ids: Ids;
  clock: Clock;
  identity: Identity;
  inbox: Inbox;
  seenEvents: SeenEvents;
  deadEvents: DeadEvents;
  journal: Journal;
  runs: Runs;
  consciousness: Consciousness;
  summaries: Summaries;
  spaces: Spaces;
  roots: Roots;
  ledger: Ledger;
  waits: Waits;
  calls: Calls;
  memories: Memories;
  goals: Goals;
  archival: Archival;
  search: Search;
  blocks: Blocks;
  blockShares: BlockShares;
  blockSpaces: BlockSpaces;
  sharedBlocks: SharedBlocks;
  watchers: Watchers;
  plans: Plans;
  hooks: Hooks;
  tools: Registry;
  mcp: Mcp;
  tracer: Tracer;
  /** One SQLite transaction: all of it or nothing. */
  transaction<T>(work: () => T): T;
  /** Has a call's space told of it now; throws what it refuses, or `unavailable`. Set by the calls' work. */
  tellCall(callId: string): Promise<void>;
  /** Has what calls ask for beside their runs done. */
  wakeCalls(): void;
  /**
   * Has a summary written in the agent's own time: of its cycles, or of a space's messages up to `upTo`, beginning after
   * `from` where there is none yet. Set by the summaries' work.
   */
  wantSummary(subject: string, messages?: { from: number; upTo: number }): void;
  /** Stops the think of another run, and waits until it has ended. Set by the loop. */
  stopThink(runId: string, why: string): Promise<void>;
  /** The object itself, for fault points. */
  object: Crashable;
};
