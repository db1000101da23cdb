import type { LoroDoc } from "loro-crdt/web";
import type { Permission } from "../../../protocol/block.ts";
import type { BlockOperation } from "../../../protocol/block-operation.ts";
import { ColloquyError } from "../../../shared/errors.ts";

/** The rights of each permission: one table by operation, the same for every schema. */
type Column = "Read" | "Append" | "Overwrite" | "Delete";

const columns: Record<BlockOperation["op"] | "delete_block", Column> = {
  append_text: "Append",
  append_to_list: "Append",
  push_item: "Append",
  insert_item: "Append",
  append_log_entry: "Append",
  set_text: "Overwrite",
  replace_text: "Overwrite",
  edit_range: "Overwrite",
  patch: "Overwrite",
  set_field: "Overwrite",
  increment: "Overwrite",
  set_item: "Overwrite",
  move_item: "Overwrite",
  undo: "Overwrite",
  redo: "Overwrite",
  delete_item: "Delete",
  remove_from_list: "Delete",
  delete_block: "Delete",
};

/** The least permission that allows it by itself. */
const least = { Read: "ReadOnly", Append: "Append", Overwrite: "ReadWrite", Delete: "Admin" } as const;

const allows: Record<Permission, readonly Column[]> = {
  ReadOnly: ["Read"],
  Partner: ["Read"],
  Human: ["Read"],
  Append: ["Read", "Append"],
  ReadWrite: ["Read", "Append", "Overwrite"],
  Admin: ["Read", "Append", "Overwrite", "Delete"],
};

export type GatedOperation = keyof typeof columns;

/** Whether a permission lets an agent do it: `consent` where a person must agree first. */
export const verdictOn = (op: GatedOperation, permission: Permission): "allowed" | "consent" | "refused" => {
  const column = columns[op];
  if (allows[permission].includes(column)) return "allowed";
  const isAsking = permission === "Partner" || permission === "Human";
  return isAsking && column !== "Delete" ? "consent" : "refused";
};

/** Why an agent may not do it: which permission that needs, and which the block has. */
export const permissionRefusal = (op: GatedOperation, permission: Permission): ColloquyError => {
  const column = columns[op];
  const consent = verdictOn(op, permission) === "consent" ? "; with it, a person must consent first" : "";
  return new ColloquyError(
    "forbidden",
    `Permission denied: ${column} requires ${least[column]} permission, but block has ${permission} (${op})${consent}`,
  );
};

/**
 * As whom a document is edited. The runtime, and principals with the workspace's rights, may do everything. An agent,
 * and a person of a space, have a permission. An agent may have a person's consent.
 */
export type Writer =
  | { kind: "system"; now: string }
  | { kind: "person" | "agent"; now: string; name: string; permission: Permission; consented: boolean };

/** A document that is being changed, on behalf of somebody. */
export type Editing = {
  doc: LoroDoc;
  writer: Writer;
  label: string;
  /** A key that no item of the document has. */
  newKey: () => number;
};

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
