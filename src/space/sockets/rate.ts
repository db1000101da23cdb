/** Counts what happens in a window of time that begins with the first of it. */
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
    if (now - this.#since >= this.#windowMs) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#most;
  }
}
