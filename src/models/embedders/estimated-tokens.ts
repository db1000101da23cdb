const charactersPerToken = 4;

/** What embedding these texts may be billed, where the provider does not say; and before it is asked. */
export const estimatedTokens = (texts: string[]): number =>
  texts.reduce((sum, text) => sum + Math.ceil(text.length / charactersPerToken), 0);
