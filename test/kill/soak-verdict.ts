import { percentile } from "../../bench/support/figure.ts";
import { type MemorySample, slope } from "./memory.ts";

/** How long one message took until it was acknowledged, and until its answer was seen; in milliseconds of one clock. */
export type Latency = { sentAt: number; acknowledgedMs: number; answeredMs: number };

/** What the samples of a soak say, a line each, and which of its bounds they break. */
export type SoakVerdict = { lines: string[]; broken: string[] };

/**
 * How much memory may grow, in MB a minute, while the load stays the same: over the second half, once it is warm. What
 * is resident may grow by more than what lives: see docs/decisions/2026-11-22-what-a-soak-may-keep.md.
 */
export const maxGrowth = { heap: 2, resident: 20 };
/** The median latency of the last minute, to that of the first. */
export const maxLatencyRatio = 1.5;

const minuteMs = 60_000;

export const judgeMemory = (name: string, samples: MemorySample[], most: number): SoakVerdict => {
  const end = samples.at(-1)?.minute ?? 0;
  const growth = slope(samples.filter(({ minute }) => minute >= end / 2));
  const [first, last] = [samples.at(0), samples.at(-1)].map((sample) => sample?.megabytes.toFixed(0) ?? "?");
  const shown = `${growth.toFixed(2)} MB/min in the second half (at most ${most})`;
  const broken = samples.length > 2 && growth <= most ? [] : [`the ${name} grows by ${shown}`];
  return { lines: [`${name}: ${first} MB at first, ${last} MB at last, ${shown}`], broken };
};

export const judgeLatencies = (latencies: Latency[], beganAt: number, endedAt: number): SoakVerdict => {
  const verdict: SoakVerdict = { lines: [], broken: [] };
  const first = latencies.filter(({ sentAt }) => sentAt < beganAt + minuteMs);
  const last = latencies.filter(({ sentAt }) => sentAt >= endedAt - minuteMs);
  for (const [name, pick] of [
    ["acknowledged", (one: Latency) => one.acknowledgedMs],
    ["answered", (one: Latency) => one.answeredMs],
  ] as const) {
    const [before, after] = [first.map(pick), last.map(pick)];
    const ratio = percentile(after, 0.5) / percentile(before, 0.5);
    const [early, late] = [before, after].map(
      (group) => `p50 ${percentile(group, 0.5).toFixed(0)} ms, p95 ${percentile(group, 0.95).toFixed(0)} ms`,
    );
    const shown = `${ratio.toFixed(2)} × the first (at most ${maxLatencyRatio})`;
    verdict.lines.push(`${name}: first minute ${early}; last minute ${late}, p50 ${shown}`);
    if (!(ratio <= maxLatencyRatio)) verdict.broken.push(`${name}: the last minute takes ${shown}`);
  }
  return verdict;
};
