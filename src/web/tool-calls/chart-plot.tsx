import type { Chart } from "./chart-model.ts";
import { labelEvery, scaleOf, share } from "./chart-scale.ts";

const height = 220;
const top = 10;
const bottom = 26;
const characterWidth = 7;
const number = new Intl.NumberFormat("en", { maximumFractionDigits: 6, notation: "standard" });
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 2, notation: "compact" });

/** Bars or lines over their labels, drawn at the width that there is. */
export const ChartPlot = ({ chart: { type, labels, series }, width }: { chart: Chart; width: number }) => {
  const scale = scaleOf(series);
  const marks = scale.ticks.map((value) => ({ value, words: short.format(value) }));
  const left = Math.max(...marks.map(({ words }) => words.length)) * characterWidth + 10;
  const room = Math.max(1, width - left - 6);
  const slot = room / labels.length;
  const yOf = (value: number): number => top + (1 - share(value, scale)) * (height - top - bottom);
  const xOf = (index: number): number => left + (index + 0.5) * slot;
  const longest = Math.min(14, Math.max(...labels.map((label) => label.length)));
  const every = labelEvery(labels.length, room, (longest + 1) * characterWidth);
  return (
    <svg className="chart-plot" width={width} height={height} aria-hidden="true">
      {marks.map(({ value, words }) => (
        <g key={value} className="chart-mark" data-zero={value === 0}>
          <line x1={left} x2={width - 6} y1={yOf(value)} y2={yOf(value)} />
          <text x={left - 8} y={yOf(value)} textAnchor="end" dominantBaseline="central">
            {words}
          </text>
        </g>
      ))}
      {labels.map((label, index) =>
        index % every === 0 ? (
          <text key={index} className="chart-label" x={xOf(index)} y={height - 8} textAnchor="middle">
            {label.length > 14 ? `${label.slice(0, 13)}…` : label}
          </text>
        ) : null,
      )}
      {series.map(({ name, values }, place) =>
        type === "bar" ? (
          <g key={place} data-hue={place}>
            {values.map((value, index) => {
              if (value === null) return null;
              const gap = Math.min(10, slot * 0.2);
              const wide = Math.max(1, Math.min(64, (slot - gap) / series.length - 1));
              const from = xOf(index) - ((wide + 1) * series.length) / 2;
              const y = Math.min(yOf(value), yOf(0));
              const tall = Math.max(1, Math.abs(yOf(value) - yOf(0)));
              return (
                <rect
                  key={index}
                  className="chart-bar"
                  x={from + place * (wide + 1)}
                  y={y}
                  width={wide}
                  height={tall}
                  rx={Math.min(3, wide / 2)}
                >
                  <title>{`${labels[index]}${name ? `, ${name}` : ""}: ${number.format(value)}`}</title>
                </rect>
              );
            })}
          </g>
        ) : (
          <g key={place} data-hue={place}>
            <path className="chart-line" d={pathOf(values, xOf, yOf)} />
            {values.map((value, index) =>
              value === null ? null : (
                <circle key={index} className="chart-point" cx={xOf(index)} cy={yOf(value)} r={slot < 16 ? 1.2 : 3}>
                  <title>{`${labels[index]}${name ? `, ${name}` : ""}: ${number.format(value)}`}</title>
                </circle>
              ),
            )}
          </g>
        ),
      )}
    </svg>
  );
};

/** A line through the values; it breaks where there is none. */
const pathOf = (
  values: readonly (number | null)[],
  xOf: (index: number) => number,
  yOf: (value: number) => number,
): string =>
  values
    .map((value, index) => {
      if (value === null) return "";
      const begins = index === 0 || values[index - 1] === null;
      return `${begins ? "M" : "L"}${xOf(index).toFixed(1)} ${yOf(value).toFixed(1)}`;
    })
    .join("");
