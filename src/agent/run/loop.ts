import { ColloquyError } from "../../shared/errors.ts";
import { faultOnceStored } from "../../shared/fault.ts";
import { log } from "../../shared/log.ts";
import { settledWithin } from "../../shared/timeouts.ts";
import type { Timers } from "../../timers/timers.ts";
import { cancelWaitMs, rootMemoryMs, stallMs, watchdogMs } from "../bounds.ts";
import { isActive, loggedRun, type RunRow } from "../runs.ts";
import { runsToTell, tellReceipts } from "./channels.ts";
import { compactIfDue } from "./continuity/consciousness.ts";
import { continuityOf } from "./continuity/continuities.ts";
import { finish } from "./finish.ts";
import { Interrupted, runLoop } from "./run-loop.ts";
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
 * 4. Nothing here throws to its caller; a drain that fails leaves the timer to try again.
 */
export const loopTimer = "loop";
const housekeepingEveryRuns = 100;

type Live = { controller: AbortController; progressAt: number; done: Promise<unknown> };

/** Times in milliseconds since the epoch. */
type LoopState = {
  state: "idle" | "running" | "backing_off" | "budget_exhausted";
  runId?: string;
  since?: number;
  resumesAt?: number;
};

export class Loop {
  readonly #services: RunServices;
  readonly #timers: Timers;
  /** Keeps the object alive for work in the background. */
  readonly #background: (work: Promise<unknown>) => void;
  readonly #live = new Map<string, Live>();
  #draining = false;
  /** The object started with work under way: spaces may not know of the runs that ended last. */
  #cut: boolean;
  /** Resolves when work comes while a drain waits for its runs. */
  #poke = Promise.withResolvers<void>();
  #stopped = false;

  constructor(services: RunServices, timers: Timers, background: (work: Promise<unknown>) => void) {
    this.#services = services;
    this.#timers = timers;
    this.#background = background;
    this.#cut = timers.dueAt(loopTimer) !== undefined;
  }

  /** Arms the watchdog, in the transaction that stores the work. */
  arm(): void {
    this.#timers.setNoLater(loopTimer, this.#services.clock.now() + watchdogMs);
  }

