import type { BlockServices } from "./block-services.ts";
import { blockView, detailOf, sharedView } from "./block-view.ts";
import type { StoredChange } from "./blocks.ts";

/** Tells who watches a block of a change that is stored: each as the block is seen from where they watch. */
export const tellWatchers = (
  { watchers, blockSpaces, identity }: Pick<BlockServices, "watchers" | "blockSpaces" | "identity">,
  { what, row, by, value }: StoredChange,
): void => {
  const { label } = row;
  if (!watchers.has(label)) return;
  if (what === "deleted") {
    watchers.tell(label, () => ({ type: "block.deleted", label, by }));
    watchers.closeAll(label);
    return;
  }
  if (value === undefined) return;
  const { id: agentId, config } = identity.get();
  const viewFrom = (spaceId: string | undefined) => {
    if (spaceId === undefined) return blockView(row);
    const permission = blockSpaces.permissionIn(row.id, spaceId);
    return permission && sharedView(row, permission, { agentId, agentName: config.name });
  };
  watchers.tell(label, (spaceId) => {
    const view = viewFrom(spaceId);
    if (!view) return undefined;
    const block = detailOf(view, { value, rendered: row.rendered, version: row.version });
    return { type: "block.changed", cursor: row.version, block, by };
  });
};
