import { useId, useRef } from "react";
import type { Member, ToolCall } from "../../client/index.ts";
import { Button } from "../look/button.tsx";
import { clock, Time } from "../look/time.tsx";
import { AnswerForm } from "./answer-form.tsx";
import { choiceOf, questionOf } from "./choice.ts";
import { ChoiceForm } from "./choice-form.tsx";
import { progressOf, type Standing, timeLeft } from "./standing.ts";
import { type Answering, useAnswer, useDrafts } from "./use-answer.ts";
import { isRecord } from "./value-layout.ts";

type PeoplePartProps = {
  spaceId: string;
  call: ToolCall;
  awaits: NonNullable<ToolCall["awaits"]>;
  members: readonly Member[];
  standing: Standing;
  now: number;
  /** How many long texts must be unfolded before it can be approved. */
  unread: number;
};

/** The question that a call asks people, their answers so far, and the time that is left. */
export const PeoplePart = ({ spaceId, call, awaits, members, standing, now, unread }: PeoplePartProps) => {
  const element = useRef<HTMLDivElement>(null);
  // The controls disappear; the focus stays at their card.
  const answering = useAnswer(spaceId, call.id, () => element.current?.closest<HTMLElement>(".call")?.focus());
  const nameOf = (id: string, otherwise: string): string => members.find((one) => one.id === id)?.name ?? otherwise;
  const left = standing ? timeLeft(awaits.expiresAt, now) : null;
  return (
    <div ref={element} className="call-people stack">
      {awaits.answers.length > 0 && (
        <ul className="call-answers">
          {awaits.answers.map((answer) => (
            <li key={answer.entityId}>
              <strong>{nameOf(answer.entityId, answer.name)}</strong> {wordsOf(answer.approved)}
              {answer.impersonatedBy && ` in a session that ${nameOf(answer.impersonatedBy, "somebody else")} made`}{" "}
              <Time iso={answer.at} className="tiny soft numeric">
                {clock(answer.at)}
              </Time>
              {answer.note && (
                <span className="soft" dir="auto">
                  {answer.note}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {standing && <Question {...{ call, awaits, unread, mayAnswer: standing.may, answering }} />}
      <div className="call-foot buttons between soft">
        <span role="status">
          {[answering.told, progressOf(call), standing && !standing.may ? standing.why : null]
            .filter(Boolean)
            .join(" · ")}
        </span>
        {left && <Time iso={awaits.expiresAt}>Expires {left}</Time>}
      </div>
    </div>
  );
};

const wordsOf = (approved: boolean | undefined): string =>
  approved === undefined ? "answered" : approved ? "approved" : "rejected";

type QuestionProps = Pick<PeoplePartProps, "call" | "awaits" | "unread"> & { mayAnswer: boolean; answering: Answering };

const Question = ({ call, awaits, unread, mayAnswer, answering }: QuestionProps) => {
  const common = { toolCallId: call.id, isDisabled: !mayAnswer || answering.isSending, answering };
  if (awaits.kind === "approval") return <ApprovalForm {...common} {...{ awaits, unread, mayAnswer }} />;
  const { schema } = awaits;
  const choice = choiceOf(call.input, schema);
  if (choice) {
    return <ChoiceForm {...common} {...{ choice, schema }} question={questionOf(call.input) ?? "Your answer"} />;
  }
  return <AnswerForm {...common} schema={schema ?? (isRecord(call.input) ? call.input.schema : undefined)} />;
};

type ApprovalFormProps = Pick<PeoplePartProps, "awaits" | "unread"> & {
  toolCallId: string;
  mayAnswer: boolean;
  isDisabled: boolean;
  answering: Answering;
};

const maxNote = 1000;

/** Why it cannot be approved as it shows; null where it can. */
const unseen = ({ shown }: ApprovalFormProps["awaits"], unread: number): string | null => {
  if (!shown) return "An earlier version asked this. Reload the page to see all that it would do.";
  if (unread === 0) return null;
  return `Read ${unread === 1 ? "the folded text" : `the ${unread} folded texts`} above before you approve.`;
};

/** Approve or reject, with an optional note. It can be approved once all that happens then was on the screen. */
const ApprovalForm = ({ toolCallId, awaits, unread, mayAnswer, isDisabled, answering }: ApprovalFormProps) => {
  const [{ note = "" }, change] = useDrafts(toolCallId);
  const hintId = useId();
  const hint = unseen(awaits, unread);
  const { inputHash = "" } = awaits;
  const decide = (approved: boolean): void => {
    const said = String(note).trim();
    answering.send({ result: { approved, ...(approved && { inputHash }), ...(said === "" ? {} : { note: said }) } });
  };
  return (
    <>
      {mayAnswer && (
        <input
          className="input"
          aria-label="Note"
          placeholder="A note, if you like"
          maxLength={maxNote}
          value={String(note)}
          dir="auto"
          onChange={(event) => change({ note: event.target.value })}
        />
      )}
      {mayAnswer && hint && (
        <p id={hintId} className="small soft">
          {hint}
        </p>
      )}
      <div className="buttons">
        <Button
          look="primary"
          disabled={isDisabled || hint !== null}
          aria-describedby={hint ? hintId : undefined}
          onClick={() => decide(true)}
        >
          Approve
        </Button>
        <Button look="danger" disabled={isDisabled} onClick={() => decide(false)}>
          Reject
        </Button>
      </div>
    </>
  );
};
