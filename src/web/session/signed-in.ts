import { createContext, useContext } from "react";
import type { Client } from "../../client/index.ts";
import type { SignedOutReason } from "./session.ts";

/** The signed-in person and their client, for every part of the page. */
export type SignedIn = { client: Client; entityId: string; signOut: (reason: SignedOutReason) => void };

export const SignedInContext = createContext<SignedIn | null>(null);

export const useSignedIn = (): SignedIn => {
  const signedIn = useContext(SignedInContext);
  if (!signedIn) throw new Error("useSignedIn is for the parts of the page that a signed-in person sees");
  return signedIn;
};
