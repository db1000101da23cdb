import { type SubmitEvent, useMemo, useRef, useState } from "react";
import { FormFieldView } from "./form-field-view.tsx";
import { formResult } from "./form-result.ts";
import { fieldsOf, keyOf } from "./schema-form.ts";
import type { Standing } from "./standing.ts";
import type { Answering } from "./use-answer.ts";
import { useDrafts } from "./use-drafts.ts";

type AnswerFormProps = { toolCallId: string; schema: unknown; standing: NonNullable<Standing>; answering: Answering };

/** The fields that a call's JSON Schema asks for, checked before they are sent, and by the space again. */
export const AnswerForm = ({ toolCallId, schema, standing, answering }: AnswerFormProps) => {
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
  const isDisabled = !standing.may || answering.isSending;
  return (
    <form ref={form} className="call-form" onSubmit={submit} noValidate>
      {fields.map((field) => {
        const key = keyOf(field);
        return (
          <FormFieldView
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
      <div className="call-buttons">
        <button type="submit" className="button button-primary" disabled={isDisabled}>
          Send the answer
        </button>
      </div>
    </form>
  );
};
