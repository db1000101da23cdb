import { z } from "zod";

const maxPoints = 200;
const maxSeries = 8;

const Label = z.union([z.string().max(200), z.number()]).transform(String);
const Values = z.array(z.number().nullable()).min(1).max(maxPoints);
const Series = z
  .object({ name: z.string().max(200).optional(), values: Values.optional(), data: Values.optional() })
  .transform(({ name, values, data }) => ({ name, values: values ?? data }));

const ChartInput = z.object({
  type: z.enum(["bar", "line", "pie"]),
  title: z.string().max(300).optional(),
  unit: z.string().max(40).optional(),
  labels: z.array(Label).max(maxPoints).optional(),
  series: z.union([z.array(Series).min(1).max(maxSeries), Values]).optional(),
  values: Values.optional(),
  data: z
    .union([
      z
        .array(z.object({ label: Label, value: z.number() }))
        .min(1)
        .max(maxPoints),
      Values,
    ])
    .optional(),
});

export type ChartSeries = { name: string; values: (number | null)[] };

/** A chart whose series all have a value, or null, for each label. */
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

/** The chart that a call's input describes; null where it describes none that can be drawn. */
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
