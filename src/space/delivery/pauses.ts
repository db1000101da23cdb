import type { Clock } from "../../shared/clock.ts";
import { pause } from "../../shared/timeouts.ts";
import { forgetTurnMs, listenIntervalMs } from "../bounds.ts";

/**
 * When agents that only listen are told of more: about once in `listenIntervalMs`, so that much talk costs few
 * deliveries. All who wait wait for the same moment, and so are told of the same rows. What an erased entity said they are
 * told one after another. Memory only: after a crash nobody pauses.
 */
export class Pauses {
  readonly #clock: Clock;
  /** When each was last told. */
  readonly #toldAt = new Map<string, number>();
  /** Ends the pause of one. */
  readonly #endings = new Map<string, () => void>();
  /** The moment that all who pause wait for. */
  #moment: Promise<void> | undefined;
  /** The last turn that was given. */
  #turn = Promise.resolve();

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
    this.#moment ??= pause(listenIntervalMs - sinceMs).then(() => {
      this.#moment = undefined;
    });
    return this.#unlessEnded(id, this.#moment);
  }

  /** Resolves when it is the agent's turn: one after another, since what each does then takes the same thread here. */
  turn(id: string): Promise<true> {
    this.#turn = this.#turn.then(() => pause(forgetTurnMs));
    return this.#unlessEnded(id, this.#turn);
  }

  async #unlessEnded(id: string, moment: Promise<void>): Promise<true> {
    const ended = Promise.withResolvers<void>();
    this.#endings.set(id, ended.resolve);
    await Promise.race([moment, ended.promise]);
    this.#endings.delete(id);
    return true;
  }
}
