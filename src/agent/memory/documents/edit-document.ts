import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockOperation, ContentOperation, OperationResult } from "../../../protocol/block-operation.ts";
import type { BlockSchema, PlainSchema } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { applyOperation } from "./apply-operation.ts";
import { cellsOf, contentOf } from "./cells.ts";
import { checkSize, keepBounds, sizeOf } from "./check-content.ts";
import { atState, forkOf, record, stateOf } from "./document.ts";
import { ownField } from "./in-words.ts";
import { checkPermission, type Editing, requireSystem, type Writer } from "./permission.ts";
import { refusedEdit } from "./refused-edit.ts";
import { type Contents, mergeContents, readContents, writeContents } from "./revert.ts";
import { noteStep, type Step, type UndoStacks } from "./undo-stacks.ts";

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
  /** The versions that the author may undo and redo. */
  stacks: UndoStacks;
  /** The state of a version that is kept. */
  stateAt(version: number): string | undefined;
  /** The newest version's content, read anew. Called only where the edit is too large. */
  contentBefore(): Json;
};

export type Commit = Step & { operations: string[]; update: Uint8Array; state: string };
export type Edited = { commits: Commit[]; results: OperationResult[]; value: Json; size: number };

/** Keys of items: by version, then by place in the edit. */
const keysOfVersion = 2 ** 20;

/** `other` is the content on the other side of the operation: before it, or after it where it was undone. */
type Applied = { operation: ContentOperation; other: Contents };

const isUndo = ({ op }: BlockOperation): boolean => op === "undo" || op === "redo";

/** Content operations that are not yet a version; the last of them can be taken back. */
const openEdit = (doc: LoroDoc, request: EditRequest, nextVersion: () => number) => {
  const { schema, writer, label, operations } = request;
  const cells = cellsOf(schema);
  const canUndo = operations.some(isUndo);
  const applied: Applied[] = [];
  const undone: Applied[] = [];
  let used = 0;
  const newKey = (): number => {
    used += 1;
    return nextVersion() * keysOfVersion + used;
  };
  const snapshot = (): Contents => readContents(doc, canUndo ? cells : []);
  /** Makes the last step of one list a step of the other, and answers its name. */
  const step = (from: Applied[], to: Applied[]): string | undefined => {
    const last = from.pop();
    if (!last) return undefined;
    to.push({ operation: last.operation, other: snapshot() });
    writeContents(doc, last.other);
    return last.operation.op;
  };
  return {
    names: () => applied.map(({ operation }) => operation.op),
    apply(on: LoroDoc, operation: ContentOperation): OperationResult {
      const other = snapshot();
      const editing: Editing = { doc: on, writer, label, newKey };
      const result = applyOperation(editing, schema, operation);
      applied.push({ operation, other });
      undone.length = 0;
      return result;
    },
    undo: () => step(applied, undone),
    redo: () => step(undone, applied),
    /** Operations that were undone cannot be redone any more. */
    close(): void {
      undone.length = 0;
    },
  };
};

const contentOperations = (operations: BlockOperation[]): ContentOperation[] => {
  const content = operations.filter((operation): operation is ContentOperation => !isUndo(operation));
  if (content.length < operations.length) {
    throw refusedEdit("undo and redo are of the newest version: leave out onVersion");
  }
  return content;
};

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
  const { schema, writer, label, operations, stacks, charLimit, on } = request;
  const recording = record(doc);
  const commits: Commit[] = [];
  const results: OperationResult[] = [];
  let { version } = request;
  const edit = openEdit(doc, request, () => version + 1);
  const commit = (kind: Step["kind"], names: string[]): void => {
    keepBounds(doc, schema);
    const { update, state, changed } = recording.take();
    // An undo is a version even if it changes nothing, because others changed all of it since.
    if (!changed && kind === "edit") return;
    version += 1;
    noteStep(stacks, { version, kind });
    commits.push({ version, kind, operations: names, update, state });
  };
  /** Takes the newest version of the author's back: undo, or redo where that was an undo. */
  const reachBack = (op: "undo" | "redo"): void => {
    const target = edit.names().length > 0 ? undefined : stacks[op].at(-1);
    if (target === undefined) throw refusedEdit(`Nothing to ${op}`);
    const stateAt = (wanted: number): string => {
      const state = commits.find((made) => made.version === wanted)?.state ?? request.stateAt(wanted);
      if (state === undefined) throw refusedEdit(`Nothing to ${op}: version ${wanted} is not kept any more`);
      return state;
    };
    const cells = cellsOf(schema);
    const withheld = writer.kind === "system" ? {} : readOnlyParts(schema, contentOf(doc, schema));
    const base = atState(doc, stateAt(target), () => readContents(doc, cells));
    mergeContents(
      doc,
      base,
      atState(doc, stateAt(target - 1), () => readContents(doc, cells)),
    );
    if (writer.kind !== "system" && !sameJson(withheld, readOnlyParts(schema, contentOf(doc, schema)))) {
      requireSystem(writer, `What ${op} would change`);
    }
    edit.close();
    commit(op, [op]);
  };
  const takeBack = (op: "undo" | "redo"): void => {
    checkPermission(op, writer);
    const inside = op === "undo" ? edit.undo() : edit.redo();
    if (inside === undefined) reachBack(op);
    const done = op === "undo" ? "Undid" : "Redid";
    results.push({ op, message: `${done} ${inside ?? "the last change"} in block '${label}'` });
  };
  if (on !== undefined && on !== stateOf(doc)) {
    const content = contentOperations(operations);
    mergeFrom(doc, on, (fork) => results.push(...content.map((operation) => edit.apply(fork, operation))));
  } else {
    for (const operation of operations) {
      if (operation.op === "undo" || operation.op === "redo") takeBack(operation.op);
      else results.push(edit.apply(doc, operation));
    }
  }
  commit("edit", edit.names());
  const value = contentOf(doc, schema);
  const size = sizeOf(schema, value);
  checkSize(size, charLimit, () => sizeOf(schema, request.contentBefore()));
  return { commits, results, value, size };
};

const ofPlain = (schema: PlainSchema, value: Json | undefined): [string, Json | undefined][] =>
  schema.type === "map"
    ? schema.fields.flatMap(({ name, readOnly }) => (readOnly ? [[name, ownField(value, name)]] : []))
    : [];

/** The parts of a value that agents may not change, by section and field. */
export const readOnlyParts = (schema: BlockSchema, value: Json): Record<string, Json | undefined> => {
  if (schema.type !== "composite") return Object.fromEntries(ofPlain(schema, value));
  const parts = schema.sections.flatMap(({ name, schema: of, readOnly }): [string, Json | undefined][] => {
    const held = ownField(value, name);
    return readOnly ? [[name, held]] : ofPlain(of, held).map(([field, inner]) => [`${name}:${field}`, inner]);
  });
  return Object.fromEntries(parts);
};
