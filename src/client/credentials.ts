import * as z from "zod";
import { entityId, workspaceId } from "../protocol/ids.ts";
import { ColloquyError } from "../shared/errors.ts";

/**
 * The bearer token of one person, and how to get a fresh one. An empty one stands for the browser's session, whose
 * cookie no script reads.
 *
 * Invariants
 * 1. The refresh hook runs once for each refused token, however many callers ask.
 */
export type Credentials = {
  token(): string;
  /** A token other than the refused one, or null without a refresh hook. Rejects with `unavailable` if the hook fails. */
  refresh(refused: string): Promise<string | null>;
};

export type RefreshToken = () => Promise<string>;

export const createCredentials = (initial: string, refreshToken?: RefreshToken): Credentials => {
  let token = initial;
  let refreshing: Promise<string> | null = null;
  return {
    token: () => token,
    refresh: async (refused) => {
      if (token !== refused) return token;
      if (!refreshToken) return null;
      refreshing ??= fresh(refreshToken).finally(() => {
        refreshing = null;
      });
      token = await refreshing;
      return token;
    },
  };
};

const fresh = async (refreshToken: RefreshToken): Promise<string> => {
  try {
    return await refreshToken();
  } catch (cause) {
    if (cause instanceof ColloquyError) throw cause;
    throw new ColloquyError("unavailable", "The token has expired and a new one could not be had. Try again.", {
      cause,
    });
  }
};

/** The bearer, as the token names them. Only for display: only the server can verify a token. */
export type TokenClaims = { entityId: string; workspaceId: string; expiresAt: number };

const Claims = z
  .object({ sub: entityId, wsp: workspaceId, exp: z.number() })
  .transform(({ sub, wsp, exp }): TokenClaims => ({ entityId: sub, workspaceId: wsp, expiresAt: exp * 1000 }));

const decodeBase64Url = (text: string): string => {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(Uint8Array.from(binary, (character) => character.charCodeAt(0)));
};

/** The claims of an entity's token, or null if the text is no such token. `expiresAt` is in milliseconds. */
export const readToken = (token: string): TokenClaims | null => {
  try {
    return Claims.parse(JSON.parse(decodeBase64Url(token.split(".")[1] ?? "")));
  } catch {
    return null; // not base64, not JSON, or other claims: no token of Colloquy
  }
};
