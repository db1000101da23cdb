import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockOperation, ContentOperation, OperationResult } from "../../../protocol/block-operation.ts";
import type { BlockSchema } from "../../../protocol/block-schema.ts";
import { inOneBudget } from "../../../shared/check-budget.ts";
import { requireSmallPatterns } from "../../../shared/linear-pattern.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { cellFor, changeOf, type Editing, newItem, setField } from "./apply-operation.ts";
import { type Cell, contentIn, declaredSections, type Held, type Part, partsOf, valueOfPart } from "./cells.ts";
import { bounded, checkSize } from "./check-content.ts";
import { atState, changesSince, forkOf, mergeInto, stateOf } from "./document.ts";
import { checkPermission, requireSystem, type Writer } from "./permission.ts";
import type { Splice } from "./text-changes.ts";
import { checkFields, checkLength, isObject, noSuchSection, ownField, refusedEdit } from "./values.ts";

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
  /** The newest version; 0 where the block is being created, with `content`. */
  version: number;
  content?: Json | undefined;
  /** The state of the version that the edit was made on, where that is not the newest. */
  on?: string | undefined;
  /** The author's own versions, oldest first: only these the author undoes. Called where there is something to undo. */
  steps(): Step[];
  /** The state of a version that is kept. */
  stateAt(version: number): string | undefined;
};

export type Commit = Step & { operations: BlockOperation["op"][]; update: Uint8Array; state: string };
export type Edited = { commits: Commit[]; results: OperationResult[]; value: Json };

/** Keys of items: by version, then by place in the edit. */
const keysOfVersion = 2 ** 20;

/** The content of each cell of a document. */
type Contents = ReadonlyMap<Cell, Held>;

/** An operation that is not yet a version, or its being undone or redone, with the contents before and after. */
type Done = Step & { name: ContentOperation["op"]; before: Contents; after: Contents };

/** The steps that may be undone and redone, the next one last. To redo is to revert the step that undid. */
const undoStacks = <Each extends Step>(steps: Each[]): Record<"undo" | "redo", Each[]> => {
  const stacks: Record<"undo" | "redo", Each[]> = { undo: [], redo: [] };
  for (const step of steps) {
    if (step.kind === "edit") stacks.redo = [];
    else stacks[step.kind].pop();
    stacks[step.kind === "undo" ? "redo" : "undo"].push(step);
  }
  return stacks;
};

const mapCells = (contents: Contents, next: (held: Held, cell: Cell) => Held): Contents =>
  new Map(Array.from(contents, ([cell, held]) => [cell, next(held, cell)]));

const wrongContent = ({ type }: BlockSchema, what: string) => refusedEdit(`The content of a ${type} block is ${what}`);

/** The first contents of a part's cells: the given one, or the defaults of its fields. */
const firstIn = ({ schema, cells }: Part, content: Json | undefined, editing: Editing): [Cell, Held][] => {
  if (schema.type === "map") {
    const given = content === undefined ? undefined : checkFields(schema.fields, content, "The content of a map block");
    return cells.map((cell) => {
      const value = given ? ownField(given, cell.field.name) : cell.field.default;
      return [cell, value === undefined ? cell.empty : setField(cell, cell.empty, value, editing.newKey)];
    });
  }
  if (content === undefined) return [];
  if (schema.type === "text") {
    if (typeof content !== "string") throw wrongContent(schema, "a text");
    return cells.map((cell) => [cell, changeOf(cell, cell.empty, { op: "append_text", text: content }, editing).next]);
  }
  if (!Array.isArray(content)) throw wrongContent(schema, `a list of ${schema.type === "log" ? "entries" : "items"}`);
  checkLength(schema.type, content.length);
  return cells.map((cell) => [cell, content.map((item) => newItem(schema, item, editing))]);
};

/** The contents that a block is created with. Throws where they do not fit the schema. */
const firstContents = ({ schema, content }: EditRequest, parts: Part[], editing: Editing): [Cell, Held][] => {
  if (schema.type === "composite" && content !== undefined) {
    if (!isObject(content)) throw wrongContent(schema, "an object of sections");
    const unknown = Object.keys(content).find((name) => !parts.some((part) => part.name === name));
    if (unknown !== undefined) throw noSuchSection(unknown, declaredSections(parts));
  }
  return parts.flatMap((part) => firstIn(part, valueOfPart(part, content), editing));
};

/** Throws what refuses the edit; see invariant 1. Its operations share one budget for patterns and schemas. */
export const editDocument = (doc: LoroDoc, request: EditRequest): Edited => inOneBudget(() => edited(doc, request));

