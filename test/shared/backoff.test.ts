import { afterEach, describe, expect, test, vi } from "vitest";
import { backoff } from "../../src/shared/backoff.ts";

afterEach(() => vi.restoreAllMocks());

/** The least and the most that jitter makes of a pause. */
const range = (...parameters: Parameters<typeof backoff>): [number, number] => {
  const random = vi.spyOn(Math, "random");
  const least = random.mockReturnValue(0) && backoff(...parameters);
  const most = random.mockReturnValue(1) && backoff(...parameters);
  return [least, most];
};

describe("[R4] a pause between tries", () => {
  test("doubles with each failure up to the longest, with up to a half of jitter", () => {
    const pauses = { firstMs: 1000, longestMs: 10_000 };
    expect([0, 1, 2, 3, 4, 5, 1000].map((failures) => range(failures, pauses))).toEqual([
      [1000, 1500],
      [2000, 3000],
      [4000, 6000],
      [8000, 12_000],
      [10_000, 15_000],
      [10_000, 15_000],
      [10_000, 15_000],
    ]);
  });

  test("grows by another factor where it is told to", () => {
    const pauses = { firstMs: 1000, longestMs: 39_000, times: 4 };
    expect([0, 1, 2, 3].map((failures) => range(failures, pauses)[0])).toEqual([1000, 4000, 16_000, 39_000]);
  });

  test("is at least what a server asks for, and at most 10 s more", () => {
    const pauses = { firstMs: 1000, longestMs: 600_000 };
    expect(range(0, pauses, 4000)).toEqual([4000, 6000]);
    for (const failures of [0, 9]) expect(range(failures, pauses, 3_600_000)).toEqual([3_600_000, 3_610_000]);
  });

  test("grows up to a minute where a server always asks for less, and is whole", () => {
    const pauses = { firstMs: 1000, longestMs: 600_000 };
    const least = (failures: number): number => range(failures, pauses, 0)[0];
    expect([0, 1, 5, 6, 20].map(least)).toEqual([1000, 2000, 32_000, 60_000, 60_000]);
    vi.spyOn(Math, "random").mockReturnValue(1 / 3);
    expect(Number.isInteger(backoff(0, { firstMs: 1001, longestMs: 9999 }))).toBe(true);
  });
});
