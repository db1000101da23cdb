import { backoff } from "../../shared/backoff.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { settledWithin, unlessAborted } from "../../shared/timeouts.ts";
import type { Timers } from "../../timers/timers.ts";
import {
  cancelWaitMs,
  faultBackoffMs,
  longestFaultBackoffMs,
  rootMemoryMs,
  stallMs,
  tokensAgainMs,
  untilClaimed,
  watchdogMs,
} from "../bounds.ts";
import { settleWaits } from "../inbox/deliver.ts";
import { rootOf } from "../inbox/inbox.ts";
import { everybody } from "../inbox/out-of-budget.ts";
import { hasEnded, isActive, loggedRun, type RunRow } from "../runs.ts";
import { createBudgetNotices } from "./budget-notices.ts";
import { tellEnd, tellReceipts, tellWaiting } from "./channel.ts";
import { compactIfDue } from "./continuity/consciousness.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { takeFeed } from "./feed.ts";
import { finish } from "./finish.ts";
import { createGuestNotices } from "./guest-notices.ts";
import { firstWaking, holdBeyondHour, mayBeBeyondHour } from "./run-events.ts";
import { runLoop } from "./run-loop.ts";
import type { RunServices } from "./run-services.ts";

/**
 * The one loop that handles an agent's events, in the object beside its handlers.
 *
 * Invariants
 * 1. At most one drain is under way. It loops one run at a time, for a timeline agent up to `maxConcurrentRuns`, and
 *    each run in one `runLoop` (R7).
 * 2. While there is work, the timer `loop` is due within `watchdogMs`: a crash anywhere is followed by a wake (R1).
 * 3. Liveness is progress: a run without any for `stallMs` is interrupted. After the pause of a retryable fault it goes
 *    on from its journal.
 * 4. No run of a compartment begins before it was fed what is new in the open mind. While that cannot be reached, what
 *    woke the compartment waits.
 * 5. Only `cancel` throws to its caller; a drain that fails leaves the timer to try again.
 */
export const loopTimer = "loop";
const housekeepingEveryRuns = 100;
/** How many of the newest runs are told again after a restart: several may have ended side by side. */
const restartRuns = 10;

/** A run would begin, and the compartment was not fed for it. */
const unfed = "unfed";

/** Why that is so: a member of the workspace finds it in the compartment's activity. */
const unreached = {
  code: "unavailable",
  message: "the agent's open mind cannot be reached, so no run begins in this space; it is asked again",
} as const;

type Live = { controller: AbortController; progressAt: number; done: Promise<unknown> };

export type Loop = ReturnType<typeof createLoop>;

