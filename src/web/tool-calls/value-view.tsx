import type { Table } from "./table-model.ts";
import { TableView } from "./table-view.tsx";
import type { Laid, LaidField } from "./value-layout.ts";
import "./value-view.css";

const More = ({ count }: { count: number }) => (count > 0 ? <p className="value-more">and {count} more</p> : null);

/** A value of JSON as fields, lists, tables and texts. What is long is folded. */
export const ValueView = ({ value }: { value: Laid }) => {
  switch (value.kind) {
    case "nothing":
      return <span className="value-nothing">–</span>;
    case "text":
      return value.isLong ? (
        <LongText text={value.text} />
      ) : (
        <span className="value-text" dir="auto">
          {value.text}
        </span>
      );
    case "number":
      return <span className="value-number">{value.text}</span>;
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
      return <LaidTable table={{ title: "", columns, rows: value.rows, more: value.more }} />;
    }
    case "fields":
      return <FieldsView fields={value.fields} more={value.more} />;
  }
};

export const LaidTable = ({ table }: { table: Table }) => (
  <TableView table={table} cell={(value) => <ValueView value={value} />} />
);

const LongText = ({ text }: { text: string }) => (
  <details className="value-long">
    <summary>
      <span className="value-long-beginning" dir="auto">
        {text.slice(0, 160)}…
      </span>
    </summary>
    <p className="value-text" dir="auto">
      {text}
    </p>
  </details>
);

const isBlock = ({ kind }: Laid): boolean => kind === "fields" || kind === "table";

export const FieldsView = ({ fields, more = 0 }: { fields: readonly LaidField[]; more?: number }) => (
  <>
    <dl className="value-fields">
      {fields.map(({ key, label, value }) => (
        <div key={key} className="value-field" data-block={isBlock(value)}>
          <dt>{label}</dt>
          <dd>
            <ValueView value={value} />
          </dd>
        </div>
      ))}
    </dl>
    <More count={more} />
  </>
);
