import { type CSSProperties, type RefObject, useLayoutEffect, useRef, useState } from "react";
import { type Chart, labelEvery, type Slice, scaleOf, share, slicesOf } from "./chart.ts";
import { number } from "./value-layout.ts";
import { TableView } from "./value-view.tsx";
import "./chart-view.css";

const kinds = { bar: "Bar chart", line: "Line chart", pie: "Pie chart" } as const;

/** A chart with its legend, and its values as a table for a reader who cannot see it or wants the numbers. */
export const ChartView = ({ chart }: { chart: Chart }) => {
  const [frame, width] = useWidth<HTMLDivElement>();
  const { type, title, unit, labels, series } = chart;
  const name = `${kinds[type]}${title ? `: ${title}` : ""}`;
  const columns = [
    { label: "", isNumeric: false },
    ...series.map((one) => ({ label: one.name || unit || "Value", isNumeric: true })),
  ];
  const rows = labels.map((label, index) => [label, ...series.map(({ values }) => values[index])]);
  return (
    <figure className="call-figure chart stack">
      {(title || unit) && (
        <figcaption>
          {title} {unit && <span className="soft">{unit}</span>}
        </figcaption>
      )}
      <div ref={frame} role="img" aria-label={`${name}. Its values are in the table below.`}>
        {width > 0 && (type === "pie" ? <Pie chart={chart} /> : <Plot chart={chart} width={width} />)}
      </div>
      {type !== "pie" && series.length > 1 && (
        <ul className="chart-legend buttons" aria-hidden="true">
          {series.map((one, index) => (
            <li key={index} className="row" style={hue(index)}>
              {one.name}
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary className="soft">Values as a table</summary>
        <TableView table={{ title: "", columns, rows, more: 0 }} />
      </details>
    </figure>
  );
};

/** The colour of a series or slice; there are eight of them. */
const hue = (index: number): CSSProperties & Record<`--${string}`, string> => ({
  "--chart-colour": `var(--chart-${index % 8})`,
});

/** The width of an element in pixels, kept up to date; 0 before it is there. */
const useWidth = <Kind extends HTMLElement>(): [RefObject<Kind | null>, number] => {
  const element = useRef<Kind>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measured = element.current;
    if (!measured) return;
    setWidth(measured.clientWidth);
    const observer = new ResizeObserver(() => setWidth(measured.clientWidth));
    observer.observe(measured);
    return () => observer.disconnect();
  }, []);
  return [element, width];
};

const height = 220;
const top = 10;
const bottom = 26;
const characterWidth = 7;
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 2, notation: "compact" });

/** Bars or lines over their labels, drawn at the available width. */
const Plot = ({ chart: { type, labels, series }, width }: { chart: Chart; width: number }) => {
  const scale = scaleOf(series);
  const marks = scale.ticks.map((value) => ({ value, words: short.format(value) }));
  const left = Math.max(...marks.map(({ words }) => words.length)) * characterWidth + 10;
  const room = Math.max(1, width - left - 6);
  const slot = room / labels.length;
  const yOf = (value: number): number => top + (1 - share(value, scale)) * (height - top - bottom);
  const xOf = (index: number): number => left + (index + 0.5) * slot;
  /** A line to a value from the one before; it is broken at each null. */
  const lineTo = (value: number | null, index: number, values: readonly (number | null)[]): string => {
    const begins = index === 0 || values[index - 1] === null;
    return value === null ? "" : `${begins ? "M" : "L"}${xOf(index).toFixed(1)} ${yOf(value).toFixed(1)}`;
  };
  const longest = Math.min(14, Math.max(...labels.map((label) => label.length)));
  const every = labelEvery(labels.length, room, (longest + 1) * characterWidth);
  const gap = Math.min(10, slot * 0.2);
  const wide = Math.max(1, Math.min(64, (slot - gap) / series.length - 1));
  return (
    <svg width={width} height={height} aria-hidden="true">
      {marks.map(({ value, words }) => (
        <g key={value} data-zero={value === 0}>
          <line x1={left} x2={width - 6} y1={yOf(value)} y2={yOf(value)} />
          <text x={left - 8} y={yOf(value)} textAnchor="end" dominantBaseline="central">
            {words}
          </text>
        </g>
      ))}
      {labels.map((label, index) =>
        index % every === 0 ? (
          <text key={index} x={xOf(index)} y={height - 8} textAnchor="middle">
            {label.length > 14 ? `${label.slice(0, 13)}…` : label}
          </text>
        ) : null,
      )}
      {series.map(({ name, values }, place) => (
        <g key={place} data-hue={place} style={hue(place)}>
          {type === "line" && <path className="chart-line" d={values.map(lineTo).join("")} />}
          {values.map((value, index) => {
            if (value === null) return null;
            const title = <title>{`${labels[index]}${name ? `, ${name}` : ""}: ${number.format(value)}`}</title>;
            return type === "line" ? (
              <circle key={index} cx={xOf(index)} cy={yOf(value)} r={slot < 16 ? 1.2 : 3}>
                {title}
              </circle>
            ) : (
              <rect
                key={index}
                className="chart-bar"
                x={xOf(index) + (place - series.length / 2) * (wide + 1)}
                y={Math.min(yOf(value), yOf(0))}
                width={wide}
                height={Math.max(1, Math.abs(yOf(value) - yOf(0)))}
                rx={Math.min(3, wide / 2)}
              >
                {title}
              </rect>
            );
          })}
        </g>
      ))}
    </svg>
  );
};

const size = 180;
const radius = 86;
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** A whole and its parts, each named beside it with its value and share. */
const Pie = ({ chart: { labels, series } }: { chart: Chart }) => {
  const slices = slicesOf(series[0]?.values ?? []);
  return (
    <div className="chart-pie row">
      <svg width={size} height={size} aria-hidden="true">
        {slices.map((slice) => (
          <path key={slice.index} style={hue(slice.index)} d={arc(slice)}>
            <title>{`${labels[slice.index]}: ${percent.format(slice.share)}`}</title>
          </path>
        ))}
      </svg>
      <ul className="chart-legend buttons" aria-hidden="true">
        {slices.map(({ index, value, share: part }) => (
          <li key={index} className="row" style={hue(index)}>
            <span>{labels[index]}</span>
            <span className="numeric soft">
              {number.format(value)} · {percent.format(part)}
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
