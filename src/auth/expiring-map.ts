import { type Clock, systemClock } from "../shared/clock.ts";

/** A bounded cache of one isolate. It forgets the oldest entry first, and each entry after its lifetime. */
export class ExpiringMap<Value> {
  readonly #entries = new Map<string, { value: Value; until: number }>();
  readonly #lifetimeMs: number;
  readonly #maxEntries: number;
  readonly #clock: Clock;

  constructor(lifetimeMs: number, maxEntries: number, clock: Clock = systemClock) {
    this.#lifetimeMs = lifetimeMs;
    this.#maxEntries = maxEntries;
    this.#clock = clock;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (entry.until > this.#clock.now()) return entry.value;
    this.#entries.delete(key);
    return undefined;
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size < this.#maxEntries) break;
      this.#entries.delete(oldest);
    }
    this.#entries.set(key, { value, until: this.#clock.now() + this.#lifetimeMs });
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}
