import { type Field, fieldsOf, itemsOf, type Json, type PlainSchema } from "../../client/index.ts";
import { IconButton } from "../look/button.tsx";
import { inWords } from "./item-shape.ts";
import { useKeyedItems } from "./keyed-items.ts";
import { AddLine, InlineEdit } from "./line-edit.tsx";
import { type May, mayNothing, type Part, readOnlyMark } from "./part.tsx";

type MapPart = Part<Extract<PlainSchema, { type: "map" }>>;

export const MapView = ({ schema, value, may, name, onEdit }: MapPart) => {
  const held = fieldsOf(value);
  return (
    <dl className="stack" aria-label={name}>
      {schema.fields.map((field) => (
        <div key={field.name} className="block-field">
          <dt className="baseline field-label soft">
            {field.name}
            {field.readOnly && readOnlyMark}
          </dt>
          <dd>
            <FieldValue
              field={field}
              value={held[field.name]}
              may={field.readOnly ? mayNothing : may}
              onEdit={onEdit}
            />
            {field.description && <p className="small soft">{field.description}</p>}
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

const YesNo = ({ field: { name: field }, value, may, onEdit }: FieldValueProps) => (
  <label className="block-yes-no row">
    <input
      type="checkbox"
      checked={value === true}
      disabled={!may.change}
      aria-label={field}
      onChange={({ target }) => onEdit({ op: "set_field", field, value: target.checked })}
    />
    <span>{value === undefined ? "not said" : inWords(value)}</span>
  </label>
);

const Counter = ({ field: { name: field }, value, may, onEdit }: FieldValueProps) => {
  const step = (by: number, sign: string, label: string) => {
    const count = (): void => onEdit({ op: "increment", field, by });
    return (
      <button type="button" className="block-step hoverable" aria-label={`${label}: ${field}`} onClick={count}>
        {sign}
      </button>
    );
  };
  return (
    <span className="block-counter row numeric">
      {may.change && step(-1, "−", "One less")}
      <output aria-label={field}>{inWords(value ?? 0)}</output>
      {may.change && step(1, "+", "One more")}
    </span>
  );
};

const FieldList = ({ field: { name: field }, value, may, onEdit }: FieldValueProps) => {
  const { rows } = useKeyedItems(itemsOf(value));
  const remove = (index: number): void => onEdit({ op: "remove_from_list", field, index });
  return (
    <>
      {rows.length === 0 && <span className="soft">nothing yet</span>}
      <ul aria-label={field}>
        {rows.map(({ key, item }, index) => (
          <li key={key} className="row between wrap">
            <span>{inWords(item)}</span>
            {may.remove && (
              <IconButton icon="bin" size={16} label={`Delete ${inWords(item)}`} onClick={() => remove(index)} />
            )}
          </li>
        ))}
      </ul>
      {may.append && (
        <AddLine label={`Add to ${field}`} onAdd={(value) => onEdit({ op: "append_to_list", field, value })} />
      )}
    </>
  );
};

/** Words for a number field become a number if they read as one; else the server refuses them with a reason. */
const written = ({ type }: Field, words: string): Json =>
  type === "number" && Number.isFinite(Number(words)) ? Number(words) : words;

const Words = ({ field, value, may, onEdit }: FieldValueProps) => {
  const words = inWords(value);
  if (may.change) {
    return (
      <InlineEdit
        label={field.name}
        words={words}
        placeholder="not said"
        inputMode={field.type === "number" ? "decimal" : "text"}
        onSave={(text) => onEdit({ op: "set_field", field: field.name, value: written(field, text) })}
      />
    );
  }
  return value === undefined ? <span className="soft">not said</span> : <span className="block-plain">{words}</span>;
};
