import { useEffect, useMemo } from "react";
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
      {person && other && <OtherPerson {...{ person, other }} onGoOn={() => goOn(other)} />}
      {state.status === "out" && <SignIn reason={state.reason} onSignIn={signIn} />}
      {offer && <SwitchDialog question={offer.question} onAccept={() => accept(offer)} onDecline={decline} />}
    </Toasts>
  );
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
