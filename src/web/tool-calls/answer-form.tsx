import { type SubmitEvent, useId, useMemo, useRef, useState } from "react";
import { Button } from "../look/button.tsx";
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
    const [wrong = ""] = Object.keys(checked.problems);
    form.current?.querySelector<HTMLElement>(`[data-field="${CSS.escape(wrong)}"]`)?.focus();
  };
  return (
    <form ref={form} className="stack" onSubmit={submit} noValidate>
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
        <Button type="submit" look="primary" disabled={isDisabled}>
          Send the answer
        </Button>
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
  const { kind, label, hint, isRequired, options = [], isLong, input } = field;
  const id = useId();
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ") || undefined;
  const control = {
    id,
    "data-field": keyOf(field),
    disabled: isDisabled,
    "aria-invalid": problem !== null,
    "aria-describedby": described,
    "aria-required": isRequired,
  };
  const name = (
    <>
      {label} {!isRequired && <span className="soft">optional</span>}
    </>
  );
  const below = (
    <>
      {hint && (
        <span id={`${id}-hint`} className="small soft">
          {hint}
        </span>
      )}
      {problem && (
        <span id={`${id}-problem`} className="small danger" role="alert">
          {problem}
        </span>
      )}
    </>
  );

  if (kind === "yes-no") {
    return (
      <div className="field">
        <label className="call-check row">
          <input
            {...control}
            type="checkbox"
            checked={draft === true}
            onChange={(event) => onChange(event.target.checked)}
          />
          <span className="field-label">{label}</span>
        </label>
        {below}
      </div>
    );
  }

  const isOne = kind === "one-of";
  const isList = isOne && options.length > seenOptions;
  if (options.length > 0 && !isList) {
    const ticked = [draft].flat().map(String);
    return (
      <fieldset className="field" aria-describedby={described} disabled={isDisabled}>
        <legend className="field-label">{name}</legend>
        {options.map((option, index) => (
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

  const text = typeof draft === "string" ? draft : "";
  const written = {
    ...control,
    className: "input",
    value: text,
    onChange: (event: { target: { value: string } }) => onChange(event.target.value),
    ...input,
  };
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>
        {name}
      </label>
      {isList && (
        <select {...written}>
          <option value="">{isRequired ? "Please choose" : "None"}</option>
          {options.map((option) => (
            <option key={option.key} value={option.key}>
              {option.label}
            </option>
          ))}
        </select>
      )}
      {!isList && (isLong ? <textarea {...written} rows={3} /> : <input {...written} />)}
      {below}
    </div>
  );
};

/** The ticked keys with one more, or without it. */
export const toggled = (keys: readonly string[], key: string, isTicked: boolean): string[] =>
  isTicked ? [...keys, key] : keys.filter((one) => one !== key);
