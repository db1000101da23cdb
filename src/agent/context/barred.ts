const bar = "  | ";
const lineEnd = /\r\n|[\r\n\u2028\u2029]/;

/**
 * A text that a model wrote of what participants wrote: every line behind a bar, so that none can pass for a line of
 * the runtime's own (S2).
 */
export const barred = (text: string): string =>
  text
    .split(lineEnd)
    .map((line) => `${bar}${line}`.trimEnd())
    .join("\n");

/** The text again. */
export const unbarred = (text: string): string =>
  text
    .split("\n")
    .map((line) => (line.startsWith(bar.trimEnd()) ? line.slice(bar.length) : line))
    .join("\n");
