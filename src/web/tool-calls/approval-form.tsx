import { useId } from "react";
import type { Standing } from "./standing.ts";
import type { Answering } from "./use-answer.ts";
import { useDrafts } from "./use-drafts.ts";

type ApprovalFormProps = { toolCallId: string; standing: NonNullable<Standing>; answering: Answering };

const maxNote = 1000;

/** Approve or reject, with a word on it. */
export const ApprovalForm = ({ toolCallId, standing, answering }: ApprovalFormProps) => {
  const [{ note = "" }, change] = useDrafts(toolCallId);
  const noteId = useId();
  const isDisabled = !standing.may || answering.isSending;
  const decide = (approved: boolean): void => {
    const said = String(note).trim();
    answering.send({ result: { approved, ...(said === "" ? {} : { note: said }) } });
  };
  return (
    <>
      {standing.may && (
        <div className="field">
          <label className="visually-hidden" htmlFor={noteId}>
            Note
          </label>
          <input
            id={noteId}
            className="input"
            placeholder="A note, if you like"
            maxLength={maxNote}
            value={String(note)}
            dir="auto"
            onChange={(event) => change({ note: event.target.value })}
          />
        </div>
      )}
      <div className="call-buttons">
        <button type="button" className="button button-primary" disabled={isDisabled} onClick={() => decide(true)}>
          Approve
        </button>
        <button type="button" className="button button-danger" disabled={isDisabled} onClick={() => decide(false)}>
          Reject
        </button>
      </div>
    </>
  );
};
