/**
 * Names and texts come from participants. Each is written into a prompt as a JSON string on one line, so that nobody
 * can write a line of the runtime's own, or hide one: line separators, bidi controls and other invisible control
 * characters are escaped too. `JSON.parse` of what `quote` gives is the text again, always (S2).
 */
const invisible = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A payload as JSON on one line, with the same characters escaped. */
export const quoteJson = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replace(
    invisible,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

export const quote = (text: string): string => quoteJson(text);

/** A label, a cron or a time zone as it is. Any other text is quoted, so that it cannot pass for more (S2). */
export const plain = (text: string): string =>
  /^[A-Za-z0-9_*?#@/,.+-]+(?: [A-Za-z0-9_*?#@/,.+-]+)*$/.test(text) ? text : quote(text);

/** The first `length` characters, with an ellipsis if more follow; never half of a surrogate pair. */
export const excerpt = (text: string, length: number): string => {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length).join("")}…`;
};

/** The value that a line is the JSON of; undefined where it is none. */
export const jsonOf = (line: string): unknown => {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
};

/** The beginning of a text, quoted. Escapes make it a quarter longer than `length` at most, or it is empty. */
export const brief = (text: string, length: number): string => {
  let shown = length;
  while (shown > 0 && quote(excerpt(text, shown)).length > length * 1.25 + 3) shown = Math.floor(shown / 2);
  return quote(excerpt(text, shown));
};

/** JSON that is whole and short stands as it is. Of any other text its beginning stands, quoted. */
export const briefJson = (text: string, length: number): string => {
  const value = text.length <= length ? jsonOf(text) : undefined;
  return value === undefined ? brief(text, length) : quoteJson(value);
};
