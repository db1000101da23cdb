import { Button } from "../look/button.tsx";
import { Dialog } from "../look/dialog.tsx";
import "./sign-in.css";

type OtherPersonProps = { person: { name: string }; other: { name: string }; onGoOn: () => void };

/** Another tab has signed somebody else in: this one sends nothing, so that nobody's words go out as another's. */
export const OtherPerson = ({ person, other, onGoOn }: OtherPersonProps) => (
  <div className="other-person raised row" role="alert">
    <p className="grow">
      This browser is signed in as <strong>{other.name}</strong> now. This page is {person.name}'s: it sends nothing
      until {person.name} signs in again. Until then it keeps what was not sent.
    </p>
    <Button look="primary" onClick={onGoOn}>
      Go on as {other.name}
    </Button>
  </div>
);

type SwitchDialogProps = { question: string; onAccept: () => Promise<void>; onDecline: () => void };

/** A link would replace another session: who sends a link must not choose whose words are written. */
export const SwitchDialog = ({ question, onAccept, onDecline }: SwitchDialogProps) => (
  <Dialog
    title="Sign in by this link?"
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
