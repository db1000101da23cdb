import { maxMembers } from "../protocol/space.ts";
import { createRateWindow, type RateWindow } from "../sockets/rate-window.ts";
import { frameWindowMs, maxBadFrames, maxFrames, maxMemberFrames, typingIntervalMs } from "./bounds.ts";

/**
 * A window for each member, over all its sockets.
 *
 * Invariants
 * 1. A member's window outlives its sockets: closing one and opening another begins no new window.
 * 2. Once there are as many windows as a space has members, those that are over are dropped before another begins.
 */
export const createMemberRates = (most: number, windowMs: number) => {
  const windows = new Map<string, RateWindow>();
  return {
    of(entityId: string, now: number): RateWindow {
      const known = windows.get(entityId);
      if (known) return known;
      if (windows.size >= maxMembers) {
        for (const [id, window] of windows) if (window.isOver(now)) windows.delete(id);
      }
      const window = createRateWindow(most, windowMs);
      windows.set(entityId, window);
      return window;
    },

    size: (): number => windows.size,
  };
};

/** How fast clients send. */
export const createClientRates = () => {
  const sockets = new WeakMap<WebSocket, { frames: RateWindow; badFrames: RateWindow }>();
  return {
    members: createMemberRates(maxMemberFrames, frameWindowMs),
    typing: createMemberRates(1, typingIntervalMs),
    ofSocket(socket: WebSocket) {
      const known = sockets.get(socket) ?? {
        frames: createRateWindow(maxFrames, frameWindowMs),
        badFrames: createRateWindow(maxBadFrames, frameWindowMs),
      };
      sockets.set(socket, known);
      return known;
    },
  };
};
