import { onTestFinished, vi } from "vitest";

/** Until the test ends, whoever waits for exactly `waitMs` waits for `soonMs` only. */
export const shorten = (waitMs: number, soonMs = 20): void => {
  const { setTimeout: later } = globalThis;
  vi.stubGlobal("setTimeout", (work: () => void, delay?: number) => later(work, delay === waitMs ? soonMs : delay));
  onTestFinished(() => void vi.unstubAllGlobals());
};
