import type { BlockDetail, Json } from "../../../src/protocol/block.ts";

/** A list that an agent shares, as it is at `version`. */
export const listBlock = (version: number, value: Json): BlockDetail => ({
  label: "shopping",
  type: "working",
  permission: "ReadWrite",
  description: "",
  schema: { type: "list" },
  pinned: true,
  charLimit: 5000,
  version,
  rendered: "",
  value,
  createdAt: "2026-11-22T08:00:00.000Z",
  updatedAt: "2026-11-22T08:00:00.000Z",
});
