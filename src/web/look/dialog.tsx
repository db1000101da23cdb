import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { messageOf } from "../../client/index.ts";
import { IconButton } from "./icon.tsx";

type DialogProps = {
  title: string;
  cancelLabel: string;
  submitLabel: string;
  isDangerous?: boolean;
  isReady?: boolean;
  onClose: () => void;
  /** If this rejects, the dialog stays open and shows why. */
  onSubmit: () => Promise<void>;
  children: ReactNode;
};

/** For the field that a problem is about; one dialog is open at a time. */
export const dialogProblemId = "dialog-problem";

/**
 * A form in a modal dialog of the platform: it keeps the focus, gives it back, and closes with Escape. The focus begins
 * at the first element with `data-initial-focus`, else at the button that cancels.
 */
export const Dialog = (props: DialogProps) => {
  const { title, cancelLabel, submitLabel, isDangerous = false, isReady = true, onClose, onSubmit, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-initial-focus]")?.focus();
    return () => dialog?.close();
  }, []);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await onSubmit();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <dialog
      ref={element}
      className="dialog raised"
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <div className="dialog-head row between">
        <h2 id={titleId} className="title">
          {title}
        </h2>
        <IconButton icon="close" label="Close" onClick={onClose} />
      </div>
      <form className="dialog-body" onSubmit={(event) => void submit(event)}>
        {children}
        {problem && (
          <p className="field-error" role="alert" id={dialogProblemId}>
            {problem}
          </p>
        )}
        <div className="dialog-actions">
          <button type="button" className="button button-plain" data-initial-focus onClick={onClose}>
            {cancelLabel}
          </button>
          <button
            type="submit"
            className={isDangerous ? "button button-danger" : "button button-primary"}
            disabled={isBusy || !isReady}
          >
            {submitLabel}
          </button>
        </div>
      </form>
    </dialog>
  );
};
