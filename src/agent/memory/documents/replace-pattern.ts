import { RE2JS, RE2JSException } from "re2js";
import { refusedEdit } from "./refused-edit.ts";
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

/** The change that replaces the first match of an RE2 pattern; `$1` and `$0` in `next` stand for its groups, `$$` for `$`. */
export const replacePattern = (text: string, pattern: string, next: string): Splice & { found: string } => {
  const regex = compiled(pattern);
  if (regex.programSize() * text.length > maxSteps) {
    throw refusedEdit(`the pattern is too large for a text of ${text.length} characters: shorten it`);
  }
  const matcher = regex.matcher(text);
  if (!matcher.find()) throw refusedEdit(`Pattern not found: '${pattern}'`);
  const found = matcher.group(0) ?? "";
  const insert = next.replace(/\$(\$|\d{1,2})/g, (whole, what: string) => {
    if (what === "$") return "$";
    return Number(what) <= matcher.groupCount() ? (matcher.group(Number(what)) ?? "") : whole;
  });
  const at = matcher.start(0);
  return { at, remove: matcher.end(0) - at, insert, found };
};
