import { useRef } from "react";
import type { Member, ToolCall } from "../../client/index.ts";
import { clock, full } from "../look/time.ts";
import { AnswerForm } from "./answer-form.tsx";
import { choiceOf, questionOf } from "./answer-result.ts";
import { ApprovalForm } from "./approval-form.tsx";
import { ChoiceForm } from "./choice-form.tsx";
import { progressOf, type Standing, timeLeft } from "./standing.ts";
import { useAnswer } from "./use-answer.ts";
import { isRecord } from "./value-layout.ts";

type PeoplePartProps = {
  spaceId: string;
  call: ToolCall;
  awaits: NonNullable<ToolCall["awaits"]>;
  members: readonly Member[];
  standing: Standing;
  now: number;
};

/** What people are asked, what they have said so far, and until when they may. */
export const PeoplePart = ({ spaceId, call, awaits, members, standing, now }: PeoplePartProps) => {
  const element = useRef<HTMLDivElement>(null);
  // The controls go: the focus stays at the card that they were in.
  const answering = useAnswer(spaceId, call.id, () => element.current?.closest<HTMLElement>(".call")?.focus());
  const progress = progressOf(call);
  const left = standing ? timeLeft(awaits.expiresAt, now) : null;
  return (
    <div ref={element} className="call-people">
      {awaits.answers.length > 0 && (
        <ul className="call-answers">
          {awaits.answers.map((answer) => (
            <li key={answer.entityId}>
              <strong>{members.find(({ id }) => id === answer.entityId)?.name ?? answer.name}</strong>{" "}
              {wordsOf(answer.approved)}{" "}
              <time className="call-time" dateTime={answer.at} title={full(answer.at)}>
                {clock(answer.at)}
              </time>
              {answer.note && (
                <span className="call-note" dir="auto">
                  {answer.note}
                </span>
              )}
            </li>
          ))}
        </ul>
      )}
      {standing && <Question {...{ call, awaits, standing, answering }} />}
      <div className="call-foot">
        <span role="status">
          {[answering.told, progress, standing && !standing.may ? standing.why : null].filter(Boolean).join(" · ")}
        </span>
        {left && (
          <time dateTime={awaits.expiresAt} title={full(awaits.expiresAt)}>
            Expires {left}
          </time>
        )}
      </div>
    </div>
  );
};

const wordsOf = (approved: boolean | undefined): string =>
  approved === undefined ? "answered" : approved ? "approved" : "rejected";

type QuestionProps = Pick<PeoplePartProps, "call" | "awaits"> & {
  standing: NonNullable<Standing>;
  answering: ReturnType<typeof useAnswer>;
};

const Question = ({ call, awaits, standing, answering }: QuestionProps) => {
  if (awaits.kind === "approval")
    return <ApprovalForm toolCallId={call.id} standing={standing} answering={answering} />;
  const choice = choiceOf(call.input);
  const question = questionOf(call.input) ?? "Your answer";
  const { schema } = awaits;
  if (choice && takesChoice(schema)) {
    return <ChoiceForm toolCallId={call.id} {...{ choice, question, schema, standing, answering }} />;
  }
  const asked = schema ?? (isRecord(call.input) ? call.input.schema : undefined);
  return <AnswerForm toolCallId={call.id} schema={asked} standing={standing} answering={answering} />;
};

/** A schema with more than one property asks for more than a choice. */
const takesChoice = (schema: unknown): boolean =>
  !isRecord(schema) || !isRecord(schema.properties) || Object.keys(schema.properties).length <= 1;
