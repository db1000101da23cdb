import type { ContentOperation } from "../../../protocol/block-operation.ts";
import { applyPatch } from "./apply-patch.ts";
import { refusedEdit } from "./refused-edit.ts";
import { replacePattern } from "./replace-pattern.ts";
import { changesBetween, type Splice } from "./text-changes.ts";

export type TextOperation = Extract<
  ContentOperation,
  { op: "set_text" | "append_text" | "replace_text" | "edit_range" | "patch" }
>;
type Edited = { splices: Splice[]; message: string };

const occurrences = (text: string, old: string, atMost: number): number[] => {
  const found: number[] = [];
  for (let at = text.indexOf(old); at >= 0 && found.length < atMost; at = text.indexOf(old, at + old.length)) {
    found.push(at);
  }
  return found;
};

const replaced = (
  text: string,
  { old, new: next, mode, n = 1 }: Extract<TextOperation, { op: "replace_text" }>,
  label: string,
): Edited => {
  if (mode === "regex") {
    const { found, ...splice } = replacePattern(text, old, next);
    return { splices: [splice], message: `Replaced regex match '${found}' with '${next}' in '${label}'` };
  }
  const wanted = mode === "all" ? Number.POSITIVE_INFINITY : mode === "nth" ? n : 1;
  const places = occurrences(text, old, wanted);
  if (places.length === 0) throw refusedEdit(`Text not found: '${old}'`);
  const splices = places.map((at) => ({ at, remove: old.length, insert: next }));
  if (mode === "all") {
    return { splices, message: `Replaced ${places.length} occurrence(s) of '${old}' with '${next}' in '${label}'` };
  }
  if (mode === "first")
    return { splices, message: `Replaced first occurrence of '${old}' with '${next}' in '${label}'` };
  if (places.length < n) throw refusedEdit(`Occurrence #${n} of '${old}' not found: there are ${places.length}`);
  return { splices: splices.slice(-1), message: `Replaced occurrence #${n} of '${old}' with '${next}' in '${label}'` };
};

const rangeEdited = (
  text: string,
  { startLine, endLine, text: next }: Extract<TextOperation, { op: "edit_range" }>,
  label: string,
): Edited => {
  const ended = text.endsWith("\n");
  const lines = (ended ? text.slice(0, -1) : text).split("\n");
  if (text === "") lines.pop();
  if (endLine > lines.length) {
    throw refusedEdit(`Lines ${startLine}-${endLine} out of bounds (the text has ${lines.length} lines)`);
  }
  const added = next === "" ? [] : (next.endsWith("\n") ? next.slice(0, -1) : next).split("\n");
  const all = [...lines.slice(0, startLine - 1), ...added, ...lines.slice(endLine)];
  const result = all.join("\n") + (ended && all.length > 0 ? "\n" : "");
  return {
    splices: changesBetween(text, result),
    message: `Replaced lines ${startLine}-${endLine} in block '${label}'`,
  };
};

/** What an operation changes of a text. */
export const editText = (text: string, operation: TextOperation, label: string): Edited => {
  switch (operation.op) {
    case "set_text":
      return { splices: changesBetween(text, operation.text), message: `Set the text of block '${label}'` };
    case "append_text":
      return {
        splices: [{ at: text.length, remove: 0, insert: operation.text }],
        message: `Appended to block '${label}'`,
      };
    case "replace_text":
      return replaced(text, operation, label);
    case "edit_range":
      return rangeEdited(text, operation, label);
    case "patch": {
      const { text: next, hunks } = applyPatch(text, operation.patch);
      return { splices: changesBetween(text, next), message: `Applied ${hunks} hunk(s) to block '${label}'` };
    }
  }
};
