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

export type RateWindow = ReturnType<typeof createRateWindow>;
