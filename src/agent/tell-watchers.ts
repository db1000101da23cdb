import { blockView, detailOf } from "./memory/blocks/block-view.ts";
import type { StoredChange } from "./memory/blocks/blocks.ts";
import type { Watchers } from "./watchers.ts";

/** Tells who watches a block of a change that is stored. */
export const tellWatchers = (watchers: Watchers, { what, row, by, value }: StoredChange): void => {
  const { label } = row;
  if (!watchers.has(label)) return;
  if (what === "deleted") {
    watchers.tell(label, { type: "block.deleted", label, by });
    watchers.closeAll(label);
    return;
  }
  if (value === undefined) return;
  const block = detailOf(blockView(row), { value, rendered: row.rendered, version: row.version });
  watchers.tell(label, { type: "block.changed", cursor: row.version, block, by });
};
