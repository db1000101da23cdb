import type { Env } from "../env/env.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { createIds } from "../shared/ids.ts";
import type { Timers } from "../timers/timers.ts";
import { maxOpenCalls } from "./bounds.ts";
import { createCalls } from "./calls/calls.ts";
import { createIdentity } from "./identity.ts";
import { createDedupeKeys } from "./inbox/dedupe-keys.ts";
import { createHooks } from "./inbox/hooks.ts";
import { createInbox } from "./inbox/inbox.ts";
import { createRoots } from "./inbox/roots.ts";
import { createWaits } from "./inbox/waits.ts";
import { Journal } from "./journal.ts";
import { createLedger } from "./ledger.ts";
import { Archival } from "./memory/archival.ts";
import { BlockSubscriptions } from "./memory/blocks/block-subscriptions.ts";
import { Blocks } from "./memory/blocks/blocks.ts";
import { SharedBlocks } from "./memory/blocks/shared-blocks.ts";
import { Shares } from "./memory/blocks/shares.ts";
import { loadLoro } from "./memory/documents/loro.ts";
import { Goals } from "./memory/goals.ts";
import { Memories } from "./memory/memories.ts";
import { Search } from "./memory/search/search.ts";
import { createPlans } from "./plans/plans.ts";
import { tokensOfStep } from "./run/run-rows.ts";
import type { RunServices } from "./run/run-services.ts";
import { Summaries } from "./run/summaries.ts";
import { createWindows } from "./run/windows.ts";
import { createRuns } from "./runs.ts";
import { createSpaces } from "./spaces.ts";
import { Mcp } from "./tools/mcp/mcp.ts";
import { McpStore } from "./tools/mcp/mcp-store.ts";
import { builtinTool, factsOf } from "./tools/registry.ts";
import { createTracer } from "./tracing/tracer.ts";
import { importedJournalEnd, originName } from "./transfer/origin.ts";

/** All that an agent is made of: its tables over its database, its clock, its way to the world. */
export const createServices = (
  db: Database,
  ctx: DurableObjectState,
  env: Env,
  clock: Clock,
  timers: Timers,
  work: Pick<RunServices, "armLoop" | "stopRun" | "tellCall" | "wakeCalls" | "wantSummary"> & {
    background: (work: Promise<unknown>) => void;
  },
): RunServices => {
  const { background, ...own } = work;
  const ids = createIds(env.SIGNING_SECRET);
  const identity = createIdentity(db, clock, env.SIGNING_SECRET);
  const spaces = createSpaces(db);
  const journal = new Journal(db, clock);
  const inbox = createInbox(db, clock);
  const transaction: RunServices["transaction"] = (work) => db.transaction(work);
  const runs = createRuns(db, clock);
  const windows = createWindows(db, runs, journal);
  const calls = createCalls(db, clock, timers);
  const mcp = new Mcp({
    store: new McpStore(db),
    clock,
    timers,
    transaction,
    servers: () => identity.get().config.mcp.servers,
    listsInUse: () =>
      runs.windowsOf(calls.waitingRuns(maxOpenCalls)).flatMap((id) => windows.window(id)?.toolset.mcpListId ?? []),
    openSecret: (name) => identity.openSecret(name),
    allowLoopback: env.ENVIRONMENT === "development",
    fetch: (address, init) => fetch(address, init),
  });
  const ledger = createLedger(db, clock, (name) => {
    const [ordinal = 0, step = 0] = /^\d+:\d+$/.test(name) ? name.split(":").map(Number) : [];
    const run = ordinal > 0 && runs.at(ordinal);
    return run ? tokensOfStep(journal.ofRun(run), step) : undefined;
  });
  const waits = createWaits(db, clock);
  const memories = new Memories(db, clock);
  const goals = new Goals(db, clock);
  const plans = createPlans(db, clock, timers, transaction);
  const sharedBlocks: SharedBlocks = new SharedBlocks({ db, clock, env, ids, identity, blocks: () => blocks });
  const shares: Shares = new Shares({
    ...{ db, clock, env, ids, identity },
    blocks: () => blocks,
    subscriptions: () => subscriptions,
  });
  const subscriptions = new BlockSubscriptions({ ctx, env, timers, clock, shares });
  const blocks: Blocks = new Blocks({
    ...{ db, clock, shares, transaction, loadLoro },
    changed: (change) => subscriptions.changed(change),
  });
  const archival: Archival = new Archival(db, clock, (id, newest) => search.forget(id, newest));
  const search: Search = new Search(db, {
    ...{ env, clock, timers, transaction, identity, spaces, journal, runs, ledger, blocks, archival },
    isBuiltin: (toolName) => builtinTool(toolName) !== undefined,
    isSpeech: (toolName) => factsOf(toolName).speaks,
    originName: (id) => originName(db, id),
    importedJournalEnd: () => importedJournalEnd(db),
  });
  return {
    env,
    clock,
    archival,
    search,
    runs,
    journal,
    identity,
    windows,
    summaries: new Summaries(db, clock),
    mcp,
    ids,
    inbox,
    dedupeKeys: createDedupeKeys(db, clock),
    spaces,
    roots: createRoots(db, clock),
    ledger,
    waits,
    calls,
    memories,
    goals,
    blocks,
    subscriptions,
    shares,
    sharedBlocks,
    plans,
    hooks: createHooks(db, clock),
    transaction,
    tracer: createTracer(env, clock, () => identity.get(), background),
    ...own,
    object: ctx,
  };
};
