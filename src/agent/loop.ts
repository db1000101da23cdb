import { ColloquyError } from "../shared/errors.ts";
import { faultOnceStored } from "../shared/fault.ts";
import { log } from "../shared/log.ts";
import { settledWithin } from "../shared/within.ts";
import type { Timers } from "../timers/timers.ts";
import { deadmanMs, rootMemoryMs, stallMs } from "./bounds.ts";
import type { RunRow } from "./runs.ts";
import { begin } from "./think/begin.ts";
import { compactIfDue } from "./think/compact.ts";
import { finish } from "./think/finish.ts";
import type { Parts } from "./think/parts.ts";
import { Interrupted, think } from "./think/think.ts";

/**
 * The one loop that handles an agent's events, in the object beside its handlers.
 *
 * Invariants
 * 1. At most one drain is under way, and it thinks one run at a time (R7).
 * 2. While there is work, the timer `loop` is due within `deadmanMs`: a crash anywhere is followed by a wake (R1).
 * 3. Liveness is progress: a run without any for `stallMs` is taken from its think; after the pause of a passing
 *    fault it goes on from its journal.
 * 4. Nothing here throws to its caller; a drain that fails leaves the timer to try again.
 */
export const loopTimer = "loop";
const cancelWaitMs = 10_000;
const housekeepingEveryRuns = 100;

type Live = { runId: string; controller: AbortController; progressAt: number; done: Promise<unknown> };

export type LoopState =
  | { state: "idle" }
  | { state: "running"; runId: string; since: number }
  | { state: "backing_off"; runId: string; nextDueAt: number }
  | { state: "budget_exhausted"; nextDueAt: number };

export class Loop {
  readonly #parts: Parts;
  readonly #timers: Timers;
  /** Keeps the object alive for work in the background. */
  readonly #background: (work: Promise<unknown>) => void;
  #draining = false;
  #live: Live | undefined;
  #stopped = false;

  constructor(parts: Parts, timers: Timers, background: (work: Promise<unknown>) => void) {
    this.#parts = parts;
    this.#timers = timers;
    this.#background = background;
  }

  /** Something may be to do: arms the deadman, in the transaction that stores the work. */
  arm(): void {
    this.#timers.setNoLater(loopTimer, this.#parts.clock.now() + deadmanMs);
  }

  wake(): void {
    if (this.#draining || this.#stopped) return;
    this.#draining = true;
    const work = this.#drain()
      .catch((error: unknown) => {
        log.error("loop.failed", error);
        if (!this.#stopped) this.arm();
      })
      .finally(() => {
        this.#draining = false;
      });
    this.#background(work);
  }

  /** The deadman fired: look whether the run still moves, or wake. */
  fired(): void {
    const now = this.#parts.clock.now();
    this.#timers.set(loopTimer, now + deadmanMs);
    if (this.#live && now - this.#live.progressAt > stallMs) {
      log.warn("run.stalled", { runId: this.#live.runId });
      this.#live.controller.abort(new Interrupted(`the run made no progress for ${stallMs} ms`));
    }
    this.wake();
  }

  /** Something changed that may let it go on at once: its config, a secret. */
  reconsider(): void {
    const run = this.#parts.runs.running();
    if (run?.resumeAt) this.#parts.runs.update(run.ordinal, { resumeAt: null });
    this.wake();
  }

  /** Ends a running run at once; resolves when nothing more of it can appear (R5). */
  async cancel(runId: string): Promise<RunRow> {
    const run = this.#parts.runs.get(runId);
    if (!run) throw new ColloquyError("not_found", "there is no such run");
    if (run.status !== "running") throw new ColloquyError("conflict", `the run has ended: it is ${run.status}`);
    const live = this.#live;
    if (live?.runId === runId) {
      live.controller.abort(new ColloquyError("run_canceled", "the run was canceled"));
      await settledWithin(cancelWaitMs, live.done);
    }
    const after = this.#parts.runs.get(runId) ?? run;
    const ended = after.status === "running" ? finish(this.#parts, after, { kind: "canceled" }) : after;
    this.wake();
    return ended;
  }

  /** The agent is being deleted: ends what runs, and never wakes again. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const live = this.#live;
    if (!live) return;
    live.controller.abort(new ColloquyError("run_canceled", "the agent was deleted"));
    await settledWithin(cancelWaitMs, live.done);
  }

  state(): LoopState {
    const run = this.#parts.runs.running();
    const now = this.#parts.clock.now();
    if (run?.resumeAt && run.resumeAt > now) return { state: "backing_off", runId: run.id, nextDueAt: run.resumeAt };
    if (run) return { state: "running", runId: run.id, since: run.startedAt };
    const budget = this.#budgetResetsAt();
    return budget === undefined ? { state: "idle" } : { state: "budget_exhausted", nextDueAt: budget };
  }

  async #drain(): Promise<void> {
    while (!this.#stopped) {
      const run = this.#next();
      if (!run) return this.#rest();
      this.arm();
      await faultOnceStored("agent.after-take", this.#parts.object);
      await this.#think(run);
    }
  }

  #next(): RunRow | undefined {
    const now = this.#parts.clock.now();
    const running = this.#parts.runs.running();
    if (running) return (running.resumeAt ?? 0) > now ? undefined : running;
    return this.#budgetResetsAt() === undefined ? begin(this.#parts) : undefined;
  }

  async #think(run: RunRow): Promise<void> {
    const controller = new AbortController();
    const live: Live = { runId: run.id, controller, progressAt: this.#parts.clock.now(), done: Promise.resolve() };
    const thinking = think(this.#parts, run, controller.signal, () => {
      live.progressAt = this.#parts.clock.now();
    });
    live.done = thinking.catch(() => undefined);
    this.#live = live;
    try {
      const end = await thinking;
      if (end.kind === "ended") this.#after(end.run);
    } finally {
      this.#live = undefined;
    }
  }

  #after(run: RunRow): void {
    const parts = this.#parts;
    if (run.kept) compactIfDue(parts, run);
    if (run.ordinal % housekeepingEveryRuns === 0) {
      parts.roots.forgetOld();
      parts.inbox.forgetSeenBefore(parts.clock.now() - rootMemoryMs);
    }
  }

  /** Nothing to do now: the timer is set for what is due next, or put away. */
  #rest(): void {
    const due = [this.#parts.runs.running()?.resumeAt, this.#parts.inbox.nextRetryAt(), this.#budgetResetsAt()].filter(
      (at): at is number => typeof at === "number",
    );
    if (due.length === 0) this.#timers.clear(loopTimer);
    else this.#timers.set(loopTimer, Math.min(...due));
  }

  /** Set while the day's budget is spent: the newest run ended by it today, and the config has not changed since. */
  #budgetResetsAt(): number | undefined {
    const { runs, ledger, identity } = this.#parts;
    const newest = runs.newest();
    if (newest?.error?.code !== "budget_exhausted" || newest.completedAt === null) return undefined;
    const isToday = ledger.dayOf(newest.completedAt) === ledger.today();
    return isToday && identity.get().updatedAt <= newest.completedAt ? ledger.resetsAt() : undefined;
  }
}
