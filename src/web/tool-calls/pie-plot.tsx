import type { Chart } from "./chart-model.ts";
import { type Slice, slicesOf } from "./chart-scale.ts";

const size = 180;
const radius = 86;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** A whole and its parts, each named with its value and share beside it. */
export const PiePlot = ({ chart: { labels, series } }: { chart: Chart }) => {
  const slices = slicesOf(series[0]?.values ?? []);
  return (
    <div className="chart-pie">
      <svg className="chart-plot" width={size} height={size} aria-hidden="true">
        {slices.map((slice) => (
          <path key={slice.index} className="chart-slice" data-hue={slice.index % 8} d={arc(slice)}>
            <title>{`${labels[slice.index]}: ${percent.format(slice.share)}`}</title>
          </path>
        ))}
      </svg>
      <ul className="chart-legend" aria-hidden="true">
        {slices.map(({ index, value, share }) => (
          <li key={index} data-hue={index % 8}>
            <span>{labels[index]}</span>
            <span className="value-number">
              {number.format(value)} · {percent.format(share)}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
};

const pointAt = (turn: number): string => {
  const angle = turn * 2 * Math.PI - Math.PI / 2;
  return `${(size / 2 + radius * Math.cos(angle)).toFixed(2)} ${(size / 2 + radius * Math.sin(angle)).toFixed(2)}`;
};

const arc = ({ from, to }: Slice): string => {
  const middle = size / 2;
  // A whole circle has no two ends to draw between.
  if (to - from > 0.9999) return `M${middle} ${middle - radius}a${radius} ${radius} 0 1 1 -0.01 0Z`;
  const isLarge = to - from > 0.5 ? 1 : 0;
  return `M${middle} ${middle}L${pointAt(from)}A${radius} ${radius} 0 ${isLarge} 1 ${pointAt(to)}Z`;
};
