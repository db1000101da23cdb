import { type Field, fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { IconButton } from "../look/icon.tsx";
import { AddLine } from "./add-line.tsx";
import { InlineEdit } from "./inline-edit.tsx";
import { inWords } from "./item-shape.ts";
import { useKeyedItems } from "./keyed-items.ts";
import { type May, mayNothing, type Part } from "./part.ts";

type MapPart = Part<Extract<PlainSchema, { type: "map" }>>;

export const MapView = ({ schema, value, may, name, onEdit }: MapPart) => {
  const held = fieldsOf(value);
  return (
    <dl className="stack" aria-label={name}>
      {schema.fields.map((field) => (
        <div key={field.name} className="block-field">
          <dt className="baseline field-label soft">
            {field.name}
            {field.readOnly && <span className="block-read-only tone-none">read-only</span>}
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
  <label className="block-yes-no row">
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

const Counter = ({ field: { name }, value, may, onEdit }: FieldValueProps) => {
  const step = (by: number, sign: string, label: string) =>
    may.change && (
      <button
        type="button"
        className="block-step hoverable"
        aria-label={`${label}: ${name}`}
        onClick={() => onEdit({ op: "increment", field: name, by })}
      >
        {sign}
      </button>
    );
  return (
    <span className="block-counter row numeric">
      {step(-1, "−", "One less")}
      <output aria-label={name}>{inWords(value ?? 0)}</output>
      {step(1, "+", "One more")}
    </span>
  );
};

const FieldList = ({ field: { name }, value, may, onEdit }: FieldValueProps) => {
  const { rows } = useKeyedItems(itemsOf(value));
  return (
    <>
      {rows.length === 0 && <span className="block-unset soft">nothing yet</span>}
      <ul className="block-field-items" aria-label={name}>
        {rows.map(({ key, item }, index) => (
          <li key={key} className="row between wrap">
            <span>{inWords(item)}</span>
            {may.remove && (
              <IconButton
                icon="bin"
                size={16}
                label={`Delete ${inWords(item)}`}
                onClick={() => onEdit({ op: "remove_from_list", field: name, index })}
              />
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

/** Words for a number field become a number if they read as one; else the server refuses them with a reason. */
const written = (field: Field, words: string): Json =>
  field.type === "number" && words.trim() !== "" && Number.isFinite(Number(words)) ? Number(words) : words;

const Words = ({ field, value, may, onEdit }: FieldValueProps) => {
  if (!may.change) {
    return value === undefined ? (
      <span className="block-unset soft">not said</span>
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
