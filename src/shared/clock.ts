/** Milliseconds since the epoch. Injected everywhere that time matters, so that tests hold it. */
export type Clock = { now(): number };

export const systemClock: Clock = { now: () => Date.now() };

export const dayMs = 24 * 60 * 60_000;

export const isoTime = (milliseconds: number): string => new Date(milliseconds).toISOString();