const edited = (doc: LoroDoc, request: EditRequest): Edited => {
  const { schema, writer, label, charLimit, on } = request;
  requireSmallPatterns(
    request.operations.flatMap((each) => (each.op === "replace_text" && each.mode === "regex" ? [each.old] : [])),
  );
  const parts = partsOf(schema);
  const cells = parts.flatMap((part) => part.cells);
  const contentsOf = (read: LoroDoc): Contents => new Map(cells.map((cell) => [cell, cell.read(read)]));
  const asData = (contents: Contents): Json => contentIn(parts, (cell) => contents.get(cell));
  const first = contentsOf(doc);
  doc.commit();
  let state = stateOf(doc);
  /** The document as it was, where the edit was made on an earlier version. */
  const fork = on === undefined || on === state ? undefined : forkOf(doc, on);
  let target = fork ?? doc;
  let held = fork ? contentsOf(fork) : first;
  let { version } = request;
  let keys = 0;
  const newKey = (): number => {
    keys += 1;
    return (version + 1) * keysOfVersion + keys;
  };
  const editing: Editing = { writer, label, newKey };
  const commits: Commit[] = [];
  const results: OperationResult[] = [];
  let open: Done[] = [];

  const become = (next: Contents, splices?: Splice[]): void => {
    for (const [cell, content] of next) {
      if (held.get(cell) !== content) cell.write(target, held.get(cell), content, splices);
    }
    held = next;
  };
  const apply = (operation: ContentOperation): void => {
    const { op } = operation;
    checkPermission(op, writer);
    const cell = cellFor(parts, operation, writer);
    const before = held;
    const { next, message, splices } = changeOf(cell, held.get(cell), operation, editing);
    become(new Map(held).set(cell, next), splices);
    open.push({ version, kind: "edit", name: op, before, after: held });
    results.push({ op, message });
  };
  const commit = (kind: Step["kind"], names: Commit["operations"]): void => {
    become(mapCells(held, (content, cell) => bounded(cell, content)));
    doc.commit();
    const update = changesSince(doc, state);
    // A block's creation is a version, and so is an undo that changes nothing because others changed all of it since.
    if (update.length === 0 && kind === "edit" && version > 0) return;
    version += 1;
    state = stateOf(doc);
    commits.push({ version, kind, operations: names, update, state });
  };
  /** Reverts the newest step that the author may undo or redo: what it changed is merged back. */
  const takeBack = (op: "undo" | "redo"): void => {
    checkPermission(op, writer);
    const step = undoStacks<Step & Partial<Done>>([...request.steps(), ...commits, ...open])[op].at(-1);
    if (!step) throw refusedEdit(`Nothing to ${op}`);
    const contentsAt = (wanted: number): Contents => {
      const state = commits.find((made) => made.version === wanted)?.state ?? request.stateAt(wanted);
      if (state === undefined) throw refusedEdit(`Nothing to ${op}: version ${wanted} is not kept any more`);
      return atState(doc, state, () => contentsOf(doc));
    };
    const { name, after = contentsAt(step.version), before = contentsAt(step.version - 1) } = step;
    const ours = held;
    const merge = (now: Held, cell: Cell): Held => {
      const next = cell.merge(after.get(cell), now, before.get(cell));
      if (cell.readOnly && !sameJson(now, next)) requireSystem(writer, `What ${op} would change`);
      return next;
    };
    become(mapCells(held, merge));
    if (name === undefined) {
      commit(op, [op]);
      open = [];
    } else open.push({ version, kind: op, name, before: ours, after: held });
    const done = op === "undo" ? "Undid" : "Redid";
    results.push({ op, message: `${done} ${name ?? "the last change"} in block '${label}'` });
  };

  if (version === 0) become(new Map([...held, ...firstContents(request, parts, editing)]));
  if (fork && request.operations.some(({ op }) => op === "undo" || op === "redo")) {
    throw refusedEdit("undo and redo are of the newest version: leave out onVersion");
  }
  for (const operation of request.operations) {
    if (operation.op === "undo" || operation.op === "redo") takeBack(operation.op);
    else apply(operation);
  }
  if (fork) {
    mergeInto(doc, fork);
    target = doc;
    held = contentsOf(doc);
  }
  const names = undoStacks(open).undo.map(({ name }) => name);
  commit("edit", names);
  const value = asData(held);
  checkSize(schema, value, charLimit, request.version === 0 ? undefined : () => asData(first));
  return { commits, results, value };
};
