import type { LoroDoc } from "loro-crdt/web";
import type { Permission, SpacePermission } from "../../../protocol/block.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { type GatedOperation, permissionRefusal, verdictOn } from "./permission.ts";

/**
 * Who edits: the runtime and who has the workspace's rights pass; an agent has the block's permission, and may have a
 * person's consent; a person of a space has the permission that the block has there.
 */
export type Writer =
  | { kind: "system"; now: string }
  | { kind: "person"; now: string; name: string; permission: SpacePermission }
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
  if (verdict === "allowed" || (verdict === "consent" && writer.kind === "agent" && writer.consented)) return;
  throw permissionRefusal(op, writer.permission);
};

/** Of what is read-only; `what` names it. Throws where the writer is held to that. */
export const requireSystem = (writer: Writer, what: string): void => {
  if (writer.kind === "system") return;
  const whom = writer.kind === "agent" ? "agent" : "the people of a space";
  throw new ColloquyError("forbidden", `${what} is read-only and cannot be modified by ${whom}`);
};
