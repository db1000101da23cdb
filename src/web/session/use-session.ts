import { useCallback, useEffect, useState } from "react";
import {
  findSession,
  forgetSession,
  keepSession,
  type SessionState,
  type SignedOutReason,
  sessionOf,
} from "./session.ts";

/** The session of this tab. A link that is opened while the page is open signs in anew. */
export const useSession = (): {
  state: SessionState;
  signIn: (text: string) => void;
  signOut: (reason: SignedOutReason) => void;
} => {
  const [state, setState] = useState(findSession);

  useEffect(() => {
    const follow = (): void => {
      if (location.hash.startsWith("#token=")) setState(findSession());
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  const signIn = useCallback((text: string) => {
    const next = sessionOf(text, Date.now());
    if (next.status === "in") keepSession(next.session);
    setState(next);
  }, []);

  const signOut = useCallback((reason: SignedOutReason) => {
    setState((current) => {
      if (current.status === "in") forgetSession(current.session);
      return { status: "out", reason };
    });
  }, []);

  return { state, signIn, signOut };
};
