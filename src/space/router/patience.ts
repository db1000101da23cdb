import { backoff, type Pauses } from "../../shared/backoff.ts";
import { firstBackoffMs, maxBackoffMs, routerPatienceMs } from "../bounds.ts";

const pauses: Pauses = { firstMs: firstBackoffMs, longestMs: maxBackoffMs };

/**
 * For how long the router's model is let be after a passing fault. It is one model for all messages: they rest together.
 *
 * Invariants
 * 1. Faults of asks that went on beside each other are one: only the first of them makes the next rest longer.
 * 2. Neither a message nor a trouble of the model is waited out longer than `routerPatienceMs`: while a model is out of
 *    order for long, only what was said when it began waits for it.
 * 3. Memory only: a space that wakes anew begins without a trouble; what a message waited for is told by its own time.
 */
export class Patience {
  #trouble: { since: number; restsUntil: number; faults: number } | undefined;

  /** Until when nothing is asked. */
  restsUntil(): number {
    return this.#trouble?.restsUntil ?? Number.NEGATIVE_INFINITY;
  }

  /** The model answered, whatever it was. */
  answered(): void {
    this.#trouble = undefined;
  }

  /** A passing fault of an ask about a message posted at `postedAt`: whether it is to be asked about again after the rest. */
  isLeftAfterFault(now: number, postedAt: number, retryAfterMs?: number): boolean {
    const known = this.#trouble;
    const goesOn = known !== undefined && now - known.restsUntil < routerPatienceMs;
    const { since, restsUntil, faults } = goesOn ? known : { since: now, restsUntil: now, faults: 0 };
    const rests = goesOn && now < restsUntil;
    const until = rests ? Math.max(restsUntil, now + (retryAfterMs ?? 0)) : now + backoff(faults, pauses, retryAfterMs);
    const isLeft = until <= Math.min(since, postedAt) + routerPatienceMs;
    // Who is not waited for holds up nobody else.
    this.#trouble = {
      since,
      restsUntil: isLeft ? until : Math.max(restsUntil, now),
      faults: rests ? faults : faults + 1,
    };
    return isLeft;
  }
}
