import { type ReactNode, startTransition, useActionState, useId, useLayoutEffect, useRef } from "react";
import { messageOf } from "../../client/index.ts";
import { Button, IconButton } from "./button.tsx";

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
  const submit = (): Promise<string | null> => onSubmit().then(() => null, messageOf);
  const [problem, action, isBusy] = useActionState(submit, null);
  // Closed before it leaves the page: a dialog that has left it gives no focus back.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-initial-focus]")?.focus();
    return () => dialog?.close();
  }, []);
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
      <form
        // Not as the form's `action`: React would then reset the form, and untick its boxes, after a refusal.
        onSubmit={(event) => {
          event.preventDefault();
          startTransition(action);
        }}
      >
        {children}
        {problem && (
          <p className="small danger" role="alert" id={dialogProblemId}>
            {problem}
          </p>
        )}
        <div className="row" style={{ justifyContent: "flex-end" }}>
          <Button look="plain" data-initial-focus onClick={onClose}>
            {cancelLabel}
          </Button>
          <Button type="submit" look={isDangerous ? "danger" : "primary"} disabled={isBusy || !isReady}>
            {submitLabel}
          </Button>
        </div>
      </form>
    </dialog>
  );
};