/** `background` keeps the object alive for work beside its handlers. */
export const createLoop = (services: RunServices, timers: Timers, background: (work: Promise<unknown>) => void) => {
  const { runs, identity, ledger, journal, inbox, waits, calls, outOfBudget, guests, clock } = services;
  /** The runs that are in their loop here, by their ids. */
  const live = new Map<string, Live>();
  let isDraining = false;
  let isStopped = false;
  /** The object started with work under way: spaces may not know of the runs that ended last. */
  let wasCut = timers.dueAt(loopTimer) !== undefined;
  const notices = createBudgetNotices(services, background);
  const guestNotices = createGuestNotices(services, background);
  const ending = new AbortController();
  /** A compartment's feed: whether it came just now; when it asks again, after how many failures in a row. */
  const fed = { justNow: false, againAt: 0, failures: 0 };
  /** Resolves when work comes while a drain waits for its runs. */
  let poke = Promise.withResolvers<void>();
  /** The runs that gave up their places while they wait for a person's tokens; how many of them want one again. */
  const aside = new Set<number>();
  let wanting = 0;
  /** Resolves when a place may be free. */
  let freed = Promise.withResolvers<void>();

  const tell = (run: RunRow, how: typeof tellReceipts = tellReceipts): void => {
    const failed = (error: unknown): void =>
      log.warn("receipts.failed", { ...loggedRun(services, run), error: String(error) });
    background(how(services, run).catch(failed));
  };

  const wake = (): void => {
    if (isStopped) return;
    poke.resolve();
    if (isDraining) return;
    isDraining = true;
    if (wasCut) for (const run of runs.page(undefined, restartRuns, undefined, true)) tell(run);
    wasCut = false;
    const work = drain().catch((error: unknown) => {
      isDraining = false;
      log.error("loop.failed", error, { agentId: identity.find()?.id });
      if (!isStopped) services.armLoop();
    });
    background(work);
  };

  const drain = async (): Promise<void> => {
    while (!isStopped) {
      poke = Promise.withResolvers<void>();
      if (isGuest()) guestNotices.look();
      for (let run = next(); run; run = next()) {
        services.armLoop();
        if (run === unfed) await askFeed();
        else start(run);
      }
      fed.justNow = false;
      notices.tell();
      if (isGuest() && live.size > 0) guestNotices.tell(false);
      if (live.size === 0) {
        // Set in the turn that found no work, so that work that comes a moment later begins a new drain.
        isDraining = false;
        return rest();
      }
      await Promise.race([poke.promise, ...[...live.values()].map(({ done }) => done)]);
    }
  };

  /** The run to loop next: one that was cut or whose pause is over, else a new one, if another may go on. */
  const next = (): RunRow | typeof unfed | undefined => {
    if (isStopped || services.isSuspended()) return undefined;
    const active = runs.active();
    const running = active.filter((run) => run.status === "running");
    const isDue = ({ resumeAt }: RunRow): boolean =>
      (resumeAt ?? 0) <= clock.now() || (resumeAt === untilClaimed && guests.isWanted());
    const cut = running.find((run) => !live.has(run.id) && isDue(run));
    if (cut) return cut;
    const { config } = identity.get();
    const continuity = continuityOf(config);
    const most = continuity.maxRuns(config.limits);
    // A run that waited for tokens has its place before others begin.
    const taken = placesTaken(running);
    if (taken + wanting >= most || taken + aside.size >= 2 * most) return undefined;
    const isAlone = (run: RunRow): boolean => continuityOf(run).runsAlone;
    const goneOn = running.some(isAlone) ? undefined : answered(active);
    if (goneOn) return goneOn;
    // A run that waits for a server is still under way.
    if (active.some(isAlone)) return undefined;
    // A new continuity begins once every run of the old one has ended.
    if (running.some((run) => run.continuity !== config.continuity)) return undefined;
    settleWaits(services);
    if (services.isClosed() || isAway()) return undefined;
    if (isFull()) return undefined;
    if (budgetResetsAt() !== undefined || hourFullUntil() !== undefined) return undefined;
    // Events that a run gave back, or that a new config freed, may be of somebody whose hour is full.
    const isBeyondHour = (): boolean => {
      const waking = firstWaking(services);
      return waking !== undefined && services.transaction(() => holdBeyondHour(services, rootOf(waking).by));
    };
    while (mayBeBeyondHour(services) && isBeyondHour());
    if (isCompartment() && !fed.justNow && inbox.nextWaking()) return fed.againAt > clock.now() ? undefined : unfed;
    fed.justNow = false;
    const begun = continuity.begin(services);
    if (begun) log.info("run.begun", { ...loggedRun(services, begun), events: begun.events.length });
    return begun;
  };

  const placesTaken = (running = runs.running()): number => running.filter((run) => !isHeld(run)).length - aside.size;

  const free = (): void => {
    freed.resolve();
    freed = Promise.withResolvers<void>();
    poke.resolve();
  };

  /** There is no room to store a run. Its events wait until there is, or for the next day. */
  const isFull = (): boolean => {
    if (services.usage.fullBy() === undefined) return false;
    if (inbox.nextWaking() && budgetResetsAt() === undefined) {
      services.transaction(() => inbox.spend(everybody, ledger.resetsAt(), [], "storage"));
      services.usage.noted();
    }
    return true;
  };

  /** A guest of which no program waits: what would begin a run waits for one. */
  const isAway = (): boolean => isGuest() && !guests.isWanted();
  const isGuest = (): boolean => identity.get().config.runtime === "guest";

  const isCompartment = (): boolean => identity.get().compartmentId !== null;

  const askFeed = async (): Promise<void> => {
    try {
      await services.sharedBlocks.follow(ending.signal);
      await services.redactions.during(() => takeFeed(services, ending.signal));
      if (identity.get().lastError?.code === unreached.code) background(tellWaiting(services));
      Object.assign(fed, { justNow: true, againAt: 0, failures: 0 });
    } catch (error) {
      if (isStopped) return;
      log.warn("feed.failed", { agentId: identity.mindId(), error: String(error) });
      fed.againAt = clock.now() + backoff(fed.failures, { firstMs: faultBackoffMs, longestMs: longestFaultBackoffMs });
      fed.failures += 1;
      identity.update({ lastError: { ...unreached, at: clock.now() } });
      background(tellWaiting(services, unreached.code));
    }
  };

  /** A resting run that has all that it waited for, or whose time is up. It goes on. */
  const answered = (active: RunRow[]): RunRow | undefined => {
    const goesOn = ({ status, ordinal }: RunRow): boolean =>
      (status === "waiting_reply" && !waits.isWaiting(ordinal)) || (status === "waiting_tool" && !calls.holds(ordinal));
    const heard = runs.those(calls.heard());
    const run = [...active, ...heard].find((each) => !live.has(each.id) && goesOn(each));
    return run && runs.goOn(run, journal.nextSeq());
  };

  const start = (run: RunRow): void => {
    const controller = new AbortController();
    const entry: Live = { controller, progressAt: clock.now(), done: Promise.resolve() };
    const progressed = (): void => {
      entry.progressAt = clock.now();
    };
    /** Others may have its place meanwhile, where it waits for the tokens of one person. */
    const waitsFor = (person: string | undefined): void => {
      const one = person === everybody ? undefined : person;
      if (one !== undefined && !aside.has(run.ordinal)) {
        aside.add(run.ordinal);
        free();
      }
      if (outOfBudget.waiting.get(run.ordinal) === one) return;
      if (one === undefined) outOfBudget.waiting.delete(run.ordinal);
      else outOfBudget.waiting.set(run.ordinal, one);
      poke.resolve();
    };
    const place = async (): Promise<void> => {
      if (!aside.has(run.ordinal)) return;
      wanting += 1;
      try {
        const { config } = identity.get();
        while (placesTaken() >= continuityOf(run).maxRuns(config.limits)) {
          await unlessAborted(controller.signal, settledWithin(tokensAgainMs, freed.promise));
          progressed();
        }
        aside.delete(run.ordinal);
      } finally {
        wanting -= 1;
      }
    };
    // From here on, ending the run stops this loop.
    live.set(run.id, entry);
    journal.hold(run.ordinal);
    if (isGuest()) guests.sit(run);
    entry.done = faultOnceStored("agent.after-take", services.object)
      .then(() => services.blocks.storeRendered())
      .then(() =>
        runLoop({ services, run, signal: controller.signal, progressed, waitsFor, place }, (reason) =>
          controller.abort(reason),
        ),
      )
      .then((ended) => {
        if (ended && !isStopped) tidy(ended);
      })
      .catch((error: unknown) => {
        log.error("run.failed", error, loggedRun(services, run));
        // The watchdog retries it: retried at once, it would fail at once again.
        if (!isStopped) runs.update(run.ordinal, { resumeAt: clock.now() + watchdogMs });
      })
      .finally(() => {
        live.delete(run.id);
        guests.left(run.ordinal);
        outOfBudget.waiting.delete(run.ordinal);
        aside.delete(run.ordinal);
        journal.release(run.ordinal);
        free();
      });
  };

  /** The run has ended: what is kept stays within its bounds. */
  const tidy = (run: RunRow): void => {
    services.search.noticed();
    if (run.kept) compactIfDue(services, run);
    if (run.ordinal % housekeepingEveryRuns > 0) return;
    services.roots.forgetOld();
    services.dedupeKeys.forgetBefore(clock.now() - rootMemoryMs);
  };

  /** Set while as many runs began in the last hour as may. What waits for one goes on then. */
  const hourFullUntil = (): number | undefined => runs.hourFullUntil(identity.get().config.limits.maxRunsPerHour);

  const rest = (): void => {
    const full = hourFullUntil();
    const hourEndsAt = full !== undefined && inbox.nextWaking() ? full : undefined;
    const feedsAt = fed.againAt > clock.now() ? fed.againAt : undefined;
    const guestAt = isGuest() ? guestNotices.atRest(isAway()) : undefined;
    const bounds = isAway() ? [guestAt] : [inbox.nextRetryAt(), budgetResetsAt(), hourEndsAt, feedsAt];
    // Where no run may begin, those that began still end.
    const beginnings = services.isClosed() ? [] : [notices.dueAt(), ...bounds];
    const due = [...beginnings, waits.nextDueAt(), calls.nextDueAt()];
    const resumed = runs.running().map(({ resumeAt }) => (resumeAt === untilClaimed ? null : resumeAt));
    // Nothing is due while it is suspended: who resumes it wakes it.
    const awaited = services.isSuspended() ? [] : [...due, ...resumed];
    const times = awaited.filter((at) => typeof at === "number");
    const first = Math.min(...times);
    const now = clock.now();
    if (times.length === 0) timers.clear(loopTimer);
    // A due run that finds no free slot is retried after `watchdogMs`, not at once.
    else timers.set(loopTimer, first > now ? first : now + watchdogMs);
  };

  /** Set while the day's budget is spent: a step did not fit it today, and `reconsider` was not called since. */
  const budgetResetsAt = (): number | undefined => outOfBudget.until(everybody);

  /** It pauses since one person's share is used up, and takes no other run's place. */
  const isHeld = ({ resumeAt }: RunRow): boolean => resumeAt === ledger.resetsAt() && budgetResetsAt() === undefined;

  /** Stops a run's loop, if one is under way, and waits until it has ended. */
  const abort = async (runId: string, why: string): Promise<void> => {
    const entry = live.get(runId);
    if (!entry) {
      // No loop of it is under way that would tell the spaces.
      const run = runs.get(runId);
      if (run && !isActive(run)) tell(run, tellEnd);
      return;
    }
    entry.controller.abort(new ColloquyError("run_canceled", why));
    await settledWithin(cancelWaitMs, entry.done);
  };

  return {
    wake,
    abort,

    /** The watchdog fired: interrupts stalled runs, and wakes. */
    fired(): void {
      const now = clock.now();
      timers.set(loopTimer, now + watchdogMs);
      guests.look();
      for (const run of runs.running()) {
        const entry = live.get(run.id);
        if (entry) runs.noteWork(run);
        if (!entry || now - entry.progressAt <= stallMs) continue;
        log.warn("run.stalled", loggedRun(services, run));
        const message = `the run made no progress for longer than stallMs (${stallMs})`;
        entry.controller.abort(new ColloquyError("model_stalled", message));
      }
      wake();
    },

    /** The config or a secret changed: paused runs may go on at once. */
    reconsider(): void {
      for (const { ordinal, resumeAt } of runs.running()) if (resumeAt) runs.update(ordinal, { resumeAt: null });
      // The new config may allow a step that the budget refused.
      if (budgetResetsAt() !== undefined) identity.update({ lastError: null });
      services.transaction(() => inbox.free());
      fed.againAt = 0;
      wake();
    },

    /** Ends an active run at once. Resolves when nothing more of it can appear (R5). */
    async cancel(runId: string): Promise<RunRow> {
      const run = runs.get(runId);
      if (!run) throw new ColloquyError("not_found", "there is no such run");
      if (!isActive(run)) throw hasEnded(run, `GET /v1/agents/${identity.get().id}/runs/${runId}`);
      await abort(runId, "the run was canceled");
      let ended = runs.get(runId) ?? run;
      if (ended.completedAt === null) {
        ended = finish(services, ended, { kind: "canceled" });
        services.tracer.flush();
        tell(ended, tellEnd);
      }
      wake();
      return ended;
    },

    /** The agent is being deleted: stops all runs, and never wakes again. */
    async stop(): Promise<void> {
      isStopped = true;
      ending.abort(new ColloquyError("run_canceled", "the agent was deleted"));
      await Promise.all([...live.keys()].map((runId) => abort(runId, "the agent was deleted")));
    },

    /** Times in milliseconds since the epoch. */
    state() {
      const running = runs.running().filter((run) => !isHeld(run));
      const [first] = running.toSorted((one, other) => (one.resumeAt ?? 0) - (other.resumeAt ?? 0));
      if (!first) {
        const resumesAt = budgetResetsAt();
        if (fed.againAt > clock.now()) return { state: "backing_off", resumesAt: fed.againAt } as const;
        return { state: resumesAt === undefined ? "idle" : "budget_exhausted", resumesAt } as const;
      }
      const { id: runId, startedAt, firstFaultAt, resumeAt: resumesAt } = first;
      if (resumesAt === null || resumesAt <= clock.now()) return { state: "running", runId, since: startedAt } as const;
      if (resumesAt === untilClaimed) return { state: "backing_off", runId, since: startedAt } as const;
      const { lastError } = identity.get();
      return lastError?.code === "budget_exhausted"
        ? ({ state: "budget_exhausted", since: lastError.at, resumesAt } as const)
        : ({ state: "backing_off", runId, since: firstFaultAt ?? startedAt, resumesAt } as const);
    },
  };
};
