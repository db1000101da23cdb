/**
 * The bearer token of one person, and how to get a fresh one.
 *
 * Invariants
 * 1. However many callers find one token refused, the refresh hook runs once for it.
 */
export type RefreshToken = () => Promise<string>;

export type Credentials = {
  token(): string;
  /** Another token than the refused one, or null where there is no way to get one. Rejects if the hook does. */
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
      refreshing ??= refreshToken().finally(() => {
        refreshing = null;
      });
      token = await refreshing;
      return token;
    },
  };
};
