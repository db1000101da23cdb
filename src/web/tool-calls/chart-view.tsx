import type { Chart } from "./chart-model.ts";
import { ChartPlot } from "./chart-plot.tsx";
import { PiePlot } from "./pie-plot.tsx";
import { useWidth } from "./use-width.ts";
import { lay } from "./value-layout.ts";
import { LaidTable } from "./value-view.tsx";
import "./chart-view.css";

const words = { bar: "Bar chart", line: "Line chart", pie: "Pie chart" } as const;

/** A chart with its legend, and the same values as a table for who cannot see it, or wants the numbers. */
export const ChartView = ({ chart }: { chart: Chart }) => {
  const [frame, width] = useWidth<HTMLDivElement>();
  const { type, title, unit, labels, series } = chart;
  const name = `${words[type]}${title ? `: ${title}` : ""}`;
  const columns = [
    { label: "", isNumeric: false },
    ...series.map((one) => ({ label: one.name || unit || "Value", isNumeric: true })),
  ];
  const rows = labels.map((label, index) => [lay(label), ...series.map(({ values }) => lay(values[index]))]);
  return (
    <figure className="call-figure chart">
      {(title || unit) && (
        <figcaption>
          {title} {unit && <span className="chart-unit">{unit}</span>}
        </figcaption>
      )}
      <div ref={frame} role="img" aria-label={`${name}. Its values are in the table below.`}>
        {width > 0 && (type === "pie" ? <PiePlot chart={chart} /> : <ChartPlot chart={chart} width={width} />)}
      </div>
      {type !== "pie" && series.length > 1 && (
        <ul className="chart-legend" aria-hidden="true">
          {series.map((one, index) => (
            <li key={index} data-hue={index}>
              {one.name}
            </li>
          ))}
        </ul>
      )}
      <details className="chart-values">
        <summary>Values as a table</summary>
        <LaidTable table={{ title: "", columns, rows, more: 0 }} />
      </details>
    </figure>
  );
};
