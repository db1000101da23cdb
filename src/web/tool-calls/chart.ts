import * as z from "zod";

const maxPoints = 200;
const maxSeries = 8;

const Label = z.union([z.string().max(200), z.number()]).transform(String);
const list = <Item extends z.ZodType>(item: Item, max = maxPoints) => z.array(item).min(1).max(max);

const Values = list(z.number().nullable());
const Unnamed = Values.transform((values): ChartSeries[] => [{ name: "", values }]);
const Series = z.object({ name: z.string().max(200).optional(), values: Values.optional(), data: Values.optional() });
const Named = list(Series, maxSeries).transform((all): ChartSeries[] =>
  all.flatMap(({ name, values, data }, index) => {
    const given = values ?? data;
    return given ? [{ name: name ?? `Series ${index + 1}`, values: given }] : [];
  }),
);
const Points = list(z.object({ label: Label, value: z.number() }));

const ChartInput = z.object({
  type: z.enum(["bar", "line", "pie"]),
  title: z.string().max(300).default(""),
  unit: z.string().max(40).default(""),
  labels: z.array(Label).max(maxPoints).default([]),
  values: Unnamed.optional(),
  series: z.union([Named, Unnamed]).optional(),
  data: z
    .union([
      Points.transform((points) => ({
        labels: points.map(({ label }) => label),
        series: [{ name: "", values: points.map(({ value }) => value) }],
      })),
      Unnamed.transform((series) => ({ labels: undefined, series })),
    ])
    .optional(),
});

export type ChartSeries = { name: string; values: (number | null)[] };

/** A chart; each series has one value, or null, for each label. */
export type Chart = {
  type: "bar" | "line" | "pie";
  title: string;
  unit: string;
  labels: string[];
  series: ChartSeries[];
};

/** The chart that a call's input describes; null for an input that is none. It throws where a length compares with nothing. */
export const chartOf = (input: unknown): Chart | null => {
  const parsed = ChartInput.safeParse(input);
  if (!parsed.success) return null;
  const { type, title, unit, values, data } = parsed.data;
  const found = values ?? parsed.data.series ?? data?.series ?? [];
  const size = Math.max(0, ...found.map((one) => one.values.length));
  if (size === 0) return null;
  const given = data?.labels ?? parsed.data.labels;
  const length = Math.max(size, given.length);
  const labels = Array.from({ length }, (_, index) => given[index] ?? String(index + 1));
  const series = found.map((one) => ({ ...one, values: labels.map((_, index) => one.values[index] ?? null) }));
  if (type !== "pie") return { type, title, unit, labels, series };
  const isDrawn = series[0]?.values.some((value) => value !== null && value > 0);
  return isDrawn ? { type, title, unit, labels, series: series.slice(0, 1) } : null;
};

/** An axis with round marks, from `low` to `high`. */
export type Scale = { low: number; high: number; ticks: number[] };

const roundSteps = [1, 2, 2.5, 5, 10];

/** A scale of about `count` round marks that holds all values, and 0, on which bars stand. */
export const scaleOf = (series: readonly ChartSeries[], count = 5): Scale => {
  const values = series.flatMap(({ values: all }) => all.filter((value) => value !== null));
  const min = Math.min(0, ...values);
  const max = Math.max(0, ...values);
  const rough = (max - min || 1) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = (roundSteps.find((one) => one * power >= rough) ?? 10) * power;
  const from = Math.floor(min / step);
  const to = Math.max(from + 1, Math.ceil(max / step));
  // Each mark is computed by itself: sums of steps drift.
  const ticks = Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
  return { low: ticks[0] ?? 0, high: ticks.at(-1) ?? 1, ticks };
};

/** The place of a value on a scale: 0 is its low end, 1 its high end. */
export const share = (value: number, { low, high }: Scale): number => (value - low) / (high - low);

export type Slice = { index: number; value: number; share: number; from: number; to: number };

/** The slices of a pie, in turns from the top. A value that is not above 0 has no slice. */
export const slicesOf = (values: readonly (number | null)[]): Slice[] => {
  const total = values.reduce<number>((sum, value) => sum + Math.max(0, value ?? 0), 0);
  let to = 0;
  return values.flatMap((value, index) => {
    if (value === null || value <= 0) return [];
    const from = to;
    to += value / total;
    return [{ index, value, share: value / total, from, to }];
  });
};

/** The interval of the labels that fit in `width`, where each takes `labelWidth`. */
export const labelEvery = (count: number, width: number, labelWidth: number): number =>
  Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)));
