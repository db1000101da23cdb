import { type ReactNode, useEffect, useId, useRef } from "react";
import { IconButton } from "./icon.tsx";

type DialogProps = { title: string; onClose: () => void; children: ReactNode };

/**
 * A modal dialog of the platform: it keeps the focus, gives it back, and closes with Escape. The focus begins at the
 * element with `data-initial-focus`.
 */
export const Dialog = ({ title, onClose, children }: DialogProps) => {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
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
      {children}
    </dialog>
  );
};
