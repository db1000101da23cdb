/** The tokens that a provider says it bills; 0 where it tells none, or nothing that can be. */
export const billedTokens = (told: number | undefined): number =>
  told !== undefined && Number.isFinite(told) && told > 0 ? Math.ceil(told) : 0;
