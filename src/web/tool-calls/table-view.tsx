import type { ReactNode } from "react";
import type { Table } from "./table-model.ts";
import type { Laid } from "./value-layout.ts";
import "./table-view.css";

type TableViewProps = { table: Table; cell: (value: Laid) => ReactNode };

/** Rows and columns; what is wider than the column scrolls in its own frame, by keyboard too. */
export const TableView = ({ table: { title, columns, rows, more }, cell }: TableViewProps) => (
  <figure className="call-figure">
    {title && <figcaption>{title}</figcaption>}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
    <section className="table-frame" tabIndex={0} aria-label={title || "Table"}>
      <table className="table">
        <thead>
          <tr>
            {columns.map(({ label, isNumeric }, index) => (
              <th key={index} scope="col" data-numeric={isNumeric}>
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, column) => (
                <td key={column} data-numeric={columns[column]?.isNumeric ?? false}>
                  {cell(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
    {more > 0 && <p className="value-more">and {more} more</p>}
  </figure>
);
