import type { Permission } from "../../../protocol/block.ts";
import type { BlockOperation } from "../../../protocol/block-operation.ts";
import type { FieldType, PlainSchema } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";

export type GatedOperation = BlockOperation["op"] | "delete_block";

type Rule = { right: keyof typeof least; on?: PlainSchema["type"]; field?: FieldType };

/** The right that an operation needs, and the kind of part, or of a map's field, that it changes. */
export const rules: Record<GatedOperation, Rule> = {
  set_text: { on: "text", right: "Overwrite" },
  append_text: { on: "text", right: "Append" },
  replace_text: { on: "text", right: "Overwrite" },
  edit_range: { on: "text", right: "Overwrite" },
  patch: { on: "text", right: "Overwrite" },
  set_field: { on: "map", right: "Overwrite" },
  append_to_list: { on: "map", right: "Append", field: "list" },
  remove_from_list: { on: "map", right: "Delete", field: "list" },
  increment: { on: "map", right: "Overwrite", field: "counter" },
  push_item: { on: "list", right: "Append" },
  insert_item: { on: "list", right: "Append" },
  set_item: { on: "list", right: "Overwrite" },
  delete_item: { on: "list", right: "Delete" },
  move_item: { on: "list", right: "Overwrite" },
  append_log_entry: { on: "log", right: "Append" },
  undo: { right: "Overwrite" },
  redo: { right: "Overwrite" },
  delete_block: { right: "Delete" },
};

export const rightOf = (op: GatedOperation): Rule["right"] => rules[op].right;

/** The least permission that gives a right by itself. */
const least = { Append: "Append", Overwrite: "ReadWrite", Delete: "Admin" } as const;

/** From the least that a permission allows to the most. With `Human` anybody agrees in the partner's place. */
export const ranks = { ReadOnly: 0, Partner: 1, Human: 2, Append: 3, ReadWrite: 4, Admin: 5 };

/** Whether a permission allows it: `consent` where a person must agree first. */
export const verdictOn = (op: GatedOperation, permission: Permission): "allowed" | "consent" | "refused" => {
  const right = rightOf(op);
  if (ranks[permission] >= ranks[least[right]]) return "allowed";
  const isAsking = permission === "Partner" || permission === "Human";
  return isAsking && right !== "Delete" ? "consent" : "refused";
};

/** Why it is refused: which permission that needs, and which the block has. */
export const permissionRefusal = (op: GatedOperation, permission: Permission): ColloquyError => {
  const right = rightOf(op);
  const consent = verdictOn(op, permission) === "consent" ? "; with it, a person must consent first" : "";
  const instead = op === "delete_block" ? ": ask whoever owns it, or put your own away by block_archive" : "";
  return new ColloquyError(
    "forbidden",
    `Permission denied: ${right} requires ${least[right]} permission, but block has ${permission} (${op})${consent}${instead}`,
  );
};

/**
 * As whom a document is edited. The runtime, and principals with the workspace's rights, may do everything. An agent,
 * and a person of a space, have a permission. An agent may have a person's consent.
 */
export type Writer =
  | { kind: "system"; now: string }
  | { kind: "person" | "agent"; now: string; name: string; permission: Permission; consented: boolean };

/** Throws where the writer's permission does not allow it. */
export const checkPermission = (op: GatedOperation, writer: Writer): void => {
  if (writer.kind === "system") return;
  const verdict = verdictOn(op, writer.permission);
  if (verdict === "allowed" || (verdict === "consent" && writer.consented)) return;
  throw permissionRefusal(op, writer.permission);
};

/** Throws where the writer may not change a read-only part; `what` names the part. */
export const requireSystem = (writer: Writer, what: string): void => {
  if (writer.kind === "system") return;
  const whom = writer.kind === "agent" ? "agent" : "the people of a space";
  throw new ColloquyError("forbidden", `${what} is read-only and cannot be modified by ${whom}`);
};
