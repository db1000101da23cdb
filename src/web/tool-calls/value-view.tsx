import type { Laid, LaidField, Table } from "./value-layout.ts";
import "./value-view.css";

/** A JSON value as fields, lists, tables and texts. A long text is folded. */
export const ValueView = ({ value }: { value: Laid }) => {
  switch (value.kind) {
    case "nothing":
      return <span className="soft">–</span>;
    case "text":
      return value.isLong ? (
        <LongText text={value.text} />
      ) : (
        <span className="value-text" dir="auto">
          {value.text}
        </span>
      );
    case "number":
      return <span className="numeric">{value.text}</span>;
    case "link":
      return (
        <a className="value-text" href={value.href} target="_blank" rel="noopener noreferrer nofollow ugc">
          {value.href}
        </a>
      );
    case "list":
      return (
        <>
          <ul className="value-list">
            {value.items.map((item, index) => (
              <li key={index}>
                <ValueView value={item} />
              </li>
            ))}
          </ul>
          <More count={value.more} />
        </>
      );
    case "table": {
      const columns = value.columns.map((label) => ({ label, isNumeric: false }));
      return <TableView table={{ title: "", columns, rows: value.rows, more: value.more }} />;
    }
    case "fields":
      return <FieldsView fields={value.fields} more={value.more} />;
  }
};

const More = ({ count }: { count: number }) => (count > 0 ? <p className="soft">and {count} more</p> : null);

const LongText = ({ text }: { text: string }) => (
  <details className="value-long">
    <summary>
      <span dir="auto">{text.slice(0, 160)}…</span>
    </summary>
    <p className="value-text" dir="auto">
      {text}
    </p>
  </details>
);

const isBlock = ({ kind }: Laid): boolean => kind === "fields" || kind === "table";

const FieldsView = ({ fields, more }: { fields: readonly LaidField[]; more: number }) => (
  <>
    <dl className="value-fields">
      {fields.map(({ key, label, value }) => (
        <div key={key} className="value-field" data-block={isBlock(value)}>
          <dt className="soft">{label}</dt>
          <dd>
            <ValueView value={value} />
          </dd>
        </div>
      ))}
    </dl>
    <More count={more} />
  </>
);

/** Rows and columns. A wide table scrolls in its own frame, by keyboard too. */
export const TableView = ({ table: { title, columns, rows, more } }: { table: Table }) => (
  <figure className="call-figure">
    {title && <figcaption>{title}</figcaption>}
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
    <section className="table-frame" tabIndex={0} aria-label={title || "Table"}>
      <table>
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
                  <ValueView value={value} />
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
