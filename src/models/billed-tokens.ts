/** The tokens that a provider reports as billed; 0 where it reports none, or an impossible number. */
export const billedTokens = (told: number | undefined): number =>
  told !== undefined && Number.isFinite(told) && told > 0 ? Math.ceil(told) : 0;

const charactersPerToken = 4;

/** An estimate for embedding these texts: before the call, and where the provider reports no usage. */
export const estimatedTokens = (texts: string[]): number =>
  texts.reduce((sum, text) => sum + Math.ceil(text.length / charactersPerToken), 0);
