import { classifyFailure } from "../../models/failure.ts";
import { backoff, type Pauses } from "../../shared/backoff.ts";
import { log } from "../../shared/log.ts";
import type { Timers } from "../../timers/timers.ts";
import { summaryFirstRetryMs, summaryLongestRetryMs, watchdogMs } from "../bounds.ts";
import type { RunServices } from "../run/run-services.ts";
import { ownCycles, type SummaryRow } from "../run/summaries.ts";
import { foldCycles, foldMessages } from "./fold.ts";

/**
 * Has summaries written in the agent's own time, chunk after chunk.
 *
 * Invariants
 * 1. No run waits for it, and none is held up by its failures.
 * 2. While a summary is wanted the timer `summaries` is set: after a crash it goes on by itself, from the last chunk that
 *    was folded.
 * 3. One question is asked at a time.
 */
export const summariesTimer = "summaries";

const pauses: Pauses = { firstMs: summaryFirstRetryMs, longestMs: summaryLongestRetryMs };

export class SummaryWork {
  readonly #services: RunServices;
  readonly #timers: Timers;
  /** Keeps the object alive for work in the background. */
  readonly #background: (work: Promise<unknown>) => void;
  readonly #stop = new AbortController();
  #running = false;

  constructor(services: RunServices, timers: Timers, background: (work: Promise<unknown>) => void) {
    this.#services = services;
    this.#timers = timers;
    this.#background = background;
  }

  /** Call it in the transaction that wants the summary. The work begins after it. */
  want(subject: string, { from, upTo } = { from: 0, upTo: 0 }): void {
    this.#services.summaries.want(subject, upTo, from);
    this.#timers.setNoLater(summariesTimer, this.#services.clock.now() + watchdogMs);
    this.#background(Promise.resolve().then(() => this.#begin()));
  }

  /** The config or a secret changed: failed summaries are tried again now. */
  reconsider(): void {
    this.#services.summaries.reconsider();
    if (this.#services.summaries.next()) this.fired();
  }

  /** The timer `summaries` went off. */
  fired(): void {
    this.#timers.set(summariesTimer, this.#services.clock.now() + watchdogMs);
    this.#background(this.#begin());
  }

  /** The agent is being deleted. */
  stop(): void {
    this.#stop.abort();
  }

  async #begin(): Promise<void> {
    if (this.#running || this.#stop.signal.aborted) return;
    this.#running = true;
    try {
      await this.#work();
    } finally {
      this.#running = false;
    }
  }

  async #work(): Promise<void> {
    const { summaries, clock } = this.#services;
    for (let row = summaries.next(); row; row = summaries.next()) {
      const { tryAt } = row;
      if (tryAt !== null && tryAt > clock.now()) return this.#timers.set(summariesTimer, tryAt);
      await this.#fold(row);
      if (this.#stop.signal.aborted) return;
    }
    this.#timers.clear(summariesTimer);
  }

  async #fold(row: SummaryRow): Promise<void> {
    const { summaries, identity, ledger, clock } = this.#services;
    const { signal } = this.#stop;
    const { config, id: agentId } = identity.get();
    const { subject, failures } = row;
    try {
      if (config.context.compaction.strategy !== "recursive_summarization") return summaries.done(subject);
      await (subject === ownCycles ? foldCycles : foldMessages)(this.#services, row, signal);
    } catch (error) {
      if (signal.aborted) return;
      const { code, message, retryAfterMs } = classifyFailure(error);
      const paused = clock.now() + backoff(failures, pauses, retryAfterMs);
      const tryAt = code === "budget_exhausted" ? ledger.resetsAt() : paused;
      summaries.update(subject, { failures: failures + 1, lastError: { code, message }, tryAt });
      log.warn("summary.failed", { agentId, subject, code, reason: message });
    }
  }
}
