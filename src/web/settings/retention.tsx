import { useState } from "react";
import { Dialog } from "../look/dialog.tsx";

/** How long messages stay, in words. */
export const keptWords = (days: number | undefined): string =>
  days === undefined
    ? "Messages stay for ever."
    : `Messages are deleted ${days === 1 ? "a day" : `${days} days`} after they were said.`;

type RetentionDialogProps = {
  title: string;
  days: number | undefined;
  /** The rule that holds where no days are set, in words. */
  otherwise: string;
  save: (days: number | null) => Promise<unknown>;
  onClose: () => void;
};

/** Sets after how many days the messages of a space, or of a whole workspace, are deleted. */
export const RetentionDialog = ({ title, days, otherwise, save, onClose }: RetentionDialogProps) => {
  const [text, setText] = useState(days === undefined ? "" : String(days));
  const submit = async (): Promise<void> => {
    await save(text === "" ? null : Number(text));
    onClose();
  };
  return (
    <Dialog {...{ title, onClose }} cancelLabel="Cancel" submitLabel="Save" isDangerous={text !== ""} onSubmit={submit}>
      <label className="field">
        <span className="field-label">Days that messages stay</span>
        <input
          className="input"
          type="number"
          min={1}
          max={3650}
          data-initial-focus
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      </label>
      <p className="small soft">Left empty: {otherwise}</p>
      {text !== "" && (
        <p>
          Within an hour, older messages are deleted as if an admin did it, and agents forget them. This cannot be
          undone.
        </p>
      )}
    </Dialog>
  );
};
