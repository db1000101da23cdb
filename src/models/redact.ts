/** What looks like a key or a token: known prefixes, authorization headers, long runs of mixed letters and digits. */
const keyPatterns = [
  /\b(?:bearer|basic)\s+[\w.~+/=-]{6,}/gi,
  /\b(?:sk|pk|rk|gsk|xai|hf|r8|nvapi|key|api[_-]?key)[-_=:][\w-]{6,}/gi,
  /\bAIza[\w-]{10,}/g,
  /\beyJ[\w-]+\.[\w-]+(?:\.[\w-]+)?/g,
  /\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{28,}/g,
  /\/\/[^/\s@]+@/g,
];

const longestQuote = 300;

/** Foreign text on one line, cut, without anything that looks like a key. */
export const redacted = (text: string): string =>
  keyPatterns
    .reduce((result, pattern) => result.replace(pattern, "[redacted]"), text)
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, longestQuote);

/** The provider's own words as an addition to a message, empty if it said none. */
export const quoted = (said: string): string => {
  const text = redacted(said);
  return text === "" ? "" : ` It said: ${JSON.stringify(text)}`;
};
