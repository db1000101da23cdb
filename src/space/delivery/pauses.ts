import type { Clock } from "../../shared/clock.ts";
import { pause } from "../../shared/timeouts.ts";
import { listenIntervalMs } from "../bounds.ts";

/**
 * When agents that only listen are told of more: about once in `listenIntervalMs`, so that much talk costs few
 * deliveries. All who wait wait for the same moment, and so are told of the same rows. Memory only: after a crash
 * nobody pauses.
 */
export class Pauses {
  readonly #clock: Clock;
  /** When each was last told. */
  readonly #toldAt = new Map<string, number>();
  /** Ends the pause of one. */
  readonly #endings = new Map<string, () => void>();
  /** The moment that all who pause wait for. */
  #moment: Promise<void> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  told(id: string): void {
    this.#toldAt.set(id, this.#clock.now());
  }

  /** Something came that must not wait: the pause ends, or none begins. */
  end(id: string): void {
    this.#toldAt.delete(id);
    this.#endings.get(id)?.();
  }

  /** Resolves when the agent may be told again. Answers whether that was to be waited for. */
  async wait(id: string): Promise<boolean> {
    const sinceMs = this.#clock.now() - (this.#toldAt.get(id) ?? Number.NEGATIVE_INFINITY);
    this.#toldAt.delete(id);
    if (sinceMs < 0 || sinceMs >= listenIntervalMs) return false;
    const ended = Promise.withResolvers<void>();
    this.#endings.set(id, ended.resolve);
    this.#moment ??= this.#in(listenIntervalMs - sinceMs);
    await Promise.race([this.#moment, ended.promise]);
    this.#endings.delete(id);
    return true;
  }

  async #in(milliseconds: number): Promise<void> {
    await pause(milliseconds);
    this.#moment = undefined;
  }
}
