import { RE2JS, RE2JSException } from "re2js";
import { maxBlockCharacters } from "../../../protocol/block-schema.ts";
import { quoted } from "./in-words.ts";
import { refusedEdit, textTooLong } from "./refused-edit.ts";
import type { Splice } from "./text-changes.ts";

/** What a match may cost: the size of the program times the text that it runs over. It never backtracks. */
const maxSteps = 20_000_000;

const compiled = (pattern: string): RE2JS => {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    if (error instanceof RE2JSException) throw refusedEdit(`not a regular expression of RE2: ${error.message}`);
    throw error;
  }
};

/** `next` with its groups filled in; what is no group stays. A group may be long and named often: it is measured first. */
const filledIn = (next: string, group: (index: number) => string | undefined): string => {
  const pieces = next.split(/(\$\$|\$\d{1,2})/).map((piece, index) => {
    if (index % 2 === 0) return piece;
    return piece === "$$" ? "$" : (group(Number(piece.slice(1))) ?? piece);
  });
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length > 2 * maxBlockCharacters) throw textTooLong(length);
  return pieces.join("");
};

/** The change that replaces the first match of an RE2 pattern; `$1` and `$0` in `next` stand for its groups, `$$` for `$`. */
export const replacePattern = (text: string, pattern: string, next: string): Splice & { found: string } => {
  const regex = compiled(pattern);
  if (regex.programSize() * text.length > maxSteps) {
    throw refusedEdit(`the pattern is too large for a text of ${text.length} characters: shorten it`);
  }
  const matcher = regex.matcher(text);
  if (!matcher.find()) throw refusedEdit(`Pattern not found: '${quoted(pattern)}'`);
  const found = matcher.group(0) ?? "";
  const insert = filledIn(next, (group) => (group <= matcher.groupCount() ? (matcher.group(group) ?? "") : undefined));
  const at = matcher.start(0);
  return { at, remove: matcher.end(0) - at, insert, found };
};
