import {
  type EntityType,
  keyOfNote,
  type Message,
  type Note,
  type OutgoingMessage,
  type RunningStream,
  type SpaceState,
} from "../../client/index.ts";
import { isSameDay } from "../look/time.tsx";

/** A row of the timeline. Rows are a pure function of the space's state. */
export type Row = { key: string } & (
  | ({ kind: "message" } & ShownMessage)
  | { kind: "stream"; stream: RunningStream; opensGroup: boolean }
  | { kind: "outgoing"; outgoing: OutgoingMessage; opensGroup: boolean }
  | { kind: "note"; note: Note }
);

export type ShownMessage = {
  message: Message;
  opensDay: boolean;
  opensGroup: boolean;
  opensUnread: boolean;
  readers: readonly Reader[];
};

/** Messages of one sender form a group while less than this lies between them. */
const groupMs = 5 * 60 * 1000;

/** The sender and time of the row before; null after a row that ends a group. */
type Speaker = { entityId: string; at: string | null } | null;

const continues = (before: Speaker, entityId: string, at: string | null): boolean => {
  if (before?.entityId !== entityId) return false;
  return before.at === null || at === null || Date.parse(at) - Date.parse(before.at) < groupMs;
};

/**
 * A stream and its message have one key, and so have a message under way and its stored one. React then keeps the row
 * that is on the screen.
 */
const keyOfMessage = (message: Message, youId: string): string => {
  if (message.streamId) return message.streamId;
  return message.clientKey && message.sender.id === youId ? message.clientKey : message.id;
};

/** A member who has read up to a message; `words` hold the name and, for an agent, the outcome. */
export type Reader = { id: string; name: string; type: EntityType; words: string };

const wordsFor = (name: string, outcome: string | undefined, reason: string | undefined): string => {
  if (outcome !== "silent" && outcome !== "failed") return name;
  return `${name} (${outcome === "silent" ? "said nothing" : "failed"}${reason ? `: ${reason}` : ""})`;
};

type Reading = { seq: number; outcome?: string; reason?: string };

/** The furthest known reading of an entity: its mark, or a run of it that said nothing. */
const readingOf = (state: SpaceState, seqs: ReadonlyMap<string, number>, entityId: string): Reading | null => {
  const known = state.reads[entityId];
  const mark = known && { ...known, seq: seqs.get(known.messageId) ?? known.seq };
  const note = state.notes.findLast((one) => one.kind === "silent" && one.entityId === entityId);
  if (!note || (mark && mark.seq >= note.afterSeq)) return mark ?? null;
  return { seq: note.afterSeq, outcome: "silent", ...(note.reason ? { reason: note.reason } : {}) };
};

/**
 * The readers by the `seq` of the message that they have read up to. A mark finds its message even if that was loaded
 * later. Members who have spoken since are left out, and so is the person of this page.
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

const nobody: readonly Reader[] = [];

/** Messages and notes, then running streams, then messages under way. */
export const timelineRows = (state: SpaceState, unreadFromSeq: number | null): Row[] => {
  const rows: Row[] = [];
  const firstSeq = state.messages[0]?.seq ?? 0;
  const youId = state.you?.id ?? "";
  const readers = readersBySeq(state);
  // The readers of a message show who was silent. A line for each silent agent would drown the rest.
  const shown = state.notes.filter((note) => note.afterSeq >= firstSeq && note.kind !== "silent");
  const notes = shown.sort((one, other) => one.afterSeq - other.afterSeq);
  let speaker: Speaker = null;
  let before: Message | null = null;
  const notesUpTo = (seq: number): void => {
    for (let note = notes[0]; note && note.afterSeq < seq; note = notes[0]) {
      rows.push({ kind: "note", key: keyOfNote(note), note });
      speaker = null;
      notes.shift();
    }
  };
  for (const message of state.messages) {
    notesUpTo(message.seq);
    const opensDay = before === null || !isSameDay(before.createdAt, message.createdAt);
    const opensUnread = message.seq === unreadFromSeq;
    const isPlain = message.kind === "text" && !message.origin && !message.replyTo;
    const isContinued = isPlain && continues(speaker, message.sender.id, message.createdAt);
    const opensGroup = opensDay || opensUnread || !isContinued;
    const row = { key: keyOfMessage(message, youId), message, opensDay, opensGroup, opensUnread };
    rows.push({ kind: "message", ...row, readers: readers.get(message.seq) ?? nobody });
    speaker = message.kind === "text" ? { entityId: message.sender.id, at: message.createdAt } : null;
    before = message;
  }
  notesUpTo(Number.POSITIVE_INFINITY);
  for (const stream of state.streams) {
    rows.push({ kind: "stream", key: stream.streamId, stream, opensGroup: !continues(speaker, stream.entityId, null) });
    speaker = { entityId: stream.entityId, at: null };
  }
  for (const outgoing of state.outgoing) {
    const opensGroup = outgoing.replyTo !== undefined || !continues(speaker, youId, outgoing.createdAt);
    rows.push({ kind: "outgoing", key: outgoing.clientKey, outgoing, opensGroup });
    speaker = { entityId: youId, at: outgoing.createdAt };
  }
  return rows;
};

/** The first of the newest `count` messages that others wrote; null for none, or if they are not all loaded. */
export const firstUnreadSeq = (state: SpaceState, count: number): number | null => {
  const others = state.messages.filter((message) => message.sender.id !== state.you?.id);
  return count > 0 ? (others.at(-count)?.seq ?? null) : null;
};
