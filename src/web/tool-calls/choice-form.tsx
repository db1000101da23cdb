import { Button } from "../look/button.tsx";
import { toggled } from "./answer-form.tsx";
import { type Choice, choiceResult } from "./choice.ts";
import type { Option } from "./schema-form.ts";
import { type Answering, useDrafts } from "./use-answer.ts";

type ChoiceFormProps = {
  toolCallId: string;
  choice: Choice;
  question: string;
  schema: unknown;
  isDisabled: boolean;
  answering: Answering;
};

/** A click takes one of the options; several are ticked and sent. */
export const ChoiceForm = ({ toolCallId, choice, question, schema, isDisabled, answering }: ChoiceFormProps) => {
  const [drafts, change] = useDrafts(toolCallId);
  const ticked = Array.isArray(drafts.ticked) ? drafts.ticked : [];
  const chosen = choice.options.filter(({ key }) => ticked.includes(key));
  const send = (options: readonly Option[]): void => {
    const values = options.map(({ value }) => value);
    answering.send({ result: choiceResult(schema, choice, values) });
  };
  return (
    <>
      <fieldset className="buttons" aria-label={question} disabled={isDisabled}>
        {choice.options.map((option) => {
          const words = (
            <span className="words" dir="auto">
              <span>{option.label}</span>
              {option.hint && <span className="small soft">{option.hint}</span>}
            </span>
          );
          return choice.isMultiple ? (
            <label key={option.key} className="call-option row">
              <input
                type="checkbox"
                checked={ticked.includes(option.key)}
                onChange={({ target }) => change({ ticked: toggled(ticked, option.key, target.checked) })}
              />
              {words}
            </label>
          ) : (
            <button key={option.key} type="button" className="call-option row" onClick={() => send([option])}>
              {words}
            </button>
          );
        })}
      </fieldset>
      {choice.isMultiple && (
        <div className="buttons">
          <Button look="primary" disabled={isDisabled || chosen.length === 0} onClick={() => send(chosen)}>
            {chosen.length > 0 ? `Choose ${chosen.length}` : "Choose"}
          </Button>
        </div>
      )}
    </>
  );
};
