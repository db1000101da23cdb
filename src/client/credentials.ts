import { ColloquyError } from "../shared/errors.ts";

/**
 * The bearer token of one person, and how to get a fresh one.
 *
 * Invariants
 * 1. However many callers find one token refused, the refresh hook runs once for it.
 */
export type RefreshToken = () => Promise<string>;

export type Credentials = {
  token(): string;
  /** Another token than the refused one, or null where there is no way to get one; `unavailable` if the hook fails. */
  refresh(refused: string): Promise<string | null>;
};

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
