import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockOperation, ContentOperation, OperationResult } from "../../../protocol/block-operation.ts";
import type { BlockSchema } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { applyOperation } from "./apply-operation.ts";
import { cellsOf, contentOf } from "./cells.ts";
import { checkSize, keepBounds } from "./check-content.ts";
import { atState, forkOf, record, stateOf } from "./document.ts";
import { checkPermission, requireSystem, type Writer } from "./permission.ts";
import { refusedEdit } from "./values.ts";

/** One version, as undo sees it: an edit, or the taking back of an edit, or of such a taking back. */
export type Step = { version: number; kind: "edit" | "undo" | "redo" };

/**
 * One edit of a block: its operations, all or none.
 *
 * Invariants
 * 1. What throws has changed nothing that is stored: the document is to be dropped then.
 * 2. Content operations of one edit are one version; an undo or redo that reaches back behind the edit is one of its own.
 * 3. Limits hold of the merged result, whatever the version that the edit was made on.
 */
export type EditRequest = {
  schema: BlockSchema;
  charLimit: number;
  label: string;
  operations: BlockOperation[];
  writer: Writer;
  /** The newest version. */
  version: number;
  /** The state of the version that the edit was made on, where that is not the newest. */
  on?: string | undefined;
  /** The author's own versions, oldest first: only these the author undoes. Called where there is something to undo. */
  steps(): Step[];
  /** The state of a version that is kept. */
  stateAt(version: number): string | undefined;
  /** The newest version's content, read anew. Called only where the edit is too large. */
  contentBefore(): Json;
};

export type Commit = Step & { operations: BlockOperation["op"][]; update: Uint8Array; state: string };
export type Edited = { commits: Commit[]; results: OperationResult[]; value: Json };

/** Keys of items: by version, then by place in the edit. */
const keysOfVersion = 2 ** 20;

/** The versions that an author may undo and redo, the next one last. To redo is to revert the version that undid. */
const undoStacks = (steps: Step[]): Record<"undo" | "redo", number[]> => {
  const stacks = { undo: [] as number[], redo: [] as number[] };
  for (const { version, kind } of steps) {
    if (kind === "undo") stacks.undo.pop();
    else if (kind === "redo") stacks.redo.pop();
    else stacks.redo = [];
    stacks[kind === "undo" ? "redo" : "undo"].push(version);
  }
  return stacks;
};

const isContent = (operation: BlockOperation): operation is ContentOperation =>
  operation.op !== "undo" && operation.op !== "redo";

/** Applies operations to the document as it was, and merges what they changed into what it is. */
const mergeFrom = (doc: LoroDoc, state: string, apply: (fork: LoroDoc) => void): void => {
  const fork = forkOf(doc, state);
  apply(fork);
  fork.commit();
  const known = doc.version();
  doc.import(fork.export({ mode: "update", from: known }));
  known.free();
  fork.free();
};

/** Throws what refuses the edit; see invariant 1. */
export const editDocument = (doc: LoroDoc, request: EditRequest): Edited => {
  const { schema, writer, label, operations, charLimit, on } = request;
  const takeChanges = record(doc);
  const cells = cellsOf(schema);
  const commits: Commit[] = [];
  const results: OperationResult[] = [];
  const canUndo = !operations.every(isContent);
  let { version } = request;
  let keys = 0;
  const newKey = (): number => {
    keys += 1;
    return (version + 1) * keysOfVersion + keys;
  };

  const contents = (): unknown[] => (canUndo ? cells.map((cell) => cell.read(doc)) : []);
  /** Operations that are not yet a version: `states` are the contents before and after each. Those from `at` on are undone. */
  let open = { names: [] as ContentOperation["op"][], states: [contents()], at: 0 };

  const apply = (to: LoroDoc, operation: ContentOperation): void => {
    results.push(applyOperation({ doc: to, writer, label, newKey }, schema, operation));
    const { names, states, at } = open;
    open = {
      names: [...names.slice(0, at), operation.op],
      states: [...states.slice(0, at + 1), contents()],
      at: at + 1,
    };
  };
  const commit = (kind: Step["kind"], names: Commit["operations"]): void => {
    keepBounds(doc, schema);
    const { update, state, changed } = takeChanges();
    // An undo is a version even if it changes nothing, because others changed all of it since.
    if (!changed && kind === "edit") return;
    version += 1;
    commits.push({ version, kind, operations: names, update, state });
  };
  /** Reverts the newest version that the author may undo or redo: what it changed is merged back. */
  const reachBack = (op: "undo" | "redo"): void => {
    const target = open.at > 0 ? undefined : undoStacks([...request.steps(), ...commits])[op].at(-1);
    if (target === undefined) throw refusedEdit(`Nothing to ${op}`);
    const readAt = (wanted: number): unknown[] => {
      const state = commits.find((made) => made.version === wanted)?.state ?? request.stateAt(wanted);
      if (state === undefined) throw refusedEdit(`Nothing to ${op}: version ${wanted} is not kept any more`);
      return atState(doc, state, contents);
    };
    const [base, theirs] = [readAt(target), readAt(target - 1)];
    for (const [index, cell] of cells.entries()) {
      const now = cell.read(doc);
      const next = cell.merge(base[index], now, theirs[index]);
      if (cell.readOnly && !sameJson(now, next)) requireSystem(writer, `What ${op} would change`);
      cell.write(doc, next);
    }
    commit(op, [op]);
    open = { names: [], states: [contents()], at: 0 };
  };
  const takeBack = (op: "undo" | "redo"): void => {
    checkPermission(op, writer);
    const [at, name] = op === "undo" ? [open.at - 1, open.names[open.at - 1]] : [open.at + 1, open.names[open.at]];
    if (name === undefined) reachBack(op);
    else {
      open.at = at;
      for (const [index, cell] of cells.entries()) cell.write(doc, open.states[at]?.[index]);
    }
    const done = op === "undo" ? "Undid" : "Redid";
    results.push({ op, message: `${done} ${name ?? "the last change"} in block '${label}'` });
  };

  if (on !== undefined && on !== stateOf(doc)) {
    const content = operations.filter(isContent);
    if (canUndo) throw refusedEdit("undo and redo are of the newest version: leave out onVersion");
    mergeFrom(doc, on, (fork) => {
      for (const operation of content) apply(fork, operation);
    });
  } else {
    for (const operation of operations) {
      if (isContent(operation)) apply(doc, operation);
      else takeBack(operation.op);
    }
  }
  commit("edit", open.names.slice(0, open.at));
  const value = contentOf(doc, schema);
  checkSize(schema, value, charLimit, request.contentBefore);
  return { commits, results, value };
};
