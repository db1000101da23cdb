import { type Field, fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import { AddLine } from "./add-line.tsx";
import { InlineEdit } from "./inline-edit.tsx";
import { inWords } from "./item-shape.ts";
import { type May, mayNothing } from "./may.ts";
import type { Part } from "./part.ts";

type MapPart = Part<Extract<PlainSchema, { type: "map" }>>;

export const MapView = ({ schema, value, may, name, onEdit }: MapPart) => {
  const held = fieldsOf(value);
  return (
    <dl className="block-fields" aria-label={name}>
      {schema.fields.map((field) => (
        <div key={field.name} className="block-field">
          <dt>
            {field.name}
            {field.readOnly && <span className="block-read-only">read-only</span>}
          </dt>
          <dd>
            <FieldValue
              field={field}
              value={held[field.name]}
              may={field.readOnly ? mayNothing : may}
              onEdit={onEdit}
            />
            {field.description && <p className="field-hint">{field.description}</p>}
          </dd>
        </div>
      ))}
    </dl>
  );
};

type FieldValueProps = { field: Field; value: Json | undefined; may: May; onEdit: MapPart["onEdit"] };

const FieldValue = (props: FieldValueProps) => {
  switch (props.field.type) {
    case "boolean":
      return <YesNo {...props} />;
    case "counter":
      return <Counter {...props} />;
    case "list":
      return <FieldList {...props} />;
    default:
      return <Words {...props} />;
  }
};

const YesNo = ({ field, value, may, onEdit }: FieldValueProps) => (
  <label className="block-yes-no">
    <input
      type="checkbox"
      checked={value === true}
      disabled={!may.change}
      aria-label={field.name}
      onChange={(event) => onEdit({ op: "set_field", field: field.name, value: event.target.checked })}
    />
    <span>{value === undefined ? "not said" : inWords(value)}</span>
  </label>
);

const Counter = ({ field: { name }, value, may, onEdit }: FieldValueProps) => (
  <span className="block-counter">
    {may.change && (
      <button
        type="button"
        className="block-step"
        aria-label={`One less: ${name}`}
        onClick={() => onEdit({ op: "increment", field: name, by: -1 })}
      >
        −
      </button>
    )}
    <output aria-label={name}>{inWords(value ?? 0)}</output>
    {may.change && (
      <button
        type="button"
        className="block-step"
        aria-label={`One more: ${name}`}
        onClick={() => onEdit({ op: "increment", field: name, by: 1 })}
      >
        +
      </button>
    )}
  </span>
);

const FieldList = ({ field: { name }, value, may, onEdit }: FieldValueProps) => {
  const counts = new Map<string, number>();
  const rows = itemsOf(value).map((item, index) => {
    const words = inWords(item);
    const count = (counts.get(words) ?? 0) + 1;
    counts.set(words, count);
    return { key: `${words} ${count}`, words, index };
  });
  return (
    <>
      {rows.length === 0 && <span className="block-unset">nothing yet</span>}
      <ul className="block-field-items" aria-label={name}>
        {rows.map(({ key, words, index }) => (
          <li key={key}>
            <span>{words}</span>
            {may.remove && (
              <button
                type="button"
                className="icon-button block-item-delete"
                aria-label={`Delete ${words}`}
                onClick={() => onEdit({ op: "remove_from_list", field: name, index })}
              >
                <Icon name="bin" size={16} />
              </button>
            )}
          </li>
        ))}
      </ul>
      {may.append && (
        <AddLine
          label={`Add to ${name}`}
          onAdd={(words) => onEdit({ op: "append_to_list", field: name, value: words })}
        />
      )}
    </>
  );
};

/** What is written for a number is one where it reads as one; else the server says what is wrong with it. */
const written = (field: Field, words: string): Json =>
  field.type === "number" && words.trim() !== "" && Number.isFinite(Number(words)) ? Number(words) : words;

const Words = ({ field, value, may, onEdit }: FieldValueProps) => {
  if (!may.change) {
    return value === undefined ? (
      <span className="block-unset">not said</span>
    ) : (
      <span className="block-plain">{inWords(value)}</span>
    );
  }
  return (
    <InlineEdit
      label={field.name}
      words={inWords(value)}
      placeholder="not said"
      inputMode={field.type === "number" ? "decimal" : "text"}
      onSave={(words) => onEdit({ op: "set_field", field: field.name, value: written(field, words) })}
    />
  );
};
