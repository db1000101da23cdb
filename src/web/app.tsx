import { useMemo } from "react";
import { createClient } from "../client/index.ts";
import { type Session, type SignedOutReason, useSession } from "./session/session.ts";
import { SignIn } from "./session/sign-in.tsx";
import { SignedInContext } from "./session/signed-in.ts";
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

const SignedInApp = ({ session, onSignOut }: SignedInAppProps) => {
  const { token, entityId } = session;
  const signedIn = useMemo(
    () => ({ client: createClient({ baseUrl: location.origin, token }), entityId, signOut: onSignOut }),
    [token, entityId, onSignOut],
  );
  return (
    <SignedInContext value={signedIn}>
      <Shell />
    </SignedInContext>
  );
};
