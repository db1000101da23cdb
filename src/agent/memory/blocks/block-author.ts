import type { Permission, SpacePermission } from "../../../protocol/block.ts";
import type { Writer } from "../documents/permission.ts";

/**
 * Who edits a block: an agent, whose permission holds; somebody of a space that it is shared with; or a person or
 * program with the workspace's rights.
 */
export type BlockCaller =
  | { kind: "system"; author: string }
  | { kind: "person"; author: string; name: string; permission: SpacePermission }
  | {
      kind: "agent";
      agentId: string;
      name: string;
      /** Of another agent, the block's owner shares it with this permission. */
      permission?: Permission | undefined;
      /** A person agreed to this very edit. */
      consented?: boolean | undefined;
    };

export const authorOf = (caller: BlockCaller): string =>
  caller.kind === "agent" ? `agent:${caller.agentId}` : caller.author;

export const writerOf = (caller: BlockCaller, permission: Permission, now: string): Writer => {
  switch (caller.kind) {
    case "system":
      return { kind: "system", now };
    case "person":
      return { kind: "person", now, name: caller.name, permission: caller.permission };
    case "agent":
      return {
        kind: "agent",
        now,
        name: caller.name,
        permission: caller.permission ?? permission,
        consented: caller.consented ?? false,
      };
  }
};

const appending: string[] = ["append_text", "append_to_list", "push_item", "insert_item", "append_log_entry"];
const deleting: string[] = ["delete_item", "remove_from_list"];

/** How a version was made, in a word, from the names of its operations. */
export const mannerOf = (operations: string[]): string => {
  const [only] = operations;
  if (operations.length === 1 && (only === "undo" || only === "redo")) return only;
  if (operations.some((op) => deleting.includes(op))) return "delete";
  return operations.length > 0 && operations.every((op) => appending.includes(op)) ? "append" : "edit";
};
