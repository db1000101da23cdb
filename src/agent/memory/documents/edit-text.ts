import { RE2JS, RE2JSException } from "re2js";
import { maxBlockCharacters } from "../../../protocol/block-schema.ts";
import { applyPatch } from "./apply-patch.ts";
import type { OperationOn } from "./parts.ts";
import { changesBetween, fewerSplices, type Splice } from "./text-changes.ts";
import { quoted, refusedEdit, textTooLong } from "./values.ts";

type Edited = { splices: Splice[]; message: string };

/** Refuses what is larger than any block before it is made: what is within is held to its `charLimit` when all is done. */
const requireRoom = (text: string, splices: Splice[]): void => {
  const length = splices.reduce((sum, { remove, insert }) => sum + insert.length - remove, text.length);
  // In units of UTF-16, of which a character has two at most.
  if (length > 2 * maxBlockCharacters) throw textTooLong(length);
};

const occurrences = (text: string, old: string, atMost: number): number[] => {
  const found: number[] = [];
  for (let at = text.indexOf(old); at >= 0 && found.length < atMost; at = text.indexOf(old, at + old.length)) {
    found.push(at);
  }
  return found;
};

const replaced = (
  text: string,
  { old, new: next, mode, n = 1 }: Extract<OperationOn<"text">, { op: "replace_text" }>,
  label: string,
): Edited => {
  const said = `'${quoted(old)}' with '${quoted(next)}' in '${label}'`;
  if (mode === "regex") {
    const { found, ...splice } = replacePattern(text, old, next);
    const message = `Replaced regex match '${quoted(found)}' with '${quoted(next)}' in '${label}'`;
    return { splices: [splice], message };
  }
  const wanted = mode === "all" ? Number.POSITIVE_INFINITY : mode === "nth" ? n : 1;
  const places = occurrences(text, old, wanted);
  if (places.length === 0) throw refusedEdit(`Text not found: '${quoted(old)}'`);
  const splices = places.map((at) => ({ at, remove: old.length, insert: next }));
  if (mode === "all") return { splices, message: `Replaced ${places.length} occurrence(s) of ${said}` };
  if (mode === "first") return { splices, message: `Replaced first occurrence of ${said}` };
  if (places.length < n) {
    throw refusedEdit(`Occurrence #${n} of '${quoted(old)}' not found: there are ${places.length}`);
  }
  return { splices: splices.slice(-1), message: `Replaced occurrence #${n} of ${said}` };
};

const withRange = (text: string, startLine: number, endLine: number, next: string): string => {
  const ended = text.endsWith("\n");
  const lines = (ended ? text.slice(0, -1) : text).split("\n");
  if (text === "") lines.pop();
  if (endLine > lines.length) {
    throw refusedEdit(`Lines ${startLine}-${endLine} out of bounds (the text has ${lines.length} lines)`);
  }
  const added = next === "" ? [] : (next.endsWith("\n") ? next.slice(0, -1) : next).split("\n");
  const all = [...lines.slice(0, startLine - 1), ...added, ...lines.slice(endLine)];
  return all.join("\n") + (ended && all.length > 0 ? "\n" : "");
};

type Rewriting = Exclude<OperationOn<"text">, { op: "replace_text" }>;

/** The text that an operation makes of another, and what it did, in words. */
const rewritten = (text: string, operation: Rewriting, label: string): [next: string, message: string] => {
  switch (operation.op) {
    case "set_text":
      return [operation.text, `Set the text of block '${label}'`];
    case "append_text":
      return [text + operation.text, `Appended to block '${label}'`];
    case "edit_range": {
      const { startLine, endLine } = operation;
      const next = changeLines(text, operation.text, (lines, by) => withRange(lines, startLine, endLine, by));
      return [next, `Replaced lines ${startLine}-${endLine} in block '${label}'`];
    }
    case "patch": {
      let applied = 0;
      const next = changeLines(text, operation.patch, (lines, by) => {
        const patched = applyPatch(lines, by);
        applied = patched.hunks;
        return patched.text;
      });
      return [next, `Applied ${applied} hunk(s) to block '${label}'`];
    }
  }
};

/** The splices that an operation makes in a text. Throws `text_too_long` where that would outgrow every block. */
export const editText = (text: string, operation: OperationOn<"text">, label: string): Edited => {
  if (operation.op === "replace_text") {
    const { splices, message } = replaced(text, operation, label);
    requireRoom(text, splices);
    return { splices: fewerSplices(text, splices), message };
  }
  const [next, message] = rewritten(text, operation, label);
  const splices = changesBetween(text, next);
  requireRoom(text, splices);
  return { splices, message };
};

/** Whether every line break of a text is CRLF. */
const isCrlf = (text: string): boolean => text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);

const toLf = (text: string): string => text.replaceAll("\r\n", "\n");

/**
 * Changes a text by its lines: one whose breaks are all CRLF keeps them, whatever breaks `by` has. In one without CRLF
 * those of `by` are taken for plain ones where all of them are CRLF.
 */
const changeLines = (text: string, by: string, change: (text: string, by: string) => string): string => {
  if (isCrlf(text)) return change(toLf(text), toLf(by)).replaceAll("\n", "\r\n");
  return change(text, !text.includes("\r\n") && isCrlf(by) ? toLf(by) : by);
};

/** The most that a match may cost: the program's size times the text's length. RE2 never backtracks. */
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
const replacePattern = (text: string, pattern: string, next: string): Splice & { found: string } => {
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
