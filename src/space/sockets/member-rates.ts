import { maxMembers } from "../../protocol/space.ts";
import { frameWindowMs, maxMemberFrames } from "../bounds.ts";
import { RateWindow } from "./rate.ts";

/**
 * What each member sends over all its sockets. Memory only: it is lost where the object is lost, or sleeps, before
 * which it heard nothing for as long as a window lasts.
 *
 * Invariants
 * 1. A member's window outlives its sockets: closing one and opening another begins no new window.
 * 2. Past as many as a space has members, windows that are over are dropped before another begins.
 */
export class MemberRates {
  readonly #windows = new Map<string, RateWindow>();

  of(entityId: string, now: number): RateWindow {
    const known = this.#windows.get(entityId);
    if (known) return known;
    if (this.#windows.size >= maxMembers) {
      for (const [id, window] of this.#windows) if (window.isOver(now)) this.#windows.delete(id);
    }
    const window = new RateWindow(maxMemberFrames, frameWindowMs);
    this.#windows.set(entityId, window);
    return window;
  }

  get size(): number {
    return this.#windows.size;
  }
}
