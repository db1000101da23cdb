import type { ChartSeries } from "./chart-model.ts";

/** Values on an axis with round marks; `low` and `high` are the first and the last of them. */
export type Scale = { low: number; high: number; ticks: number[] };

const roundSteps = [1, 2, 2.5, 5, 10];

/** A scale of about `count` round marks that holds all values, and nothing: bars stand on it. */
export const scaleOf = (series: readonly ChartSeries[], count = 5): Scale => {
  const values = series.flatMap(({ values: all }) => all.filter((value) => value !== null));
  const min = Math.min(0, ...values);
  const max = Math.max(0, ...values);
  const span = max - min || 1;
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (roundSteps.find((one) => one * power >= rough) ?? 10) * power;
  const from = Math.floor(min / step);
  const to = Math.max(from + 1, Math.ceil(max / step));
  // Each mark from its own number: sums of steps drift.
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
  return { low: ticks[0] ?? 0, high: ticks.at(-1) ?? 1, ticks };
};

/** Where a value stands between 0, at the scale's low end, and 1. */
export const share = (value: number, { low, high }: Scale): number => (value - low) / (high - low);

export type Slice = { index: number; value: number; share: number; from: number; to: number };

/** The parts of a pie, in turns from the top; what is not above 0 has none. */
export const slicesOf = (values: readonly (number | null)[]): Slice[] => {
  const total = values.reduce<number>((sum, value) => sum + Math.max(0, value ?? 0), 0);
  let from = 0;
  const slices: Slice[] = [];
  for (const [index, value] of values.entries()) {
    if (value === null || value <= 0) continue;
    const part = value / total;
    slices.push({ index, value, share: part, from, to: from + part });
    from += part;
  }
  return slices;
};

/** Every how many labels one has room, where each takes `labelWidth` of `width`. */
export const labelEvery = (count: number, width: number, labelWidth: number): number =>
  Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)));
