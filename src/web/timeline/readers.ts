import type { EntityType, SpaceState } from "../../client/index.ts";

/** Somebody who has read up to a message, and for an agent what came of it. */
export type Reader = { id: string; name: string; type: EntityType; words: string };

const wordsFor = (name: string, outcome: string | undefined, reason: string | undefined): string => {
  if (outcome !== "silent" && outcome !== "failed") return name;
  return `${name} (${outcome === "silent" ? "said nothing" : "failed"}${reason ? `: ${reason}` : ""})`;
};

type Reading = { seq: number; outcome?: string; reason?: string };

/** The furthest that an entity is known to have read: by its mark, or by a run of it that said nothing. */
const readingOf = (state: SpaceState, seqs: ReadonlyMap<string, number>, entityId: string): Reading | null => {
  const known = state.reads[entityId];
  const mark = known && { ...known, seq: seqs.get(known.messageId) ?? known.seq };
  const note = state.notes.findLast((one) => one.kind === "silent" && one.entityId === entityId);
  if (!note || (mark && mark.seq >= note.afterSeq)) return mark ?? null;
  return { seq: note.afterSeq, outcome: "silent", ...(note.reason ? { reason: note.reason } : {}) };
};

/**
 * By `seq`, those whose reading has come to that message; a mark finds its message even if that was loaded later. Who has spoken since has
 * read it plainly enough, and so has the person whose page it is.
 */
export const readersBySeq = (state: SpaceState): ReadonlyMap<number, readonly Reader[]> => {
  const spokenAt = new Map(state.messages.map((message) => [message.sender.id, message.seq]));
  const seqs = new Map(state.messages.map((message) => [message.id, message.seq]));
  const found = new Map<number, Reader[]>();
  for (const { id, name, type } of state.members) {
    const mark = readingOf(state, seqs, id);
    if (!mark || mark.seq === 0 || id === state.you?.id || (spokenAt.get(id) ?? 0) >= mark.seq) continue;
    const reader = { id, name, type, words: wordsFor(name, mark.outcome, mark.reason) };
    found.set(mark.seq, [...(found.get(mark.seq) ?? []), reader]);
  }
  return found;
};
