import { ownPart } from "../../shared/ids.ts";
import { createScrub, type Scrub } from "./forms.ts";
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

/** Words of several redactions, and when each was first said. */
export const mergedWords = (all: Pick<Row, "words" | "saidAt" | "since">[]): { words: string[]; saidAt: number[] } => {
  const said = new Map<string, number>();
  for (const { words, saidAt, since } of all) {
    for (const [index, each] of (words ?? []).entries()) {
      said.set(each, Math.min(said.get(each) ?? Number.POSITIVE_INFINITY, saidAt?.[index] ?? since));
    }
  }
  return { words: [...said.keys()], saidAt: [...said.values()] };
};

/** Parts that are at the same place, and which began there together, are looked for as one. */
export const together = (group: Group): Row => {
  const [first, ...more] = group;
  if (more.length === 0) return { ...first };
  const messageIds = [...new Set(group.flatMap((row) => row.messageIds ?? []))];
  return { ...first, ...mergedWords(group), messageIds, since: Math.min(...group.map(({ since }) => since)) };
};

/** In characters. */
export const lengthOf = ({ words, messageIds }: Row): number =>
  [...(words ?? []), ...(messageIds ?? [])].reduce((sum, each) => sum + each.length, 0);

/** The parts of ids that name a message, a call, an erased entity, or a space with each of its messages. */
const partsOf = (id: string): string[] => {
  if (id.startsWith("spc_") || isOfErased(id)) return [id.slice(4, 30)];
  return /^(?:msg|tc)_/.test(id) ? [ownPart(id)] : [];
};

export const scrubOf = (row: Row): Scrub => {
  const { id, words, text, kept, senderName, messageIds } = row;
  const { words: was, saidAt } = mergedWords([row]);
  const now = text === null ? undefined : (kept ?? text);
  const areNames = isOfErased(id) && !id.includes(" ");
  return createScrub({
    ...{ was, saidAt, now, areNames, isMessage: /^(?:msg|spc)_/.test(id) },
    senderNames: areNames ? (words ?? []) : senderName === null ? [] : [senderName],
    idParts: [id, ...(messageIds ?? [])].flatMap(partsOf),
  });
};
