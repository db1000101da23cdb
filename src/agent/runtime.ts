import type { Env } from "../env/env.ts";
import { createUsageReport, usageTimer } from "../env/report-usage.ts";
import { systemClock } from "../shared/clock.ts";
import { openDatabase } from "../shared/database.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { createIds, isOwnedBy } from "../shared/ids.ts";
import { ringOf } from "../shared/secret-ring.ts";
import { createJobs, jobsTimer } from "../timers/jobs.ts";
import { createTimers } from "../timers/timers.ts";
import type { AgentRuntime } from "./api/agent-runtime.ts";
import { handleCompartments, tellCompartments, tellMinds } from "./api/compartments.ts";
import { handleAudit, tellNotes } from "./api/config.ts";
import { armCuts, handleCuts } from "./api/journal-cuts.ts";
import { renewCarried } from "./api/related.ts";
import { suspendedLookMs, watchdogMs } from "./bounds.ts";
import { type CallWork, createCallWork } from "./calls/call-work.ts";
import { callsTimer, createCalls } from "./calls/calls.ts";
import { messageIn, resultIn } from "./context/consciousness/inbox-message.ts";
import { heardIn } from "./context/timeline/history.ts";
import { createIdentity } from "./identity.ts";
import { createDedupeKeys } from "./inbox/dedupe-keys.ts";
import { acceptHeartbeat, acceptPlan, acceptToolResult } from "./inbox/deliver.ts";
import { createHooks } from "./inbox/hooks.ts";
import { createInbox } from "./inbox/inbox.ts";
import { createOutOfBudget } from "./inbox/out-of-budget.ts";
import { createRoots } from "./inbox/roots.ts";
import { createWaits } from "./inbox/waits.ts";
import { createJournal } from "./journal.ts";
import { createBudget, createLedger } from "./ledger.ts";
import { createArchival } from "./memory/archival.ts";
import { createBlockSubscriptions, subscriptionsTimer } from "./memory/blocks/block-subscriptions.ts";
import { createBlocks } from "./memory/blocks/blocks.ts";
import { createSharedBlocks } from "./memory/blocks/shared-blocks.ts";
import { createShares } from "./memory/blocks/shares.ts";
import { createFeedState } from "./memory/feed-state.ts";
import { createGoals, createMemories } from "./memory/memory-state.ts";
import { Search, searchTimer } from "./memory/search/search.ts";
import { noteSecretUse } from "./memory/secret-uses/secret-uses.ts";
import { beat, heartbeatTimer } from "./plans/beats.ts";
import { createPlans, plansTimer } from "./plans/plans.ts";
import { createRedactions, redactionTimer } from "./redaction/redactions.ts";
import { createGuestDesk } from "./run/guest-desk.ts";
import { createLoop, type Loop, loopTimer } from "./run/loop.ts";
import { tokensOfStep } from "./run/run-rows.ts";
import type { RunServices } from "./run/run-services.ts";
import { createSummaries } from "./run/summaries.ts";
import { createWindows } from "./run/windows.ts";
import { createRuns } from "./runs.ts";
import { createSpaces } from "./spaces.ts";
import { createSummaryWork, type SummaryWork, summariesTimer } from "./summaries/summary-work.ts";
import { outsideOf } from "./tools/configured/configured-tool.ts";
import { createMcp, mcpTimer } from "./tools/mcp/mcp.ts";
import { builtinTool, deedText, factsOf } from "./tools/registry.ts";
import { createTracer } from "./tracing/tracer.ts";
import { usageOf } from "./tracing/usage.ts";
import { importedJournalEnd, originName } from "./transfer/origin.ts";

/**
 * All that an agent is made of: its tables over its database, its clock, its way to the world, and what works on them.
 * `end` ends the object and deletes what it stores.
 */
