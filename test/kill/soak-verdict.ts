import { percentile } from "../../bench/support/figure.ts";
import { type MemorySample, slope } from "./memory.ts";

/** How long one message took until it was acknowledged, and until its answer was seen; in milliseconds of one clock. */
export type Latency = { sentAt: number; acknowledgedMs: number; answeredMs: number };

/** What the samples of a soak say, a line each, and which of its bounds they break. */
export type SoakVerdict = { lines: string[]; broken: string[] };

/**
 * How much memory may grow, in MB a minute, while the load stays the same, once it is warm. What is resident may grow by
 * more than what lives: see docs/decisions/2026-11-22-what-a-soak-may-keep.md.
 */
export const maxGrowth = { heap: 2, resident: 15 };
/** The median latency of the last minute, to that of the first. */
export const maxLatencyRatio = 1.5;

const minuteMs = 60_000;

/** Judges samples by their minutes since the end of the warm-up. Those of the warm-up have none or less. */
export const judgeMemory = (name: string, samples: MemorySample[], most: number): SoakVerdict => {
  const warm = samples.filter(({ minute }) => minute >= 0);
  const growth = slope(warm);
  const [cold, first, last] = [samples[0], warm[0], warm.at(-1)].map((sample) => sample?.megabytes.toFixed(0) ?? "?");
  const shown = `${growth.toFixed(2)} MB/min (at most ${most})`;
  const broken = warm.length > 2 && growth <= most ? [] : [`the ${name} grows by ${shown}`];
  return { lines: [`${name}: ${cold} MB cold, ${first} MB warm, ${last} MB at last, ${shown}`], broken };
};

/** Judges the messages sent from `beganAt` on, when the warm-up was over. */
export const judgeLatencies = (latencies: Latency[], beganAt: number, endedAt: number): SoakVerdict => {
  const verdict: SoakVerdict = { lines: [], broken: [] };
  const first = latencies.filter(({ sentAt }) => sentAt >= beganAt && sentAt < beganAt + minuteMs);
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
