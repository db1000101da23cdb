/**
 * The bearer token of one person, and how to get a fresh one.
 *
 * Invariants
 * 1. However many callers find the token expired at once, the refresh hook runs once at a time.
 */
export type RefreshToken = () => Promise<string>;

export type Credentials = {
  token(): string;
  /** A fresh token, or null where there is no way to get one. Rejects if the hook does. */
  refresh(): Promise<string | null>;
};

export const createCredentials = (initial: string, refreshToken?: RefreshToken): Credentials => {
  let token = initial;
  let refreshing: Promise<string> | null = null;
  return {
    token: () => token,
    refresh: async () => {
      if (!refreshToken) return null;
      refreshing ??= refreshToken().finally(() => {
        refreshing = null;
      });
      token = await refreshing;
      return token;
    },
  };
};
