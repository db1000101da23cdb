import { createContext, use, useCallback, useEffect, useRef, useState } from "react";
import { browserSession, type Client, ColloquyError, type ConnectionState } from "../../client/index.ts";
import { remember } from "../storage.ts";

/**
 * Who is signed in. The session is the browser's: a cookie that this page cannot read.
 *
 * Invariants
 * 1. A link never replaces a session before its person has agreed.
 * 2. A tab is one person's. If the browser's session becomes another's, the tab sends nothing, keeps what was written,
 *    and says so. That ends when its person is back or somebody says "Go on". The server refuses what still comes.
 * 3. One request about the session at a time: what was asked before a sign-in never overwrites it.
 */
export type SignedOutReason = "new" | "expired" | "refused" | "not_a_link" | "left" | "perhaps_left";

type Person = { id: string; name: string };

export type SessionState =
  | { status: "asked" }
  /** `other`: whose the browser's session is by now, if it is not this person's. `madeBy`: the admin who made it. */
  | { status: "in"; person: Person; other: Person | null; madeBy: Person | null }
  | { status: "out"; reason: SignedOutReason };

/** A link that would replace the browser's session, so that its person is asked first. */
export type Offer = { question: string; code: string };

const isRefusal = (error: unknown, ...codes: string[]): boolean =>
  error instanceof ColloquyError && codes.includes(error.code);

let turn: Promise<void> = Promise.resolve();
const inTurn = (work: () => Promise<void>): Promise<void> => {
  turn = turn.then(work, work);
  return turn;
};

const retryMs = 2_000;
const pause = (): Promise<void> => new Promise((resume) => setTimeout(resume, retryMs));

/** Asks whose the browser's session is. A server that cannot be reached is asked until it can. */
const findSession = async (reason: SignedOutReason): Promise<SessionState> => {
  for (;;) {
    try {
      const session = await sessions().current();
      if (!session) return { status: "out", reason };
      return { status: "in", person: session.entity, other: null, madeBy: session.madeBy };
    } catch (error) {
      if (!isRefusal(error, "unavailable", "rate_limited")) return { status: "out", reason: "refused" };
      await pause();
    }
  }
};

const sessions = (entityId?: string) => browserSession(location.origin, entityId);

/** What a tab shows once it has heard whose the session is. */
const follow =
  (found: SessionState) =>
  (shown: SessionState): SessionState =>
    shown.status === "in" && found.status === "in" && found.person.id !== shown.person.id
      ? { ...shown, other: found.person }
      : found;

/** Tells the other tabs that the browser's session has changed. */
const otherTabs = "BroadcastChannel" in globalThis ? new BroadcastChannel("colloquy.session") : null;

export const useSession = () => {
  const [state, setState] = useState<SessionState>({ status: "asked" });
  const [offer, setOffer] = useState<Offer | null>(null);
  const hasBegun = useRef(false);

  const signInBy = useCallback(async (code: string, replace: boolean): Promise<void> => {
    const { entity, madeBy } = await sessions().signIn(code, replace);
    setOffer(null);
    setState({ status: "in", person: entity, other: null, madeBy });
    otherTabs?.postMessage("changed");
  }, []);

  const signIn = useCallback(
    (text: string): Promise<void> =>
      inTurn(async () => {
        const code = codeIn(text);
        if (code === null) return setState({ status: "out", reason: "not_a_link" });
        try {
          await signInBy(code, false);
        } catch (error) {
          if (error instanceof ColloquyError && error.code === "signed_in") setOffer({ question: error.message, code });
          setState(follow(await findSession("refused")));
        }
      }),
    [signInBy],
  );
  const ask = useCallback(
    (reason: SignedOutReason) => inTurn(async () => setState(follow(await findSession(reason)))),
    [],
  );

  useEffect(() => {
    const begin = (): void => {
      const code = takeFromAddress();
      if (code !== null) void signIn(code);
      else void ask("new");
    };
    const beginAgain = (): void => {
      if (location.hash.startsWith(mark)) begin();
    };
    const askAgain = (): void => void ask("left");
    // Earlier versions kept a token where scripts read it.
    for (const drawer of ["tab", "kept"] as const) remember(drawer, "colloquy.token", null);
    // An effect may run twice, and a link is there once.
    if (!hasBegun.current) begin();
    hasBegun.current = true;
    addEventListener("hashchange", beginAgain);
    otherTabs?.addEventListener("message", askAgain);
    return () => {
      removeEventListener("hashchange", beginAgain);
      otherTabs?.removeEventListener("message", askAgain);
    };
  }, [signIn, ask]);

  const signOut = useCallback((entityId: string, reason: SignedOutReason): void => {
    void inTurn(async () => {
      try {
        await sessions(entityId).signOut();
        setState({ status: "out", reason });
      } catch (error) {
        // Nobody signs out whom another tab has signed in.
        if (isRefusal(error, "signed_in")) return setState(follow(await findSession(reason)));
        setState({ status: "out", reason: reason === "left" ? "perhaps_left" : reason });
      }
      otherTabs?.postMessage("changed");
    });
  }, []);

  return {
    state,
    offer,
    signIn,
    signOut,
    /** Asks again whose the session is. */
    check: useCallback((): void => void ask("left"), [ask]),
    /** The tab becomes the other person's. */
    goOn: (other: Person): void => {
      setState({ status: "in", person: other, other: null, madeBy: null });
      void ask("left");
    },
    accept: ({ code }: Offer) => signInBy(code, true),
    decline: () => setOffer(null),
  };
};

const mark = "#sign-in=";

/** Takes the code out of the address bar, so that it is neither seen, shared nor kept in the history. */
const takeFromAddress = (): string | null => {
  if (!location.hash.startsWith(mark)) return null;
  const code = location.hash.slice(mark.length);
  history.replaceState(null, "", location.pathname + location.search);
  return code;
};

/** The code in a whole sign-in link, or in what stands after its mark; null where there is none. */
export const codeIn = (text: string): string | null => /si_wsp_\w{34}_[\w-]{43}(?![\w-])/.exec(text)?.[0] ?? null;

/** The signed-in person and their client, for every part of the page. */
export type SignedIn = {
  client: Client;
  entityId: string;
  /** Whether the browser's session is this person's, as far as this tab has heard. */
  isTheirs: boolean;
  /** The admin who made the session for this person, where one did: it approves nothing. */
  madeBy: { name: string } | null;
  check: () => void;
  signOut: (reason: SignedOutReason) => void;
};

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
