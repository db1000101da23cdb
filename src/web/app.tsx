import { useEffect, useMemo, useState } from "react";
import { createClient } from "../client/index.ts";
import { closeNotifications } from "./notifications/notices.ts";
import { OtherPerson, SwitchDialog } from "./session/other-person.tsx";
import { SignedInContext, type SignedOutReason, useSession } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { Toasts } from "./toasts/toasts.tsx";

export const App = () => {
  const { state, offer, signIn, signOut, check, goOn, accept, decline } = useSession();
  const { person = null, other = null, madeBy = null } = state.status === "in" ? state : {};
  const isOut = state.status === "out";
  useEffect(() => {
    if (isOut) void closeNotifications();
  }, [isOut]);
  return (
    <Toasts>
      {person && (
        <SignedInApp
          key={person.id}
          entityId={person.id}
          isTheirs={other === null}
          madeBy={madeBy}
          check={check}
          onSignOut={signOut}
        />
      )}
      {state.status === "asked" && <NoAnswerYet />}
      {person && other && <OtherPerson {...{ person, other }} onGoOn={() => goOn(other)} />}
      {state.status === "out" && <SignIn reason={state.reason} onSignIn={signIn} />}
      {offer && <SwitchDialog question={offer.question} onAccept={() => accept(offer)} onDecline={decline} />}
    </Toasts>
  );
};

const patienceMs = 3000;

/** Without a network the page comes from its service worker, and hears from nobody who is signed in. */
const NoAnswerYet = () => {
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), patienceMs);
    return () => clearTimeout(timer);
  }, []);
  return isLate ? (
    <p className="centered soft" role="status">
      Colloquy does not answer. It is asked again until it does: check the connection.
    </p>
  ) : null;
};

type SignedInAppProps = {
  entityId: string;
  isTheirs: boolean;
  madeBy: { name: string } | null;
  check: () => void;
  onSignOut: (entityId: string, reason: SignedOutReason) => void;
};

const SignedInApp = ({ entityId, isTheirs, madeBy, check, onSignOut }: SignedInAppProps) => {
  const client = useMemo(() => createClient({ baseUrl: location.origin, entityId }), [entityId]);
  const signedIn = useMemo(() => {
    const signOut = (reason: SignedOutReason): void => onSignOut(entityId, reason);
    return { client, entityId, isTheirs, madeBy, check, signOut };
  }, [client, entityId, isTheirs, madeBy, check, onSignOut]);
  return (
    <SignedInContext value={signedIn}>
      <Shell />
    </SignedInContext>
  );
};