export const createRuntime = (
  ctx: DurableObjectState,
  env: Env,
  end: () => Promise<void> = () => Promise.resolve(),
): AgentRuntime => {
  const clock = systemClock;
  const db = openDatabase(ctx.storage);
  const ids = createIds(ringOf(env).ids.secret);
  const identity = createIdentity(db, clock, env, noteSecretUse);
  const background = (work: Promise<unknown>): void => ctx.waitUntil(work);
  const whose = () => ({ agentId: identity.find()?.id });
  const timers = createTimers(db, ctx.storage, clock, whose);
  const jobs = createJobs({ db, timers, clock, waitUntil: background, whose, object: ctx.id.toString() });
  /** Arms the watchdog, in the transaction that stores the work. */
  const armLoop = (): void => timers.setNoLater(loopTimer, clock.now() + watchdogMs);
  const feed = createFeedState(db);
  const spaces = createSpaces(db, feed);
  /** An agent whose removal is not done yet counts as suspended. */
  const isSuspended = (): boolean => runtime.isEnding === true || identity.find()?.suspended === true;
  const isClosed = (): boolean => {
    if (isSuspended()) return true;
    const spaceId = identity.find()?.compartmentSpaceId ?? null;
    return spaceId !== null && !spaces.isMember(spaceId);
  };
  const redactions = createRedactions({
    ...{ db, clock, timers, ctx },
    search: () => search,
    tellMinds: (redaction) => tellMinds({ db, jobs }, redaction),
    forgotten: (messageIds) => renewCarried(runtime, messageIds),
    summarise: () => timers.setNoLater(summariesTimer, clock.now()),
    isLive: (upTo) => journal.holdsUpTo(upTo),
    relist: (callId) => {
      if (!calls.get(callId)?.listed) return;
      calls.change(callId, { listed: false });
      background(Promise.resolve().then(() => callWork.wake()));
    },
  });
  const journal = createJournal(db, clock, redactions.clean);
  const runs = createRuns(db, clock);
  const windows = createWindows(db, runs, journal);
  const calls = createCalls(db, clock, timers, redactions.clean);
  const mcp = createMcp(db, {
    ...{ clock, timers, clean: redactions.clean, ...outsideOf({ identity, env, ids }) },
    servers: () => identity.get().config.mcp.servers,
    listsInUse: () => runs.windowsOf(calls.waitingRuns()).flatMap((id) => windows.window(id)?.toolset.mcpListId ?? []),
  });
  const roots = createRoots(db, clock);
  const outOfBudget = createOutOfBudget(db, clock);
  const ledger = createLedger(db, clock, (name) => {
    const [ordinal = 0, step = 0] = /^\d+:\d+$/.test(name) ? name.split(":").map(Number) : [];
    const run = ordinal > 0 && runs.at(ordinal);
    return run ? tokensOfStep(journal.ofRun(run), step) : undefined;
  });
  const endMind = (): void => background(end());
  const usage = createUsageReport({
    ...{ env, clock, timers },
    ...usageOf(identity, ledger, runs, () => ctx.storage.sql.databaseSize),
  });
  const booked = createBudget(ledger, { identity, env, jobs, clock, endMind });
  const budget: typeof booked = {
    ...booked,
    settle(...billed) {
      booked.settle(...billed);
      usage.noted();
    },
  };
  const shares = createShares(db, clock, identity, (id) => spaces.get(id)?.snapshot.confidential === true);
  const subscriptions = createBlockSubscriptions(ctx, env, timers, clock, shares);
  const blocks = createBlocks(db, clock, shares, (change) => {
    subscriptions.changed(change);
    if (change.value !== undefined) return;
    search.forgetBlock(change.row.label);
    tellCompartments({ db, jobs });
  });
  const around = { env, ids, clock, identity, blocks, shares, subscriptions };
  const sharedBlocks = createSharedBlocks(db, around, (ref) => search.forgetBlock(ref));
  const archival = createArchival(
    db,
    clock,
    (id, newest) => search.forget(id, newest),
    (entryId) => {
      const { id, compartmentId } = identity.get();
      return compartmentId !== null && isOwnedBy(entryId, id);
    },
  );
  const search: Search = new Search(db, {
    ...{ env, clock, timers, identity, spaces, journal, runs, budget, blocks, sharedBlocks, archival, redactions },
    isBuiltin: (toolName) => builtinTool(toolName) !== undefined,
    isSpeech: (toolName) => factsOf(toolName).speaks,
    ...{ deedText, messageIn, heardIn, resultIn },
    spaceOf: (messageId) => ids.ownerOf("msg", messageId),
    originName: (id) => originName(db, id),
    importedJournalEnd: () => importedJournalEnd(db),
  });
  const services: RunServices = {
    ...{
      env,
      clock,
      ids,
      identity,
      spaces,
      journal,
      runs,
      windows,
      calls,
      mcp,
      roots,
      ledger,
      budget,
      outOfBudget,
      usage,
    },
    guests: createGuestDesk(clock),
    ...{ blocks, sharedBlocks, shares, subscriptions, archival, search, feed, redactions },
    object: ctx,
    transaction: (work) => db.transaction(work),
    ...{ isClosed, isSuspended },
    inbox: createInbox(db, { clock, identity, spaces, roots, outOfBudget, armLoop }),
    dedupeKeys: createDedupeKeys(db, clock),
    waits: createWaits(db, clock),
    hooks: createHooks(db, clock),
    memories: createMemories(db, clock, feed.memories),
    goals: createGoals(db, clock, feed.goals),
    plans: createPlans(db, clock, timers, feed.plans),
    summaries: createSummaries(db, clock),
    tracer: createTracer(env, clock, () => identity.get(), background),
    ...{ armLoop, endMind },
    armCuts: () => armCuts(jobs, spaces.keptDays()),
    stopRun: (runId, why) => loop.abort(runId, why),
    tellCall: (callId) => callWork.tell(callId),
    wakeCalls: () => callWork.wake(),
    wantSummary: (subject, messages) => summaryWork.want(subject, messages),
  };
  const loop: Loop = createLoop(services, timers, background);
  const callWork: CallWork = createCallWork(services, {
    background,
    wakeLoop: () => loop.wake(),
    handOver: (row) => acceptToolResult(services, row),
  });
  const summaryWork: SummaryWork = createSummaryWork(services, timers, background);
  /** Background work rests while the workspace is suspended. `reconsider` wakes it. */
  const restingTimers = [callsTimer, summariesTimer, mcpTimer, searchTimer];
  const due = async (name: string): Promise<void> => {
    if (isSuspended() && restingTimers.includes(name)) return timers.set(name, clock.now() + suspendedLookMs);
    if (name === loopTimer) return loop.fired();
    if (name === jobsTimer) return jobs.onTimer();
    if (name === callsTimer) return callWork.fired();
    if (name === summariesTimer) return summaryWork.fired();
    // A server may take its time, and other timers do not wait for it.
    if (name === mcpTimer) return ctx.waitUntil(mcp.fetchDue());
    if (name === usageTimer) {
      await usage.onTimer();
      if (usage.fullBy() === undefined && outOfBudget.isFor("storage")) return runtime.reconsider();
      return;
    }
    if (name === redactionTimer) return redactions.fired();
    if (name === subscriptionsTimer) return subscriptions.onTimer();
    if (name === searchTimer) return ctx.waitUntil(search.work());
    // Plans wait until the agent comes back, or is resumed: that arms them.
    if (name === plansTimer && !isClosed()) services.plans.fire((plan, dueAt) => acceptPlan(services, plan, dueAt));
    if (name === heartbeatTimer && !isSuspended()) {
      const { heartbeat } = identity.get().config;
      db.transaction(() => beat(timers, heartbeat, clock.now(), (dueAt) => acceptHeartbeat(services, dueAt)));
    }
    await faultOnceStored("plan.after-fire", ctx);
    loop.wake();
  };
  const runtime: AgentRuntime = {
    ...{ db, services, timers, loop, jobs, due },
    reconsider: () => {
      loop.reconsider();
      summaryWork.reconsider();
    },
    resume: () => {
      calls.prolong();
      for (const name of restingTimers) if (timers.dueAt(name) !== undefined) timers.set(name, clock.now());
      runtime.reconsider();
    },
    stop: async () => {
      await tellNotes(runtime);
      summaryWork.stop();
      jobs.stop();
      await Promise.all([loop.stop(), callWork.stop()]);
      mcp.stop();
      subscriptions.closeAll();
      search.stop();
    },
  };
  handleCompartments(runtime);
  handleCuts(runtime);
  handleAudit(runtime);
  return runtime;
};
