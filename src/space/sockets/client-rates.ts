import { maxMembers } from "../../protocol/space.ts";
import { frameWindowMs, maxBadFrames, maxFrames, maxMemberFrames, typingIntervalMs } from "../bounds.ts";
import type { SpaceSession } from "./space-sockets.ts";

/** Counts events in a window of time, which begins with the first of them. Memory only: a sleep takes longer. */
export class RateWindow {
  readonly #most: number;
  readonly #windowMs: number;
  #since = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  /** Counts one more. False once there are more than `most` in this window. */
  admits(now: number): boolean {
    if (this.isOver(now)) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    return this.#count <= this.#most;
  }

  /** Also true after the clock went back, so that nobody is shut out until it has caught up. */
  isOver(now: number): boolean {
    return now < this.#since || now - this.#since >= this.#windowMs;
  }

  /** How long until it admits again, in whole seconds from 1. */
  waitSeconds(now: number): number {
    return Math.max(1, Math.ceil((this.#since + this.#windowMs - now) / 1000));
  }
}

/**
 * A window for each member, over all its sockets.
 *
 * Invariants
 * 1. A member's window outlives its sockets: closing one and opening another begins no new window.
 * 2. Once there are as many windows as a space has members, those that are over are dropped before another begins.
 */
export class MemberRates {
  readonly #most: number;
  readonly #windowMs: number;
  readonly #windows = new Map<string, RateWindow>();

  constructor(most: number, windowMs: number) {
    this.#most = most;
    this.#windowMs = windowMs;
  }

  of(entityId: string, now: number): RateWindow {
    const known = this.#windows.get(entityId);
    if (known) return known;
    if (this.#windows.size >= maxMembers) {
      for (const [id, window] of this.#windows) if (window.isOver(now)) this.#windows.delete(id);
    }
    const window = new RateWindow(this.#most, this.#windowMs);
    this.#windows.set(entityId, window);
    return window;
  }

  get size(): number {
    return this.#windows.size;
  }
}

type Rates = { frames: RateWindow; badFrames: RateWindow };

/** How fast clients send. */
export class ClientRates {
  readonly members = new MemberRates(maxMemberFrames, frameWindowMs);
  readonly typing = new MemberRates(1, typingIntervalMs);
  readonly #sockets = new WeakMap<WebSocket, Rates>();

  of({ socket }: SpaceSession): Rates {
    const known = this.#sockets.get(socket) ?? {
      frames: new RateWindow(maxFrames, frameWindowMs),
      badFrames: new RateWindow(maxBadFrames, frameWindowMs),
    };
    this.#sockets.set(socket, known);
    return known;
  }
}
