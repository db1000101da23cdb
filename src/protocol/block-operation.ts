import * as z from "zod";
import { BlockText } from "./block-schema.ts";
import { component, Label } from "./text.ts";

/** One change of a block. In a composite, `section` names the part that it changes. */

const Index = z.int().min(0).max(1_000_000);
const Line = z.int().min(1).max(1_000_000);
const maxPatternCharacters = 1000;
const section = Label.optional();

const operation = <Name extends string, Shape extends z.ZodRawShape>(op: Name, shape: Shape) =>
  z.strictObject({ op: z.literal(op), ...shape, section });

export const BlockOperation = z
  .discriminatedUnion("op", [
    operation("set_text", { text: BlockText }),
    operation("append_text", { text: BlockText }),
    operation("replace_text", {
      old: BlockText.min(1),
      new: BlockText,
      mode: z.enum(["first", "all", "nth", "regex"]).default("first"),
      /** Which occurrence `nth` means, from 1. */
      n: z.int().min(1).max(1_000_000).optional(),
    })
      .refine(({ mode, n }) => mode !== "nth" || n !== undefined, {
        error: 'is needed where mode is "nth"',
        path: ["n"],
      })
      .refine(({ mode, old }) => mode !== "regex" || old.length <= maxPatternCharacters, {
        error: `must have at most ${maxPatternCharacters} characters as a pattern`,
        path: ["old"],
      }),
    /** Both lines are replaced too; an empty text deletes them. */
    operation("edit_range", { startLine: Line, endLine: Line, text: BlockText }).refine(
      ({ startLine, endLine }) => endLine >= startLine,
      { error: "must not be before startLine", path: ["endLine"] },
    ),
    /** A unified diff of one text. */
    operation("patch", { patch: BlockText.min(1) }),
    /** `null` clears the field. */
    operation("set_field", { field: Label, value: z.json() }),
    operation("append_to_list", { field: Label, value: z.json() }),
    operation("remove_from_list", { field: Label, index: Index.optional(), value: z.json().optional() }).refine(
      ({ index, value }) => (index === undefined) !== (value === undefined),
      { error: "takes either index or value" },
    ),
    operation("increment", { field: Label, by: z.number().default(1) }),
    operation("push_item", { item: z.json() }),
    operation("insert_item", { index: Index, item: z.json() }),
    operation("set_item", { index: Index, item: z.json() }),
    operation("delete_item", { index: Index }),
    operation("move_item", { from: Index, to: Index }),
    /** A text alone is the first field of the entry. The runtime adds `timestamp` and `agent`. */
    operation("append_log_entry", { entry: z.union([BlockText, z.record(z.string(), z.json())]) }),
    /** Undoes the newest of the caller's own edits that is not undone; others' edits stay. */
    operation("undo", {}),
    operation("redo", {}),
  ])
  .meta({ id: "BlockOperation" });
export type BlockOperation = z.infer<typeof BlockOperation>;

/** The operations that change the content itself; `undo` and `redo` change it back. */
export type ContentOperation = Exclude<BlockOperation, { op: "undo" | "redo" }>;

export const operationNames = BlockOperation.options.map(({ shape }) => shape.op.value);

export const maxOperations = 100;
export const BlockOperations = z.array(BlockOperation).min(1).max(maxOperations);

export const OperationResult = component("OperationResult", { op: z.string(), message: z.string() });
export type OperationResult = z.infer<typeof OperationResult>;
