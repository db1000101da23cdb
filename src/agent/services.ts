import type { Env } from "../env.ts";
import { embedderIdOf, resolveEmbedder } from "../models/embedders/embedders.ts";
import type { Clock } from "../shared/clock.ts";
import type { Database } from "../shared/database.ts";
import { unwrap } from "../shared/errors.ts";
import { createIds } from "../shared/ids.ts";
import type { Timers } from "../timers/timers.ts";
import { maxOpenCalls } from "./bounds.ts";
import { Calls } from "./calls/calls.ts";
import { Identity } from "./identity.ts";
import { DeadLetters } from "./inbox/dead-letters.ts";
import { DedupeKeys } from "./inbox/dedupe-keys.ts";
import { Hooks } from "./inbox/hooks.ts";
import { Inbox } from "./inbox/inbox.ts";
import { Roots } from "./inbox/roots.ts";
import { Waits } from "./inbox/waits.ts";
import { Journal } from "./journal.ts";
import { Ledger } from "./ledger.ts";
import { Archival } from "./memory/archival.ts";
import { BlockSubscriptions } from "./memory/blocks/block-subscriptions.ts";
import { Blocks } from "./memory/blocks/blocks.ts";
import { SharedBlocks } from "./memory/blocks/shared-blocks.ts";
import { Shares } from "./memory/blocks/shares.ts";
import { loadLoro } from "./memory/documents/loro.ts";
import { Goals } from "./memory/goals.ts";
import { Memories } from "./memory/memories.ts";
import { bookedEmbedder } from "./memory/search/booked-embedder.ts";
import { Search } from "./memory/search/search.ts";
import { Plans } from "./plans/plans.ts";
import { lastBilled } from "./run/billing.ts";
import type { RunServices } from "./run/run-services.ts";
import { Summaries } from "./run/summaries.ts";
import { Windows } from "./run/windows.ts";
import { Runs } from "./runs.ts";
import { Spaces } from "./spaces.ts";
import { Mcp } from "./tools/mcp/mcp.ts";
import { McpStore } from "./tools/mcp/mcp-store.ts";
import { builtinNames, factsOf } from "./tools/registry.ts";
import { Tracer } from "./tracing/tracer.ts";
import { importedJournalEnd, originName } from "./transfer/origin.ts";

/** What search reads. Archival entries are made after it, since they tell it what was deleted. */
type Searched = Pick<
  RunServices,
  "clock" | "identity" | "spaces" | "journal" | "runs" | "ledger" | "blocks" | "transaction"
> & {
  archival: () => Archival;
};

/** A label may be used again: its versions begin anew, its times do not. */
const versionOf = ({ updatedAt, version }: { updatedAt: number; version: number }): number =>
  updatedAt * 1000 + (version % 1000);

/** The agent's search, over what its other services keep. */
const createSearch = (db: Database, env: Env, timers: Timers, needed: Searched): Search => {
  const { clock, identity, spaces, journal, runs, ledger, blocks, transaction } = needed;
  const config = () => identity.get().config;
  return new Search(
    {
      clock,
      timers,
      transaction,
      agent: () => ({ id: identity.get().id, name: config().name }),
      spaces: () =>
        spaces.followed().map(({ id, cursor, snapshot }) => ({
          id,
          cursor,
          name: snapshot.name,
          memberName: (memberId) => snapshot.members.find((member) => member.id === memberId)?.name,
        })),
      originName: (id) => originName(db, id),
      importedJournalEnd: () => importedJournalEnd(db),
      journalAfter: (seq, limit) => {
        const rows = journal.after(seq, limit);
        const ids = new Map(
          runs.those([...new Set(rows.map(({ runOrdinal }) => runOrdinal))]).map((run) => [run.ordinal, run.id]),
        );
        return rows.map((row) => ({ ...row, runId: ids.get(row.runOrdinal) ?? "" }));
      },
      archivalAfter: (ordinal, limit) => needed.archival().after(ordinal, limit),
      blocks: {
        versions: () => blocks.list().map((row) => ({ label: row.label, version: versionOf(row) })),
        read: async (label) => {
          const row = blocks.find(label);
          if (!row) return undefined;
          const text = await blocks.wholeText(label);
          return { label, version: versionOf(row), description: row.description, text, updatedAt: row.updatedAt };
        },
      },
      isBuiltin: (toolName) => builtinNames.has(toolName),
      isSpeech: (toolName) => factsOf(toolName).speaks,
      history: async (spaceId, after, limit) => {
        const { id, workspaceId } = identity.get();
        const answer = await env.SPACE.getByName(spaceId).history(workspaceId, id, { after, limit });
        if (!answer.ok && (answer.problem.code === "not_a_member" || answer.problem.code === "not_found")) return null;
        return unwrap(answer);
      },
      embedderId: () => embedderIdOf(config().embedder),
      embedder: async () => {
        const embedder = await resolveEmbedder(config().embedder, {
          env,
          openSecret: (name) => identity.openSecret(name),
        });
        return embedder && bookedEmbedder(embedder, ledger, () => config().limits.maxTokensPerDay, clock.now);
      },
    },
    db,
  );
};

