import { type Choice, choiceResult, type Option } from "./answer-result.ts";
import type { Standing } from "./standing.ts";
import type { Answering } from "./use-answer.ts";
import { useDrafts } from "./use-drafts.ts";

type ChoiceFormProps = {
  toolCallId: string;
  choice: Choice;
  question: string;
  schema: unknown;
  standing: NonNullable<Standing>;
  answering: Answering;
};

/** One of some options is taken by a click; several are ticked and sent. */
export const ChoiceForm = ({ toolCallId, choice, question, schema, standing, answering }: ChoiceFormProps) => {
  const [drafts, change] = useDrafts(toolCallId);
  const ticked = Array.isArray(drafts.ticked) ? drafts.ticked : [];
  const isDisabled = !standing.may || answering.isSending;
  const send = (options: readonly Option[]): void =>
    answering.send({
      result: choiceResult(
        schema,
        choice,
        options.map(({ value }) => value),
      ),
    });
  if (!choice.isMultiple) {
    return (
      <fieldset className="call-options" aria-label={question}>
        {choice.options.map((option) => (
          <button
            key={option.key}
            type="button"
            className="call-option"
            disabled={isDisabled}
            onClick={() => send([option])}
          >
            <OptionWords option={option} />
          </button>
        ))}
      </fieldset>
    );
  }
  const chosen = choice.options.filter(({ key }) => ticked.includes(key));
  return (
    <>
      <fieldset className="call-options" aria-label={question} disabled={isDisabled}>
        {choice.options.map((option) => (
          <label key={option.key} className="call-option">
            <input
              type="checkbox"
              checked={ticked.includes(option.key)}
              onChange={({ target }) =>
                change({
                  ticked: target.checked ? [...ticked, option.key] : ticked.filter((key) => key !== option.key),
                })
              }
            />
            <OptionWords option={option} />
          </label>
        ))}
      </fieldset>
      <div className="call-buttons">
        <button
          type="button"
          className="button button-primary"
          disabled={isDisabled || chosen.length === 0}
          onClick={() => send(chosen)}
        >
          {chosen.length > 0 ? `Choose ${chosen.length}` : "Choose"}
        </button>
      </div>
    </>
  );
};

const OptionWords = ({ option: { label, hint } }: { option: Option }) => (
  <span className="call-option-words" dir="auto">
    <span>{label}</span>
    {hint && <span className="field-hint">{hint}</span>}
  </span>
);
