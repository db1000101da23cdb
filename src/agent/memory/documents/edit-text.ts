import { parsePatch } from "diff";
import { RE2JS, RE2JSException } from "re2js";
import type { ContentOperation } from "../../../protocol/block-operation.ts";
import { maxBlockCharacters } from "../../../protocol/block-schema.ts";
import { isAffordable } from "../../../shared/check-budget.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { applySplices, changesBetween, fewerSplices, type Splice } from "./text-changes.ts";
import { linesOf, quoted, refusedEdit } from "./values.ts";

type TextOperation = Extract<
  ContentOperation,
  { op: "set_text" | "append_text" | "replace_text" | "edit_range" | "patch" }
>;
type Replacement = Extract<ContentOperation, { op: "replace_text" }>;

/** Throws where a text would be longer than any block's, before it is built. */
const requireRoom = (length: number): void => {
  // In units of UTF-16, of which a character has two at most.
  if (length <= 2 * maxBlockCharacters) return;
  const message = `The text would have ${length} characters; a block holds at most ${maxBlockCharacters} (maxBlockCharacters)`;
  throw new ColloquyError("text_too_long", message);
};

/** The splices that an operation makes in a text, and what it did, in words. Throws `text_too_long` for what no block holds. */
export const editText = (text: string, operation: TextOperation, label: string) => {
  const { splices, message } = changesOf(text, operation, label);
  requireRoom(splices.reduce((sum, { remove, insert }) => sum + insert.length - remove, text.length));
  const fewer = fewerSplices(text, splices);
  if (!isAffordable("maxEditSplices", fewer.length)) {
    throw refusedEdit(
      "The edit's changes are too large together: make fewer of its operations at once (maxEditSplices)",
    );
  }
  return { next: applySplices(text, splices), splices: fewer, message };
};

type Changes = { splices: Splice[]; message: string };

const changesOf = (text: string, operation: TextOperation, label: string): Changes => {
  switch (operation.op) {
    case "set_text":
      return { splices: changesBetween(text, operation.text), message: `Set the text of block '${label}'` };
    case "append_text": {
      const splice = { at: text.length, remove: 0, insert: operation.text };
      return { splices: [splice], message: `Appended to block '${label}'` };
    }
    case "replace_text":
      return operation.mode === "regex" ? replacedMatch(text, operation, label) : replaced(text, operation, label);
    case "edit_range": {
      const { startLine, endLine } = operation;
      const by = withBreaksOf(text, operation.text);
      const splices = changedLines(text, (plain) => withRange(plain, startLine, endLine, by));
      return { splices, message: `Replaced lines ${startLine}-${endLine} in block '${label}'` };
    }
    case "patch": {
      const hunks = hunksOf(withBreaksOf(text, operation.patch));
      const splices = changedLines(text, (plain) => patched(plain, hunks));
      return { splices, message: `Applied ${hunks.length} hunk(s) to block '${label}'` };
    }
  }
};

const replaced = (text: string, { old, new: next, mode, n = 1 }: Replacement, label: string): Changes => {
  const said = `'${quoted(old)}' with '${quoted(next)}' in '${label}'`;
  const wanted = mode === "all" ? Number.POSITIVE_INFINITY : mode === "nth" ? n : 1;
  const splices: Splice[] = [];
  for (let at = text.indexOf(old); at >= 0 && splices.length < wanted; at = text.indexOf(old, at + old.length)) {
    splices.push({ at, remove: old.length, insert: next });
  }
  if (splices.length === 0) throw refusedEdit(`Text not found: '${quoted(old)}'`);
  if (mode === "all") return { splices, message: `Replaced ${splices.length} occurrence(s) of ${said}` };
  if (mode === "first") return { splices, message: `Replaced first occurrence of ${said}` };
  if (splices.length < n) {
    throw refusedEdit(`Occurrence #${n} of '${quoted(old)}' not found: there are ${splices.length}`);
  }
  return { splices: splices.slice(-1), message: `Replaced occurrence #${n} of ${said}` };
};

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
  requireRoom(pieces.reduce((sum, piece) => sum + piece.length, 0));
  return pieces.join("");
};

