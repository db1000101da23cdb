import { type ReactNode, useId } from "react";
import { type Draft, type FormField, keyOf } from "./schema-form.ts";

type FormFieldViewProps = {
  field: FormField;
  draft: Draft;
  problem: string | null;
  isDisabled: boolean;
  onChange: (draft: Draft) => void;
};

/** How many options are better seen at once than in a list that opens. */
const seenOptions = 5;

export const FormFieldView = ({ field, draft, problem, isDisabled, onChange }: FormFieldViewProps) => {
  const id = useId();
  const described = [field.hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const control = {
    id,
    "data-field": keyOf(field),
    disabled: isDisabled,
    "aria-invalid": problem !== null,
    "aria-describedby": described || undefined,
    "aria-required": field.isRequired,
  } as const;
  const text = typeof draft === "string" ? draft : "";
  const write = { value: text, onChange: (event: { target: { value: string } }) => onChange(event.target.value) };
  const below = (
    <>
      {field.hint && (
        <span id={`${id}-hint`} className="field-hint">
          {field.hint}
        </span>
      )}
      {problem && (
        <span id={`${id}-problem`} className="field-error" role="alert">
          {problem}
        </span>
      )}
    </>
  );
  const labelled = (inner: ReactNode) => (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        <FieldLabel field={field} />
      </label>
      {inner}
      {below}
    </div>
  );
  const grouped = (inner: ReactNode) => (
    <fieldset className="field call-group" aria-describedby={described || undefined} disabled={isDisabled}>
      <legend className="field-label">
        <FieldLabel field={field} />
      </legend>
      {inner}
      {below}
    </fieldset>
  );

  switch (field.kind) {
    case "yes-no":
      return (
        <div className="field">
          <label className="call-check">
            <input
              {...control}
              type="checkbox"
              checked={draft === true}
              onChange={(event) => onChange(event.target.checked)}
            />
            <span className="field-label">{field.label}</span>
          </label>
          {below}
        </div>
      );
    case "number":
      return labelled(
        <input {...control} {...write} className="input" inputMode={field.isInteger ? "numeric" : "decimal"} />,
      );
    case "date":
      return labelled(<input {...control} {...write} className="input call-date" type={field.input} />);
    case "lines":
      return labelled(<textarea {...control} {...write} className="input" rows={3} placeholder="One on each line" />);
    case "json":
      return labelled(<textarea {...control} {...write} className="input call-json" rows={3} spellCheck={false} />);
    case "text":
      return labelled(
        field.isLong ? (
          <textarea {...control} {...write} className="input" rows={3} dir="auto" />
        ) : (
          <input {...control} {...write} className="input" type={field.input} dir="auto" />
        ),
      );
    case "one-of":
      if (field.options.length > seenOptions) {
        return labelled(
          <select {...control} {...write} className="input">
            <option value="">{field.isRequired ? "Please choose" : "None"}</option>
            {field.options.map(({ key, label }) => (
              <option key={key} value={key}>
                {label}
              </option>
            ))}
          </select>,
        );
      }
      return grouped(
        field.options.map(({ key, label }, index) => (
          <label key={key} className="call-check">
            <input
              type="radio"
              name={id}
              data-field={index === 0 ? keyOf(field) : undefined}
              checked={text === key}
              onChange={() => onChange(key)}
            />
            {label}
          </label>
        )),
      );
    case "some-of": {
      const ticked = Array.isArray(draft) ? draft : [];
      return grouped(
        field.options.map(({ key, label }, index) => (
          <label key={key} className="call-check">
            <input
              type="checkbox"
              data-field={index === 0 ? keyOf(field) : undefined}
              checked={ticked.includes(key)}
              onChange={({ target }) =>
                onChange(target.checked ? [...ticked, key] : ticked.filter((one) => one !== key))
              }
            />
            {label}
          </label>
        )),
      );
    }
  }
};

const FieldLabel = ({ field: { label, isRequired } }: { field: FormField }) => (
  <>
    {label} {!isRequired && <span className="call-optional">optional</span>}
  </>
);
