import { escapeInvisible } from "./invisible.ts";

/**
 * Foreign text stands in a prompt in one of two ways, so that no line of it passes for the runtime's own (S2, C4). It
 * is a JSON string on one line, or has a bar before every line. Either way invisible characters are escapes (C5).
 */
const separators = /[\u2028\u2029]/g;

const byCode = (character: string): string => `\\u{${character.charCodeAt(0).toString(16).toUpperCase()}}`;

/** Characters of most texts, all of them visible. They are tested first, since composing asks for every line. */
const seen =
  /^[\t\n\r -~\u00a0-\u00ac\u00ae-\u034e\u0370-\u061b\u061d-\u10ff\u2010-\u2027\u2030-\u205e\u2070-\u27ff\u2801-\u2fff\u3000-\u3163\u3165-\ud7ff\ue000-\ufdff]*$/;

/** The text with every character shown: those that nobody sees, and Unicode's own line ends, as escapes. */
export const visible = (text: string): string =>
  seen.test(text) ? text : escapeInvisible(text).replace(separators, byCode);

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json | undefined };

/** The same for each text in a value, its keys too. */
export const visibleJson = (value: Json): Json => {
  if (typeof value === "string") return visible(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(visibleJson);
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [visible(key), visibleJson(held ?? null)]));
};

/** Escapes of JSON, and ours, which JSON does not have. */
const escapes = /\\(?:u\{([\dA-F]+)\}|.)/g;

const asJsonEscape = (found: string, code?: string): string =>
  code === undefined
    ? found
    : String.fromCodePoint(Number.parseInt(code, 16)).replace(
        /[\s\S]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );

/** A value as JSON on one line. `JSON.parse` of it gives the value again, always. */
export const quoteJson = (value: unknown): string => {
  const json = JSON.stringify(value) ?? "null";
  const shown = visible(json);
  return shown === json ? json : shown.replace(escapes, asJsonEscape);
};

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

const bar = "  | ";
const emptyBar = bar.trimEnd();
/** What readers take for the end of a line, unless it is escaped. */
const lineEnd = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;

export const linesIn = (text: string): string[] => text.split(lineEnd);

/** Puts a bar before every line of a text, so that no line of it passes for the runtime's own (S2, C4). */
export const quoteLines = (text: string): string =>
  linesIn(text)
    .map((each) => (each === "" ? emptyBar : `${bar}${visible(each)}`))
    .join("\n");

/** The line without its bar; undefined where it has none. */
export const unquoteLine = (written: string): string | undefined =>
  written.startsWith(emptyBar) ? written.slice(bar.length) : undefined;

export const unquoteLines = (written: string): string =>
  written
    .split("\n")
    .map((each) => unquoteLine(each) ?? each)
    .join("\n");
