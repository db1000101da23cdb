/** One figure as `npm run bench` prints it: one JSON object a line. `figure` says whether lower or higher is better. */
export type Figure = {
  bench: string;
  case: string;
  figure: string;
  unit: string;
  ours: number;
  /** Null where there is nothing to compare with: the figure is held to a bound instead, which `figure` names. */
  baseline: number | null;
  ratio: number | null;
};

export type Report = (figure: Omit<Figure, "bench" | "ratio">) => void;

/** A bench prints its figures through `report` and answers what it found broken: a bound that does not hold. */
export type Bench = (report: Report) => Promise<string[]>;

/** Prints each figure, and hands it to `keep`. */
export const reporter =
  (bench: string, keep: (figure: Figure) => void): Report =>
  ({ ours, baseline, ...rest }) => {
    const ratio = baseline ? round(ours / baseline) : null;
    const figure: Figure = {
      bench,
      ...rest,
      ours: round(ours),
      baseline: baseline === null ? null : round(baseline),
      ratio,
    };
    console.log(JSON.stringify(figure));
    keep(figure);
  };

const round = (value: number): number => Number(value.toPrecision(4));

/** The value below which `share` (0–1) of the values lie, by the nearest-rank rule. */
export const percentile = (values: number[], share: number): number => {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
};
