/** One version, as undo sees it: an edit, or the taking back of the version `of`, or of such a taking back. */
export type Step = { version: number; kind: "edit" | "undo" | "redo" };

/**
 * The versions that one author may undo and redo, oldest first. Only that author's versions count. To undo is to revert a
 * version; to redo is to revert the version that did so.
 */
export type UndoStacks = { undo: number[]; redo: number[] };

export const undoStacks = (steps: Iterable<Step>): UndoStacks => {
  const stacks: UndoStacks = { undo: [], redo: [] };
  for (const step of steps) noteStep(stacks, step);
  return stacks;
};

export const noteStep = (stacks: UndoStacks, { version, kind }: Step): void => {
  if (kind === "undo") {
    stacks.undo.pop();
    stacks.redo.push(version);
    return;
  }
  if (kind === "redo") stacks.redo.pop();
  else stacks.redo = [];
  stacks.undo.push(version);
};
