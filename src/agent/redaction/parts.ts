import type { redactions } from "./schema.ts";

/** Spaces tell an agent in parts what an erased entity said. The agent looks for several parts at once. Pure. */
export type Row = typeof redactions.$inferSelect;

/** Whether a redaction is of an entity that was erased: its names, or with more behind the entity's id its words. */
export const isOfErased = (id: string): boolean => id.startsWith("ent_");

export type Group = [Row, ...Row[]];

export const isBegun = ({ place, after }: Row): boolean => place > 0 || after > 0;

/** Whether a redaction is one of these parts. */
export const isPart = ({ id, messageIds }: Pick<Row, "id" | "messageIds">): boolean =>
  isOfErased(id) && messageIds !== null;

/** Parts that are at the same place, and which began there together, are looked for as one. */
export const together = (group: Group): Row => {
  const [first, ...more] = group;
  if (more.length === 0) return { ...first };
  const all = (of: (row: Row) => string[] | null): string[] => [...new Set(group.flatMap((row) => of(row) ?? []))];
  const since = Math.min(...group.map((row) => row.since));
  return { ...first, words: all(({ words }) => words), messageIds: all(({ messageIds }) => messageIds), since };
};

/** In characters. */
export const lengthOf = ({ words, messageIds }: Row): number =>
  [...(words ?? []), ...(messageIds ?? [])].reduce((sum, each) => sum + each.length, 0);
