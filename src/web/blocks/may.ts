import type { Block } from "../../client/index.ts";

/** What the people of a space may do with a block there, by its permission. */
export type May = { append: boolean; change: boolean; remove: boolean };

const ranks: Partial<Record<Block["permission"], number>> = { Append: 1, ReadWrite: 2, Admin: 3 };

export const mayWith = (permission: Block["permission"]): May => {
  const rank = ranks[permission] ?? 0;
  return { append: rank >= 1, change: rank >= 2, remove: rank >= 3 };
};

/** Of a part that is read-only. */
export const mayNothing: May = { append: false, change: false, remove: false };
