import { z } from "zod";
import { BlockText } from "./block-schema.ts";
import { Label } from "./text.ts";

/** One change of a block. In a composite, `section` names the part that it changes. */

const Index = z.int().min(0).max(1_000_000);
const Line = z.int().min(1).max(1_000_000);
const maxPatternCharacters = 1000;
const section = Label.optional();

const operation = <Name extends string, Shape extends z.ZodRawShape>(op: Name, shape: Shape) =>
  z.strictObject({ op: z.literal(op), ...shape, section });

const SetText = operation("set_text", { text: BlockText });
const AppendText = operation("append_text", { text: BlockText });
const ReplaceText = operation("replace_text", {
  old: BlockText.min(1),
  new: BlockText,
  mode: z.enum(["first", "all", "nth", "regex"]).default("first"),
  /** Which occurrence `nth` means, from 1. */
  n: z.int().min(1).max(1_000_000).optional(),
})
  .refine(({ mode, n }) => mode !== "nth" || n !== undefined, { error: 'is needed where mode is "nth"', path: ["n"] })
  .refine(({ mode, old }) => mode !== "regex" || old.length <= maxPatternCharacters, {
    error: `must have at most ${maxPatternCharacters} characters as a pattern`,
    path: ["old"],
  });
/** Both lines are replaced too; an empty text deletes them. */
const EditRange = operation("edit_range", { startLine: Line, endLine: Line, text: BlockText }).refine(
  ({ startLine, endLine }) => endLine >= startLine,
  { error: "must not be before startLine", path: ["endLine"] },
);
/** A unified diff of one text. */
const Patch = operation("patch", { patch: BlockText.min(1) });

/** `null` clears the field. */
const SetField = operation("set_field", { field: Label, value: z.json() });
const AppendToList = operation("append_to_list", { field: Label, value: z.json() });
const RemoveFromList = operation("remove_from_list", {
  field: Label,
  index: Index.optional(),
  value: z.json().optional(),
}).refine(({ index, value }) => (index === undefined) !== (value === undefined), {
  error: "takes either index or value",
});
const Increment = operation("increment", { field: Label, by: z.number().default(1) });

const PushItem = operation("push_item", { item: z.json() });
const InsertItem = operation("insert_item", { index: Index, item: z.json() });
const SetItem = operation("set_item", { index: Index, item: z.json() });
const DeleteItem = operation("delete_item", { index: Index });
const MoveItem = operation("move_item", { from: Index, to: Index });

/** A text alone is the first field of the entry. The runtime adds `timestamp` and `agent`. */
const AppendLogEntry = operation("append_log_entry", { entry: z.union([BlockText, z.record(z.string(), z.json())]) });

/** Of the caller's own edits, the newest one that is not undone; others' stay. */
const Undo = operation("undo", {});
const Redo = operation("redo", {});

export const BlockOperation = z
  .discriminatedUnion("op", [
    SetText,
    AppendText,
    ReplaceText,
    EditRange,
    Patch,
    SetField,
    AppendToList,
    RemoveFromList,
    Increment,
    PushItem,
    InsertItem,
    SetItem,
    DeleteItem,
    MoveItem,
    AppendLogEntry,
    Undo,
    Redo,
  ])
  .meta({ id: "BlockOperation" });
export type BlockOperation = z.infer<typeof BlockOperation>;

/** Those that change the content itself; `undo` and `redo` change it back. */
export type ContentOperation = Exclude<BlockOperation, { op: "undo" | "redo" }>;

export const operationNames = [
  "set_text",
  "append_text",
  "replace_text",
  "edit_range",
  "patch",
  "set_field",
  "append_to_list",
  "remove_from_list",
  "increment",
  "push_item",
  "insert_item",
  "set_item",
  "delete_item",
  "move_item",
  "append_log_entry",
  "undo",
  "redo",
] as const satisfies BlockOperation["op"][];

export const maxOperations = 100;
export const BlockOperations = z.array(BlockOperation).min(1).max(maxOperations);

export const OperationResult = z.object({ op: z.string(), message: z.string() }).meta({ id: "OperationResult" });
export type OperationResult = z.infer<typeof OperationResult>;