  wake(): void {
    if (this.#stopped) return;
    this.#poke.resolve();
    if (this.#draining) return;
    this.#draining = true;
    if (this.#cut) for (const run of runsToTell(this.#services)) this.#tell(run);
    this.#cut = false;
    const work = this.#drain().catch((error: unknown) => {
      this.#draining = false;
      log.error("loop.failed", error, { agentId: this.#services.identity.find()?.id });
      if (!this.#stopped) this.arm();
    });
    this.#background(work);
  }

  /** The watchdog fired: interrupts stalled runs, and wakes. */
  fired(): void {
    const now = this.#services.clock.now();
    this.#timers.set(loopTimer, now + watchdogMs);
    for (const run of this.#services.runs.running()) {
      const live = this.#live.get(run.id);
      if (live) this.#services.runs.noteWork(run);
      if (!live || now - live.progressAt <= stallMs) continue;
      log.warn("run.stalled", loggedRun(this.#services, run));
      live.controller.abort(new Interrupted(`the run made no progress for longer than stallMs (${stallMs})`));
    }
    this.wake();
  }

  /** The config or a secret changed: paused runs may go on at once. */
  reconsider(): void {
    for (const run of this.#services.runs.running()) {
      if (run.resumeAt) this.#services.runs.update(run.ordinal, { resumeAt: null });
    }
    // The new config may allow a step that the budget refused.
    if (this.#budgetResetsAt() !== undefined) this.#services.identity.update({ lastError: null });
    this.wake();
  }

  /** Ends an active run at once. Resolves when nothing more of it can appear (R5). */
  async cancel(runId: string): Promise<RunRow> {
    const { runs, tracer } = this.#services;
    const run = runs.get(runId);
    if (!run) throw new ColloquyError("not_found", "there is no such run");
    if (!isActive(run)) throw new ColloquyError("conflict", `the run has ended: it is ${run.status}`);
    await this.abort(runId, "the run was canceled");
    let ended = runs.get(runId) ?? run;
    if (ended.completedAt === null) {
      ended = finish(this.#services, ended, { kind: "canceled" });
      tracer.flush();
      this.#tell(ended);
    }
    this.wake();
    return ended;
  }

  #tell(run: RunRow): void {
    const failed = (error: unknown): void =>
      log.warn("receipts.failed", { ...loggedRun(this.#services, run), error: String(error) });
    this.#background(tellReceipts(this.#services, run).catch(failed));
  }

  /** Stops a run's loop, if one is under way, and waits until it has ended. */
  async abort(runId: string, why: string): Promise<void> {
    const live = this.#live.get(runId);
    if (!live) {
      // No loop of it is under way that would tell the spaces.
      const run = this.#services.runs.get(runId);
      if (run && run.status !== "running") this.#tell(run);
      return;
    }
    live.controller.abort(new ColloquyError("run_canceled", why));
    await settledWithin(cancelWaitMs, live.done);
  }

  /** The agent is being deleted: stops all runs, and never wakes again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#live.keys()].map((runId) => this.abort(runId, "the agent was deleted")));
  }

  state(): LoopState {
    const { runs, clock, identity } = this.#services;
    const running = runs.running().toSorted((one, other) => (one.resumeAt ?? 0) - (other.resumeAt ?? 0));
    const [first] = running;
    if (!first) {
      const resumesAt = this.#budgetResetsAt();
      return resumesAt === undefined ? { state: "idle" } : { state: "budget_exhausted", resumesAt };
    }
    const { id: runId, startedAt, firstFaultAt, resumeAt } = first;
    if (resumeAt === null || resumeAt <= clock.now()) return { state: "running", runId, since: startedAt };
    const { lastError } = identity.get();
    return lastError?.code === "budget_exhausted"
      ? { state: "budget_exhausted", since: lastError.at, resumesAt: resumeAt }
      : { state: "backing_off", runId, since: firstFaultAt ?? startedAt, resumesAt: resumeAt };
  }

  async #drain(): Promise<void> {
    while (!this.#stopped) {
      this.#poke = Promise.withResolvers<void>();
      for (let run = this.#next(); run; run = this.#next()) {
        this.arm();
        this.#start(run);
      }
      if (this.#live.size === 0) {
        // Set in the turn that found no work, so that work that comes a moment later begins a new drain.
        this.#draining = false;
        return this.#rest();
      }
      await Promise.race([this.#poke.promise, ...[...this.#live.values()].map((live) => live.done)]);
    }
  }

  /** The run to loop next: one that was cut or whose pause is over, else a new one, if another may go on. */
  #next(): RunRow | undefined {
    const now = this.#services.clock.now();
    const { newest, active } = this.#services.runs.front();
    const running = active.filter((run) => run.status === "running");
    const cut = running.find((run) => !this.#live.has(run.id) && (run.resumeAt ?? 0) <= now);
    if (cut) return cut;
    const { config } = this.#services.identity.get();
    const continuity = continuityOf(config);
    if (running.length >= continuity.maxRuns(config.limits)) return undefined;
    const isAlone = (run: RunRow): boolean => continuityOf(run).runsAlone;
    const answered = running.some(isAlone) ? undefined : this.#answered(active);
    if (answered) return answered;
    // A run that waits for a server is still under way.
    if (active.some(isAlone)) return undefined;
    // A new continuity begins once every run of the old one has ended.
    if (running.some((run) => run.continuity !== config.continuity)) return undefined;
    if (this.#budgetResetsAt(newest) !== undefined) return undefined;
    const begun = continuity.begin(this.#services, newest);
    if (begun) log.info("run.begun", { ...loggedRun(this.#services, begun), events: begun.events.length });
    return begun;
  }

  /** A resting run that has all that it waited for, or whose time is up. It goes on. */
  #answered(active: RunRow[]): RunRow | undefined {
    const { runs, waits, calls, journal } = this.#services;
    const goesOn = ({ status, ordinal }: RunRow): boolean =>
      (status === "waiting_reply" && !waits.isWaiting(ordinal)) || (status === "waiting_tool" && !calls.holds(ordinal));
    const heard = runs.those(calls.heard());
    const run = [...active, ...heard].find((each) => !this.#live.has(each.id) && goesOn(each));
    return run && runs.goOn(run, journal.nextSeq());
  }

  #start(run: RunRow): void {
    const services = this.#services;
    const controller = new AbortController();
    const live: Live = { controller, progressAt: services.clock.now(), done: Promise.resolve() };
    const progressed = (): void => {
      live.progressAt = services.clock.now();
    };
    // From here on, ending the run stops this loop.
    this.#live.set(run.id, live);
    services.journal.hold(run.ordinal);
    live.done = faultOnceStored("agent.after-take", services.object)
      .then(() => runLoop({ services, run, signal: controller.signal, progressed }))
      .then((ended) => {
        if (ended && !this.#stopped) this.#after(ended);
      })
      .catch((error: unknown) => {
        log.error("run.failed", error, loggedRun(services, run));
        // The watchdog retries it: retried at once, it would fail at once again.
        if (!this.#stopped) services.runs.update(run.ordinal, { resumeAt: services.clock.now() + watchdogMs });
      })
      .finally(() => {
        this.#live.delete(run.id);
        services.journal.release(run.ordinal);
      });
  }

  #after(run: RunRow): void {
    const { roots, dedupeKeys, clock } = this.#services;
    if (run.kept) compactIfDue(this.#services, run);
    if (run.ordinal % housekeepingEveryRuns > 0) return;
    roots.forgetOld();
    dedupeKeys.forgetBefore(clock.now() - rootMemoryMs);
  }

  #rest(): void {
    const { runs, inbox, waits, calls, clock } = this.#services;
    const due = [inbox.nextRetryAt(), waits.nextDueAt(), calls.nextDueAt(), this.#budgetResetsAt()];
    const times = [...due, ...runs.running().map(({ resumeAt }) => resumeAt)].filter((at) => typeof at === "number");
    const next = Math.min(...times);
    const now = clock.now();
    if (times.length === 0) this.#timers.clear(loopTimer);
    // A due run that finds no free slot is retried after `watchdogMs`, not at once.
    else this.#timers.set(loopTimer, next > now ? next : now + watchdogMs);
  }

  /** Set while the day's budget is spent: it ended the newest run today, and `reconsider` was not called since. */
  #budgetResetsAt(newest = this.#services.runs.newest()): number | undefined {
    const { ledger, identity } = this.#services;
    if (newest?.error?.code !== "budget_exhausted" || newest.completedAt === null) return undefined;
    const isToday = ledger.dayOf(newest.completedAt) === ledger.today();
    return isToday && identity.get().lastError !== null ? ledger.resetsAt() : undefined;
  }
}
