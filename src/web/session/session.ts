import { createContext, use, useCallback, useEffect, useState } from "react";
import { type Client, type ConnectionState, readToken, type TokenClaims } from "../../client/index.ts";
import { recall, remember } from "../storage.ts";

/** The signed-in person, by the token of their link. */
export type Session = { token: string } & TokenClaims;

export type SignedOutReason = "new" | "expired" | "refused" | "not_a_token" | "left";

export type SessionState = { status: "in"; session: Session } | { status: "out"; reason: SignedOutReason };

/** The session of this tab. A link that is opened while the page is open signs in anew. */
export const useSession = () => {
  const [state, setState] = useState(findSession);

  useEffect(() => {
    const follow = (): void => {
      if (location.hash.startsWith("#token=")) setState(findSession());
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  const signIn = useCallback((text: string): void => setState(keptSession(text)), []);

  const signOut = useCallback((reason: SignedOutReason): void => {
    setState((current) => {
      if (current.status === "in") forget(current.session);
      return { status: "out", reason };
    });
  }, []);

  return { state, signIn, signOut };
};

const key = "colloquy.token";

/**
 * The tab's own session, else the browser's. So two tabs can be two people, and a new tab is the last who signed in.
 */
const findSession = (): SessionState => {
  const token = takeFromAddress() ?? recall("tab", key) ?? recall("kept", key);
  return token === null ? { status: "out", reason: "new" } : keptSession(token);
};

/** Takes the token out of the address bar, so that it is neither seen, shared nor kept in the history. */
const takeFromAddress = (): string | null => {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
};

const keptSession = (text: string): SessionState => {
  const state = sessionOf(text, Date.now());
  if (state.status === "in") {
    remember("tab", key, state.session.token);
    remember("kept", key, state.session.token);
  }
  return state;
};

const forget = ({ token }: Session): void => {
  remember("tab", key, null);
  if (recall("kept", key) === token) remember("kept", key, null);
};

/** A session from a token, or from a whole sign-in link. */
export const sessionOf = (text: string, now: number): SessionState => {
  const token = text.trim().replace(/^.*#token=/s, "");
  const claims = readToken(token);
  if (!claims) return { status: "out", reason: "not_a_token" };
  if (claims.expiresAt <= now) return { status: "out", reason: "expired" };
  return { status: "in", session: { token, ...claims } };
};

/** The signed-in person and their client, for every part of the page. */
export type SignedIn = { client: Client; entityId: string; signOut: (reason: SignedOutReason) => void };

export const SignedInContext = createContext<SignedIn | null>(null);

export const useSignedIn = (): SignedIn => {
  const signedIn = use(SignedInContext);
  if (!signedIn) throw new Error("useSignedIn is for the parts of the page that a signed-in person sees");
  return signedIn;
};

/** Signs out once a stream has ended because no valid token is left. */
export const useSignedOut = (connection: ConnectionState): void => {
  const { signOut } = useSignedIn();
  const hasEnded = connection.status === "closed" && connection.reason === "signed_out";
  useEffect(() => {
    if (hasEnded) signOut("expired");
  }, [hasEnded, signOut]);
};
