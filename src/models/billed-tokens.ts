/** The tokens that a provider says it bills; 0 where it tells none, or nothing that can be. */
export const billedTokens = (told: number | undefined): number =>
  told !== undefined && Number.isFinite(told) && told > 0 ? Math.ceil(told) : 0;

const charactersPerToken = 4;

/** What embedding these texts may be billed, where the provider does not say; and before it is asked. */
export const estimatedTokens = (texts: string[]): number =>
  texts.reduce((sum, text) => sum + Math.ceil(text.length / charactersPerToken), 0);