/** All that an agent is made of: its tables over its database, its clock, its way to the world. */
export const createServices = (
  db: Database,
  ctx: DurableObjectState,
  env: Env,
  clock: Clock,
  timers: Timers,
  work: Pick<RunServices, "stopRun" | "tellCall" | "wakeCalls" | "wantSummary"> & {
    background: (work: Promise<unknown>) => void;
  },
): RunServices => {
  const { background, ...own } = work;
  const identity = new Identity(db, clock, env.SIGNING_SECRET);
  const spaces = new Spaces(db);
  const journal = new Journal(db, clock);
  const inbox = new Inbox(db, clock);
  const transaction: RunServices["transaction"] = (work) => {
    try {
      return ctx.storage.transactionSync(work);
    } catch (error) {
      forget();
      throw error;
    }
  };
  const runs = new Runs(db);
  const windows = new Windows(db, clock, runs, journal);
  const calls = new Calls(db, clock, timers);
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
  const ledger = new Ledger(db, clock, (name) => {
    const run = /^\d+$/.test(name) ? runs.at(Number(name)) : undefined;
    return run && run.status !== "running" ? { last: lastBilled(run, journal.ofRun(run)) } : undefined;
  });
  const waits = new Waits(db, clock);
  const memories = new Memories(db, clock);
  const goals = new Goals(db, clock);
  const plans = new Plans(db, clock, timers, transaction);
  const sharedBlocks = new SharedBlocks(db, clock);
  /** Whatever keeps in memory what it read. */
  const remembering = [
    identity,
    spaces,
    inbox,
    journal,
    timers,
    runs,
    windows,
    ledger,
    waits,
    memories,
    goals,
    plans,
    sharedBlocks,
  ];
  const forget = (): void => {
    for (const each of remembering) each.forget();
  };
  const shares = new Shares(db, clock, identity);
  const subscriptions = new BlockSubscriptions({ ctx, env, timers, clock, shares });
  const blocks = new Blocks({
    ...{ db, clock, shares, transaction, loadLoro },
    changed: (change) => subscriptions.changed(change),
  });
  const archival: Archival = new Archival(db, clock, (id, newest) => search.forget(id, newest));
  const search: Search = createSearch(db, env, timers, {
    ...{ clock, identity, spaces, journal, runs, ledger, blocks, transaction },
    archival: () => archival,
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
    ids: createIds(env.SIGNING_SECRET),
    inbox,
    dedupeKeys: new DedupeKeys(db, clock),
    deadLetters: new DeadLetters(db, clock, { inbox, spaces, identity }),
    spaces,
    roots: new Roots(db, clock),
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
    hooks: new Hooks(db, clock),
    transaction,
    forget,
    tracer: new Tracer(env, clock, () => identity.get(), background),
    ...own,
    object: ctx,
  };
};
