import { readToken, type TokenClaims } from "../../client/index.ts";
import { recall, remember } from "./storage.ts";

/** Who is signed in, by the token that came with the link. */
export type Session = { token: string } & TokenClaims;

export type SignedOutReason = "new" | "expired" | "refused" | "not_a_token" | "left";

export type SessionState = { status: "in"; session: Session } | { status: "out"; reason: SignedOutReason };

const key = "colloquy.token";

/** A session from what a person has: a token, or a whole sign-in link. */
export const sessionOf = (text: string, now: number): SessionState => {
  const token = text.trim().replace(/^.*#token=/s, "");
  const claims = readToken(token);
  if (!claims) return { status: "out", reason: "not_a_token" };
  return claims.expiresAt <= now
    ? { status: "out", reason: "expired" }
    : { status: "in", session: { token, ...claims } };
};

/** Takes the token out of the address bar, so that it is neither seen, shared nor kept in the history. */
const takeFromAddress = (): string | null => {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname + location.search);
  return token;
};

/**
 * The tab's own session before the browser's: two tabs can be two people, and a new tab is whoever signed in last.
 */
export const findSession = (): SessionState => {
  const token = takeFromAddress() ?? recall("tab", key) ?? recall("kept", key);
  if (token === null) return { status: "out", reason: "new" };
  const state = sessionOf(token, Date.now());
  if (state.status === "in") keepSession(state.session);
  return state;
};

export const keepSession = (session: Session): void => {
  remember("tab", key, session.token);
  remember("kept", key, session.token);
};

export const forgetSession = (session: Session): void => {
  remember("tab", key, null);
  if (recall("kept", key) === session.token) remember("kept", key, null);
};