/** Replaces the first match of an RE2 pattern; `$1` and `$0` in `next` stand for its groups, `$$` for `$`. */
const replacedMatch = (text: string, { old: pattern, new: next }: Replacement, label: string): Changes => {
  const regex = compiled(pattern);
  if (!isAffordable("maxPatternSteps", regex.programSize() * text.length)) {
    const message = `the edit's patterns are too large for a text of ${text.length} characters: shorten them, or make fewer edits at once (maxPatternSteps)`;
    throw refusedEdit(message);
  }
  const matcher = regex.matcher(text);
  if (!matcher.find()) throw refusedEdit(`Pattern not found: '${quoted(pattern)}'`);
  const found = matcher.group(0) ?? "";
  const insert = filledIn(next, (group) => (group <= matcher.groupCount() ? (matcher.group(group) ?? "") : undefined));
  const splices = [{ at: matcher.start(0), remove: found.length, insert }];
  return { splices, message: `Replaced regex match '${quoted(found)}' with '${quoted(next)}' in '${label}'` };
};

/** Whether every line break of a text is CRLF. */
const isCrlf = (text: string): boolean => text.includes("\r\n") && !/(?:^|[^\r])\n/.test(text);

const toLf = (text: string): string => text.replaceAll("\r\n", "\n");

/** Changes a text by its lines: one whose breaks are all CRLF is changed with plain ones, and keeps its own. */
const changedLines = (text: string, change: (plain: string) => string): Splice[] =>
  changesBetween(text, isCrlf(text) ? change(toLf(text)).replaceAll("\n", "\r\n") : change(text));

/** The lines or the patch that change a text, with plain line breaks unless the text has breaks of both kinds. */
const withBreaksOf = (text: string, by: string): string =>
  isCrlf(text) || (isCrlf(by) && !text.includes("\r\n")) ? toLf(by) : by;

const withRange = (text: string, startLine: number, endLine: number, next: string): string => {
  const lines = linesOf(text);
  if (endLine > lines.length) {
    throw refusedEdit(`Lines ${startLine}-${endLine} out of bounds (the text has ${lines.length} lines)`);
  }
  const all = [...lines.slice(0, startLine - 1), ...linesOf(next), ...lines.slice(endLine)];
  return all.join("\n") + (text.endsWith("\n") && all.length > 0 ? "\n" : "");
};

type Hunk = { oldStart: number; lines: string[] };

/** The hunks of a unified diff of one text. */
const hunksOf = (patch: string): Hunk[] => {
  let files: { hunks: Hunk[] }[];
  try {
    files = parsePatch(patch).filter(({ hunks }) => hunks.length > 0);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw refusedEdit(`The patch is no unified diff: ${reason}`);
  }
  const [file, ...others] = files;
  if (!file) throw refusedEdit("The patch holds no hunk: a hunk begins with @@ -1,3 +1,3 @@");
  if (others.length > 0) throw refusedEdit("The patch is of more than one file: a block is one");
  return file.hunks;
};

/** The lines of a hunk with one of these signs, each after a line break. */
const linesWith = ({ lines }: Hunk, signs: string): string =>
  lines.flatMap((line) => (signs.includes(line[0] ?? " ") ? [`\n${line.slice(1)}`] : [])).join("");

/** Whether the hunk says that no line break ends the text, after a line with one of these signs. */
const isUnended = (hunk: Hunk | undefined, signs: string): boolean =>
  hunk?.lines.some((line, index, all) => line.startsWith("\\") && signs.includes(all[index - 1]?.[0] ?? " ")) === true;

/**
 * The text with all hunks applied, in time that grows with the text and not with their number. Each stands at the line
 * that it names, or at the first that fits after the hunk before it.
 */
const patched = (text: string, hunks: Hunk[]): string => {
  // Every line stands between two breaks, also the empty one after a last break.
  const framed = `\n${text}\n`;
  const breaks = Array.from(framed.matchAll(/\n/g), ({ index }) => index);
  let result = "";
  let at = 0;
  for (const [index, hunk] of hunks.entries()) {
    const before = linesWith(hunk, " -");
    // A hunk that removes nothing also stands before the line that it names.
    const named = breaks[hunk.oldStart - 1] ?? -1;
    const fits = named >= at && framed.startsWith(`${before}\n`, named);
    const place = fits || before === "" ? named : framed.indexOf(`${before}\n`, at);
    if (place < at) {
      throw refusedEdit(`The patch does not apply: hunk ${index + 1} of ${hunks.length} does not fit the text`);
    }
    result += framed.slice(at, place) + linesWith(hunk, " +");
    at = place + before.length;
  }
  let rest = framed.slice(at);
  const last = hunks.at(-1);
  if (isUnended(last, " +")) rest = rest === "\n\n" ? "\n" : rest;
  else if (isUnended(last, "-") && rest === "\n") rest = "\n\n";
  return (result + rest).slice(1, -1);
};
