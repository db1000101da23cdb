import { z } from "zod";

const maxPoints = 200;
const maxSeries = 8;

const Label = z.union([z.string().max(200), z.number()]).transform(String);
const list = <Item extends z.ZodType>(item: Item, max = maxPoints) => z.array(item).min(1).max(max);
const Values = list(z.number().nullable());
const Series = z
  .object({ name: z.string().max(200).optional(), values: Values.optional(), data: Values.optional() })
  .transform(({ name, values, data }) => ({ name, values: values ?? data }));

const ChartInput = z.object({
  type: z.enum(["bar", "line", "pie"]),
  title: z.string().max(300).optional(),
  unit: z.string().max(40).optional(),
  labels: z.array(Label).max(maxPoints).optional(),
  series: z.union([list(Series, maxSeries), Values]).optional(),
  values: Values.optional(),
  data: z.union([list(z.object({ label: Label, value: z.number() })), Values]).optional(),
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

type Parsed = z.infer<typeof ChartInput>;

const isValues = (list: readonly unknown[]): list is (number | null)[] =>
  list.every((one) => typeof one === "number" || one === null);

const seriesOf = ({ series, values, data }: Parsed): { labels?: string[]; series: ChartSeries[] } => {
  const plain =
    values ?? (series && isValues(series) ? series : undefined) ?? (data && isValues(data) ? data : undefined);
  if (plain) return { series: [{ name: "", values: plain }] };
  if (data && !isValues(data)) {
    return { labels: data.map((one) => one.label), series: [{ name: "", values: data.map((one) => one.value) }] };
  }
  if (!series || isValues(series)) return { series: [] };
  return {
    series: series.flatMap((one, index) =>
      one.values ? [{ name: one.name ?? `Series ${index + 1}`, values: one.values }] : [],
    ),
  };
};

/** The chart that a call's input describes; null for an input that cannot be drawn. */
export const chartOf = (input: unknown): Chart | null => {
  const parsed = ChartInput.safeParse(input);
  if (!parsed.success) return null;
  const { type, title = "", unit = "" } = parsed.data;
  const found = seriesOf(parsed.data);
  const size = Math.max(0, ...found.series.map(({ values }) => values.length));
  if (size === 0) return null;
  const given = found.labels ?? parsed.data.labels ?? [];
  const labels = Array.from(
    { length: Math.max(size, Math.min(given.length, maxPoints)) },
    (_, index) => given[index] ?? String(index + 1),
  );
  const series = found.series.map(({ name, values }) => ({
    name,
    values: labels.map((_, index) => values[index] ?? null),
  }));
  if (type === "pie" && !series[0]?.values.some((value) => value !== null && value > 0)) return null;
  return { type, title, unit, labels, series: type === "pie" ? series.slice(0, 1) : series };
};

/** An axis with round marks, from `low` to `high`. */
export type Scale = { low: number; high: number; ticks: number[] };

const roundSteps = [1, 2, 2.5, 5, 10];

/** A scale of about `count` round marks that holds all values, and 0, on which bars stand. */
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

/** The interval of the labels that fit in `width`, where each takes `labelWidth`. */
export const labelEvery = (count: number, width: number, labelWidth: number): number =>
  Math.max(1, Math.ceil((count * labelWidth) / Math.max(1, width)));
