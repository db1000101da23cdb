import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import type { Env } from "../shared/env.ts";
import { createIds } from "../shared/ids.ts";
import type { Timers } from "../timers/timers.ts";
import { maxOpenCalls } from "./bounds.ts";
import { Calls } from "./calls/calls.ts";
import { Identity } from "./identity.ts";
import { DeadEvents } from "./inbox/dead-letters.ts";
import { SeenEvents } from "./inbox/dedupe-keys.ts";
import { Hooks } from "./inbox/hooks.ts";
import { Inbox } from "./inbox/inbox.ts";
import { Roots } from "./inbox/roots.ts";
import { Waits } from "./inbox/waits.ts";
import { Journal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { Archival } from "./memory/archival.ts";
import { BlockShares } from "./memory/blocks/block-shares.ts";
import { BlockSpaces } from "./memory/blocks/block-spaces.ts";
import { Blocks } from "./memory/blocks/blocks.ts";
import { SharedBlocks } from "./memory/blocks/shared-blocks.ts";
import { tellWatchers } from "./memory/blocks/tell-watchers.ts";
import { Watchers } from "./memory/blocks/watchers.ts";
import { loadLoro } from "./memory/documents/loro.ts";
import { Goals } from "./memory/goals.ts";
import { Memories } from "./memory/memories.ts";
import { openSearch } from "./memory/search/open-search.ts";
import type { Search } from "./memory/search/search.ts";
import { Plans } from "./plans/plans.ts";
import { Consciousness } from "./run/consciousness.ts";
import type { Parts } from "./run/parts.ts";
import { Summaries } from "./run/summaries.ts";
import { Runs } from "./runs.ts";
import { Spaces } from "./spaces.ts";
import { Mcp } from "./tools/mcp/mcp.ts";
import { McpStore } from "./tools/mcp/mcp-store.ts";
import { openSecret } from "./tools/open-secret.ts";
import { createRegistry } from "./tools/registry.ts";
import { Tracer } from "./tracing/tracer.ts";

/** An agent's parts over its database. */
export const assemble = (
  db: Database,
  ctx: DurableObjectState,
  env: Env,
  clock: Clock,
  timers: Timers,
  work: Pick<Parts, "stopThink" | "tellCall" | "wakeCalls" | "wantSummary"> & {
    background: (work: Promise<unknown>) => void;
  },
): Parts => {
  const { background, ...own } = work;
  const identity = new Identity(db, clock);
  const spaces = new Spaces(db);
  const inbox = new Inbox(db, clock);
  const transaction: Parts["transaction"] = (work) => {
    try {
      return ctx.storage.transactionSync(work);
    } catch (error) {
      for (const remembering of [identity, spaces, inbox, timers]) remembering.forget();
      throw error;
    }
  };
  const watchers = new Watchers({ ctx, env, timers, clock });
  const runs = new Runs(db);
  const journal = new Journal(db, clock);
  const consciousness = new Consciousness(db, clock, runs, journal);
  const calls = new Calls(db, clock, timers);
  const mcp = new Mcp({
    store: new McpStore(db),
    clock,
    timers,
    transaction,
    servers: () => identity.get().config.mcp.servers,
    listsInUse: () =>
      runs
        .windowsOf(calls.waitingRuns(maxOpenCalls))
        .flatMap((id) => consciousness.window(id)?.toolset.mcpListId ?? []),
    openSecret: (name) => openSecret({ env, identity }, name),
    allowLoopback: env.ENVIRONMENT === "development",
    fetch: (address, init) => fetch(address, init),
  });
  const ledger = new Ledger(db, clock);
  const blockSpaces = new BlockSpaces(db, clock);
  const blocks = new Blocks({
    ...{ db, clock, transaction, loadLoro },
    changed: (change) => tellWatchers({ watchers, blockSpaces, identity }, change),
  });
  const archival: Archival = new Archival(db, clock, (id, newest) => search.forget(id, newest));
  const search: Search = openSearch(db, env, timers, {
    ...{ clock, identity, spaces, journal, runs, ledger, blocks, transaction },
    archival: () => archival,
    openSecret: (name) => openSecret({ env, identity }, name),
  });
  return {
    env,
    clock,
    archival,
    search,
    runs,
    journal,
    identity,
    consciousness,
    summaries: new Summaries(db, clock),
    mcp,
    ids: createIds(env.SIGNING_SECRET),
    inbox,
    seenEvents: new SeenEvents(db, clock),
    deadEvents: new DeadEvents(db, clock, { inbox, spaces, identity }),
    spaces,
    roots: new Roots(db, clock),
    ledger,
    waits: new Waits(db, clock),
    calls,
    memories: new Memories(db, clock),
    goals: new Goals(db, clock),
    blocks,
    watchers,
    blockShares: new BlockShares(db, clock),
    blockSpaces,
    sharedBlocks: new SharedBlocks(db, clock),
    plans: new Plans(db, clock, timers, transaction),
    hooks: new Hooks(db, clock),
    tools: createRegistry(),
    transaction,
    tracer: new Tracer(env, clock, () => identity.get(), background),
    ...own,
    object: ctx,
  };
};
