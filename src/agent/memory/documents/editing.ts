import type { LoroDoc } from "loro-crdt/web";
import type { Permission } from "../../../protocol/block.ts";
import { type GatedOperation, permissionRefusal, verdictOn } from "./permission.ts";

/** Who edits: the runtime and people pass; an agent has the block's permission, and may have a person's consent. */
export type Writer =
  | { kind: "system"; now: string }
  | { kind: "agent"; now: string; name: string; permission: Permission; consented: boolean };

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
