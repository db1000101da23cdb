import { backoff, type Pauses } from "../../shared/backoff.ts";
import { firstBackoffMs, maxBackoffMs, routerRetryMs } from "../bounds.ts";

const pauses: Pauses = { firstMs: firstBackoffMs, longestMs: maxBackoffMs };

/**
 * Stops asking the router's model for a while after a passing fault. All messages ask one model, so they share it.
 *
 * Invariants
 * 1. Faults of concurrent asks count as one: only the first of them makes the next pause longer.
 * 2. No message waits longer than `routerRetryMs`, and no outage is waited out longer. While a model is down for long,
 *    only messages from the outage's beginning wait for it.
 * 3. It lives in memory only. After a restart it is closed; a message's own age still limits its wait.
 */
export class CircuitBreaker {
  #outage: { since: number; openUntil: number; faults: number } | undefined;

  /** Nothing is asked before this time. */
  openUntil(): number {
    return this.#outage?.openUntil ?? Number.NEGATIVE_INFINITY;
  }

  /** The model answered, whatever the answer was. */
  close(): void {
    this.#outage = undefined;
  }

  /** An ask about a message posted at `postedAt` met a passing fault. Answers whether to ask again after the pause. */
  opensFor(now: number, postedAt: number, retryAfterMs?: number): boolean {
    const known = this.#outage;
    const goesOn = known !== undefined && now - known.openUntil < routerRetryMs;
    const { since, openUntil, faults } = goesOn ? known : { since: now, openUntil: now, faults: 0 };
    const isOpen = goesOn && now < openUntil;
    const until = isOpen ? Math.max(openUntil, now + (retryAfterMs ?? 0)) : now + backoff(faults, pauses, retryAfterMs);
    const asksAgain = until <= Math.min(since, postedAt) + routerRetryMs;
    // A pause that this message does not wait for delays no other message either.
    this.#outage = {
      since,
      openUntil: asksAgain ? until : Math.max(openUntil, now),
      faults: isOpen ? faults : faults + 1,
    };
    return asksAgain;
  }
}
