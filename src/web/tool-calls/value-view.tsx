import { shownText } from "../../client/index.ts";
import { full } from "../look/time.tsx";
import { titleOf } from "./titles.ts";
import { isLong, isNothing, isRecord, number, recordTable, type Table } from "./value-layout.ts";
import "./value-view.css";

const maxDepth = 6;
const maxItems = 50;

type ValueViewProps = { value: unknown /** Deeper values show as JSON. */; depth?: number };

/** A JSON value as fields, lists, tables and texts, within bounds. A long text is folded. */
export const ValueView = ({ value, depth = maxDepth }: ValueViewProps) => {
  if (isNothing(value)) return <span className="soft">–</span>;
  if (typeof value === "number") return <span className="numeric">{number.format(value)}</span>;
  if (typeof value === "string") return <TextView text={value} />;
  if (typeof value === "boolean") return <TextView text={value ? "yes" : "no"} />;
  if (depth <= 0) return <TextView text={JSON.stringify(value)} />;
  if (Array.isArray(value)) return <ListView items={value} depth={depth - 1} />;
  return isRecord(value) ? <FieldsView fields={Object.entries(value)} depth={depth - 1} /> : null;
};

const More = ({ count }: { count: number }) => (count > 0 ? <p className="soft">and {count} more</p> : null);

const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)$/;

const TextView = ({ text: said }: { text: string }) => {
  const text = shownText(said);
  if (/^https?:\/\/\S+$/i.test(said) && URL.canParse(said)) {
    return (
      <a className="value-text" href={said} target="_blank" rel="noopener noreferrer nofollow ugc">
        {text}
      </a>
    );
  }
  if (isLong(text)) {
    return (
      <details className="value-long">
        <summary>
          <span dir="auto">{text.slice(0, 160)}…</span>
        </summary>
        <p className="value-text" dir="auto">
          {text}
        </p>
      </details>
    );
  }
  return (
    <span className="value-text" dir="auto">
      {isoTime.test(text) && !Number.isNaN(Date.parse(text)) ? full(text) : text}
    </span>
  );
};

const ListView = ({ items, depth }: { items: readonly unknown[]; depth: number }) => {
  const shown = items.slice(0, maxItems);
  const more = items.length - shown.length;
  const table = recordTable(shown);
  if (table) return <TableView table={{ ...table, more }} />;
  return (
    <>
      <ul className="value-list">
        {shown.map((item, index) => (
          <li key={index}>
            <ValueView value={item} depth={depth} />
          </li>
        ))}
      </ul>
      <More count={more} />
    </>
  );
};

const FieldsView = ({ fields, depth }: { fields: [name: string, value: unknown][]; depth: number }) => (
  <>
    <dl className="value-fields">
      {fields.slice(0, maxItems).map(([name, value]) => (
        <div key={name} className="value-field">
          <dt className="soft">{shownText(titleOf(name))}</dt>
          <dd>
            <ValueView value={value} depth={depth} />
          </dd>
        </div>
      ))}
    </dl>
    <More count={fields.length - maxItems} />
  </>
);

/** Rows and columns. A wide table scrolls in its own frame, by keyboard too. */
export const TableView = ({ table: { title, columns, rows, more } }: { table: Table }) => (
  <figure className="call-figure">
    {title && <figcaption>{shownText(title)}</figcaption>}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
    <section className="table-frame" tabIndex={0} aria-label={title || "Table"}>
      <table>
        <thead>
          <tr>
            {columns.map(({ label, isNumeric }, index) => (
              <th key={index} scope="col" data-numeric={isNumeric}>
                {shownText(label)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, column) => (
                <td key={column} data-numeric={columns[column]?.isNumeric ?? false}>
                  <ValueView value={value} depth={3} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
    <More count={more} />
  </figure>
);
