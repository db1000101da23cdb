/** Counts what happens in a window of time that begins with the first of it. Memory only: a sleep takes longer. */
export class RateWindow {
  readonly #most: number;
  readonly #windowMs: number;
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Counts one more; false once it is more than `most` in this window. */
  admits(now: number): boolean {
    if (this.isOver(now)) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#most;
  }

  /** Over too where the clock has gone back: nobody is shut out until it has caught up. */
  isOver(now: number): boolean {
    return now < this.#since || now - this.#since >= this.#windowMs;
  }

  /** How long until it admits again, in whole seconds from 1. */
  waitSeconds(now: number): number {
    return Math.max(1, Math.ceil((this.#since + this.#windowMs - now) / 1000));
  }
}
