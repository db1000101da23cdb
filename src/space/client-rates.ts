import { maxMembers } from "../protocol/space.ts";
import { frameWindowMs, maxBadFrames, maxFrames, maxMemberFrames, typingIntervalMs } from "./bounds.ts";

/** Counts events in a window of time, which begins with the first of them. Memory only: a sleep takes longer. */
export const createRateWindow = (most: number, windowMs: number) => {
  let since = Number.NEGATIVE_INFINITY;
  let count = 0;

  /** Also true after the clock went back, so that nobody is shut out until it has caught up. */
  const isOver = (now: number): boolean => now < since || now - since >= windowMs;

  return {
    isOver,

    /** Counts one more. False once there are more than `most` in this window. */
    admits(now: number): boolean {
      if (isOver(now)) [since, count] = [now, 0];
      count += 1;
      return count <= most;
    },

    /** How long until it admits again, in whole seconds from 1. */
    waitSeconds: (now: number): number => Math.max(1, Math.ceil((since + windowMs - now) / 1000)),
  };
};

type RateWindow = ReturnType<typeof createRateWindow>;

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
