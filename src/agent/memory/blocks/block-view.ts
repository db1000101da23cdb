import type { Block } from "../../../protocol/block.ts";
import { isoTime } from "../../../shared/clock.ts";
import type { blocks } from "./schema.ts";

export type BlockRow = typeof blocks.$inferSelect;

export const blockView = (row: BlockRow): Block => ({
  label: row.label,
  type: row.type,
  permission: row.permission,
  description: row.description,
  schema: row.schema,
  pinned: row.pinned,
  charLimit: row.charLimit,
  ...(row.partnerEntityId === null ? {} : { partnerEntityId: row.partnerEntityId }),
  version: row.version,
  rendered: row.rendered,
  createdAt: isoTime(row.createdAt),
  updatedAt: isoTime(row.updatedAt),
});

/** Whether a grantee is a space, and not an agent. */
export const isSpaceId = (granteeId: string): boolean => granteeId.startsWith("spc_");
