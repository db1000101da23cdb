import { describe, expect, test } from "vitest";
import { judgeLatencies, judgeMemory } from "./soak-verdict.ts";

/** Ten minutes of warm-up and ten others, a sample every ten seconds, of what `at` says for a minute. */
const samplesOf = (at: (minute: number) => number) =>
  Array.from({ length: 120 }, (_, index) => ({ minute: index / 6 - 10, megabytes: at(index / 6 - 10) }));
const sawtooth = (minute: number): number => 8 * ((minute * 6) % 4);

describe.each<[name: string, at: (minute: number) => number, isBroken: boolean]>([
  ["memory that goes up and down", (minute) => 300 + sawtooth(minute), false],
  ["memory that grows while caches fill, and then no more", (minute) => 300 + 20 * Math.min(minute, 0), false],
  ["memory that grows a little", (minute) => 300 + 4 * minute + sawtooth(minute), false],
  ["memory that goes up and down and grows", (minute) => 300 + 6 * minute + sawtooth(minute), true],
  ["memory that grows from the middle on", (minute) => 300 + 12 * Math.max(0, minute - 5), true],
  ["memory that nobody could measure", () => Number.NaN, true],
])("%s", (_, at, isBroken) => {
  test(isBroken ? "breaks the soak" : "is let be", () => {
    expect(judgeMemory("memory", samplesOf(at), 5).broken).toHaveLength(isBroken ? 1 : 0);
  });
});

test("what was sampled while it got warm shows nothing", () => {
  expect(judgeMemory("memory", samplesOf(() => 300).slice(0, 61), 5).broken).toHaveLength(1);
});

test("a soak that took no samples has not shown anything", () => {
  expect(judgeMemory("memory", [], 5).broken).toHaveLength(1);
});

describe("latencies", () => {
  /** Slow in the warm-up: a minute that is compared with it says nothing. */
  const latencies = (lastMs: number) =>
    Array.from({ length: 660 }, (_, second) => ({
      sentAt: (second - 60) * 1000,
      acknowledgedMs: second < 60 ? 1000 : second < 600 ? 10 : lastMs,
      answeredMs: 500,
    }));
  const judge = (lastMs: number): string[] => judgeLatencies(latencies(lastMs), 0, 600_000).broken;

  test("the last minute may take 1.5 times the first, and no more", () => {
    expect(judge(15)).toEqual([]);
    expect(judge(16)).toEqual(["acknowledged: the last minute takes 1.60 × the first (at most 1.5)"]);
  });

  test("where nobody was answered at last, nothing was shown", () => {
    expect(judgeLatencies(latencies(10).slice(0, 300), 0, 600_000).broken).toHaveLength(2);
  });
});
