import type { Block, BlockDetail, Json, Permission } from "../../../protocol/block.ts";
import { isoTime } from "../../../shared/clock.ts";
import type { BlockRow } from "./blocks.ts";

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

/** As another agent reads it. */
export const sharedView = (
  row: BlockRow,
  permission: Permission,
  owner: { agentId: string; agentName: string },
): Block => ({ ...blockView(row), permission, pinned: false, sharedFrom: owner });

export const detailOf = (
  block: Block,
  { value, rendered, version }: { value: Json; rendered: string; version: number },
): BlockDetail => ({ ...block, value, rendered, version });
