import { Dialog } from "../look/dialog.tsx";

type SwitchDialogProps = { question: string; onAccept: () => Promise<void>; onDecline: () => void };

/** A link was opened while somebody else is signed in: who sends a link must not choose whose words are written. */
export const SwitchDialog = ({ question, onAccept, onDecline }: SwitchDialogProps) => (
  <Dialog
    title="Sign in as somebody else?"
    cancelLabel="Stay"
    submitLabel="Sign in instead"
    onClose={onDecline}
    onSubmit={onAccept}
  >
    <p>{question}</p>
    <p className="small soft">
      Whoever made the link can read what you write there. Accept only a link that you asked for.
    </p>
  </Dialog>
);
