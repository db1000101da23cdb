/** One version, as undo sees it: an edit, or the taking back of the version `of`, or of such a taking back. */
export type Step = { version: number; kind: "edit" | "undo" | "redo" };

/**
 * What one author may undo and redo, from that author's versions alone, oldest first. To undo is to take a version
 * back; to redo is to take back the version that did so.
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
