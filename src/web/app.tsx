import { useMemo } from "react";
import { createClient } from "../client/index.ts";
import { type Session, SignedInContext, type SignedOutReason, useSession } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { Shell } from "./shell/shell.tsx";
import { Toasts } from "./toasts/toasts.tsx";

export const App = () => {
  const { state, signIn, signOut } = useSession();
  return (
    <Toasts>
      {state.status === "in" ? (
        <SignedInApp key={state.session.token} session={state.session} onSignOut={signOut} />
      ) : (
        <SignIn reason={state.reason} onSignIn={signIn} />
      )}
    </Toasts>
  );
};

type SignedInAppProps = { session: Session; onSignOut: (reason: SignedOutReason) => void };

const SignedInApp = ({ session: { token, entityId }, onSignOut: signOut }: SignedInAppProps) => {
  const client = useMemo(() => createClient({ baseUrl: location.origin, token }), [token]);
  const signedIn = useMemo(() => ({ client, entityId, signOut }), [client, entityId, signOut]);
  return (
    <SignedInContext value={signedIn}>
      <Shell />
    </SignedInContext>
  );
};
