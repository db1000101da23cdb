import type { Block, BlockOperation, Json, SpaceState } from "../../client/index.ts";

/** An operation as a view makes it; the block adds the section. */
type WithoutSection<One> = One extends unknown ? Omit<One, "section"> : never;

/** A block, or a section of it, as the view of its kind gets it. */
export type Part<Schema> = {
  schema: Schema;
  value: Json;
  may: May;
  /** For screen readers. */
  name: string;
  space: SpaceState;
  /** The version that is shown; null while an edit of this person is not stored yet. */
  version: number | null;
  /** The author of the last change: `agent:ent_…`. */
  changedBy: string | null;
  onEdit: (operation: WithoutSection<BlockOperation>, onVersion?: number) => void;
};

/** What the people of a space may do with a block there. */
export type May = { append: boolean; change: boolean; remove: boolean };

const ranks: Partial<Record<Block["permission"], number>> = { Append: 1, ReadWrite: 2, Admin: 3 };

export const mayWith = (permission: Block["permission"]): May => {
  const rank = ranks[permission] ?? 0;
  return { append: rank >= 1, change: rank >= 2, remove: rank >= 3 };
};

/** For a part that is read-only. */
export const mayNothing: May = { append: false, change: false, remove: false };

export const readOnlyMark = <span className="block-read-only tone-none">read-only</span>;
