import { maxDeltaIntervalMs, minDeltaIntervalMs } from "../bounds.ts";

const measurements = 9;
/** A timer is late by this much even where nothing was sent. */
const timerLateMs = 1;

/**
 * How far apart the frames of streams are: as close as the machine keeps up with. Sending takes about half of the time.
 * Pure: measurements are handed in.
 */
export class Pace {
  /** What the last frames to all sockets cost, in milliseconds. */
  #costs: number[] = [];

  sent(costMs: number): void {
    this.#costs = [...this.#costs.slice(1 - measurements), costMs];
  }

  /** The shortest time between two frames of one stream while `streams` are open. */
  intervalMs(streams: number): number {
    // The lower quartile: chance only adds to a measurement, and the lower ones are nearer to the cost.
    const costMs = this.#costs.toSorted((one, other) => one - other)[this.#costs.length >> 2] ?? 0;
    return Math.min(maxDeltaIntervalMs, Math.max(minDeltaIntervalMs, 2 * (costMs - timerLateMs) * streams));
  }
}

/**
 * Gathers a stream's deltas into few frames: the first goes out at once, then at most one in each interval. Pure:
 * time is handed in.
 *
 * Invariants
 * 1. What was taken, in order, is what was pushed; a final `take` leaves nothing behind.
 * 2. A frame never ends inside a surrogate pair, whatever the model's deltas do, unless it is the last.
 */
export class Coalescer {
  #pending = "";
  #takenAt = Number.NEGATIVE_INFINITY;

  push(text: string): void {
    this.#pending += text;
  }

  /** Milliseconds until the next frame may go out; undefined when there is nothing to send. */
  waitMs(now: number, intervalMs: number): number | undefined {
    if (this.#pending.length === 0 || (this.#pending.length === 1 && endsInside(this.#pending))) return undefined;
    return Math.max(0, this.#takenAt + intervalMs - now);
  }

  /** The text of the next frame, empty if there is none. */
  take(now: number, final = false): string {
    const held = !final && endsInside(this.#pending) ? 1 : 0;
    const text = this.#pending.slice(0, this.#pending.length - held);
    this.#pending = this.#pending.slice(text.length);
    if (text.length > 0) this.#takenAt = now;
    return text;
  }
}

const endsInside = (text: string): boolean => {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
};
