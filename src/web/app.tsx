import { useMemo } from "react";
import { createClient } from "../client/index.ts";
import { SignedInContext, type SignedOutReason, useSession } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { SwitchDialog } from "./session/switch-dialog.tsx";
import { Shell } from "./shell/shell.tsx";
import { Toasts } from "./toasts/toasts.tsx";

export const App = () => {
  const { state, offer, signIn, signOut, accept, decline } = useSession();
  return (
    <Toasts>
      {state.status === "in" && <SignedInApp key={state.entityId} entityId={state.entityId} onSignOut={signOut} />}
      {state.status === "out" && <SignIn reason={state.reason} onSignIn={signIn} />}
      {offer && <SwitchDialog question={offer.question} onAccept={() => accept(offer)} onDecline={decline} />}
    </Toasts>
  );
};

type SignedInAppProps = { entityId: string; onSignOut: (reason: SignedOutReason) => void };

const SignedInApp = ({ entityId, onSignOut: signOut }: SignedInAppProps) => {
  const client = useMemo(() => createClient({ baseUrl: location.origin, entityId }), [entityId]);
  const signedIn = useMemo(() => ({ client, entityId, signOut }), [client, entityId, signOut]);
  return (
    <SignedInContext value={signedIn}>
      <Shell />
    </SignedInContext>
  );
};
