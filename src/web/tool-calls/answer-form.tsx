import { type ReactNode, type SubmitEvent, useId, useMemo, useRef, useState } from "react";
import { type Draft, type FormField, fieldsOf, formResult, keyOf } from "./schema-form.ts";
import { type Answering, useDrafts } from "./use-answer.ts";

type AnswerFormProps = { toolCallId: string; schema: unknown; isDisabled: boolean; answering: Answering };

/** The fields that a call's JSON Schema asks for. They are checked before they are sent, and by the space again. */
export const AnswerForm = ({ toolCallId, schema, isDisabled, answering }: AnswerFormProps) => {
  const fields = useMemo(() => fieldsOf(schema), [schema]);
  const [drafts, change] = useDrafts(toolCallId);
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const form = useRef<HTMLFormElement>(null);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const checked = formResult(fields, drafts);
    setProblems("problems" in checked ? checked.problems : {});
    if ("result" in checked) {
      answering.send(checked);
      return;
    }
    const [wrong] = Object.keys(checked.problems);
    form.current?.querySelector<HTMLElement>(`[data-field="${CSS.escape(wrong ?? "")}"]`)?.focus();
  };
  return (
    <form ref={form} className="call-form stack" onSubmit={submit} noValidate>
      {fields.map((field) => {
        const key = keyOf(field);
        return (
          <FieldView
            key={key}
            field={field}
            draft={drafts[key] ?? field.initial}
            problem={problems[key] ?? answering.issues[key] ?? null}
            isDisabled={isDisabled}
            onChange={(draft) => {
              change({ [key]: draft });
              setProblems(({ [key]: _, ...others }) => others);
            }}
          />
        );
      })}
      <div className="buttons">
        <button type="submit" className="button button-primary" disabled={isDisabled}>
          Send the answer
        </button>
      </div>
    </form>
  );
};

type FieldViewProps = {
  field: FormField;
  draft: Draft;
  problem: string | null;
  isDisabled: boolean;
  onChange: (draft: Draft) => void;
};

/** More options than this open as a list. */
const seenOptions = 5;

const FieldView = ({ field, draft, problem, isDisabled, onChange }: FieldViewProps) => {
  const id = useId();
  const described = [field.hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const control = {
    id,
    "data-field": keyOf(field),
    disabled: isDisabled,
    "aria-invalid": problem !== null,
    "aria-describedby": described,
    "aria-required": field.isRequired,
  } as const;
  const text = typeof draft === "string" ? draft : "";
  const written = {
    ...control,
    className: "input",
    value: text,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
  };
  const label = (
    <>
      {field.label} {!field.isRequired && <span className="soft">optional</span>}
    </>
  );
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
        {label}
      </label>
      {inner}
      {below}
    </div>
  );

  switch (field.kind) {
    case "yes-no":
      return (
        <div className="field">
          <label className="call-check row">
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
      return labelled(<input {...written} inputMode={field.isInteger ? "numeric" : "decimal"} />);
    case "date":
      return labelled(<input {...written} type={field.input} />);
    case "lines":
      return labelled(<textarea {...written} rows={3} placeholder="One on each line" />);
    case "json":
      return labelled(<textarea {...written} className="input call-json" rows={3} spellCheck={false} />);
    case "text":
      return labelled(
        field.isLong ? (
          <textarea {...written} rows={3} dir="auto" />
        ) : (
          <input {...written} type={field.input} dir="auto" />
        ),
      );
    case "one-of":
    case "some-of": {
      const isOne = field.kind === "one-of";
      if (isOne && field.options.length > seenOptions) {
        return labelled(
          <select {...written}>
            <option value="">{field.isRequired ? "Please choose" : "None"}</option>
            {field.options.map((option) => (
              <option key={option.key} value={option.key}>
                {option.label}
              </option>
            ))}
          </select>,
        );
      }
      const ticked = Array.isArray(draft) ? draft : [text];
      return (
        <fieldset className="field" aria-describedby={described} disabled={isDisabled}>
          <legend className="field-label">{label}</legend>
          {field.options.map((option, index) => (
            <label key={option.key} className="call-check row">
              <input
                type={isOne ? "radio" : "checkbox"}
                name={id}
                data-field={index === 0 ? keyOf(field) : undefined}
                checked={ticked.includes(option.key)}
                onChange={({ target }) => onChange(isOne ? option.key : toggled(ticked, option.key, target.checked))}
              />
              {option.label}
            </label>
          ))}
          {below}
        </fieldset>
      );
    }
  }
};

/** The ticked keys with one more, or without it. */
export const toggled = (keys: readonly string[], key: string, isTicked: boolean): string[] =>
  isTicked ? [...keys, key] : keys.filter((one) => one !== key);
