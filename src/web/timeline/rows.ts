import {
  keyOfNote,
  type Message,
  type Note,
  type OutgoingMessage,
  type RunningStream,
  type SpaceState,
} from "../../client/index.ts";
import { isSameDay } from "../look/time.ts";
import { type Reader, readersBySeq } from "./readers.ts";

/** What stands in the timeline, one row each, as a pure function of the space's state. */
export type Row = { key: string } & (
  | {
      kind: "message";
      message: Message;
      opensDay: boolean;
      opensGroup: boolean;
      opensUnread: boolean;
      readers: readonly Reader[];
    }
  | { kind: "stream"; stream: RunningStream; opensGroup: boolean }
  | { kind: "outgoing"; outgoing: OutgoingMessage; opensGroup: boolean }
  | { kind: "note"; note: Note }
);

/** Messages of one sender stand together if no longer than this lies between them. */
const groupMs = 5 * 60 * 1000;

/** Who speaks in the row before, and when; null where a group cannot go on. */
type Speaker = { entityId: string; at: string | null } | null;

const continues = (before: Speaker, entityId: string, at: string | null): boolean => {
  if (before?.entityId !== entityId) return false;
  return before.at === null || at === null || Date.parse(at) - Date.parse(before.at) < groupMs;
};

/**
 * A stream and the message that it becomes have one key, as have a message under way and its stored one: what
 * is on the screen stays there and only changes.
 */
const keyOfMessage = (message: Message, youId: string | undefined): string => {
  if (message.streamId) return message.streamId;
  return message.clientKey && message.sender.id === youId ? message.clientKey : message.id;
};

const nobody: readonly Reader[] = [];

const messageRows = (state: SpaceState, unreadFromSeq: number | null): Row[] => {
  const rows: Row[] = [];
  const firstSeq = state.messages[0]?.seq ?? 0;
  // Silence shows in who has read a message; a line for each agent that had nothing to say would drown the rest.
  const notes = state.notes.filter((note) => note.afterSeq >= firstSeq && note.kind !== "silent");
  const readers = readersBySeq(state);
  let speaker: Speaker = null;
  let before: Message | null = null;
  let noteIndex = 0;
  const sorted = [...notes].sort((one, other) => one.afterSeq - other.afterSeq);
  const notesUpTo = (seq: number): void => {
    for (let note = sorted[noteIndex]; note && note.afterSeq < seq; note = sorted[noteIndex]) {
      rows.push({ kind: "note", key: keyOfNote(note), note });
      speaker = null;
      noteIndex += 1;
    }
  };
  for (const message of state.messages) {
    notesUpTo(message.seq);
    const opensDay = before === null || !isSameDay(before.createdAt, message.createdAt);
    const opensUnread = message.seq === unreadFromSeq;
    const isPlain = message.kind === "text" && !message.origin && !message.replyTo;
    const isContinued = isPlain && continues(speaker, message.sender.id, message.createdAt);
    const opensGroup = opensDay || opensUnread || !isContinued;
    const key = keyOfMessage(message, state.you?.id);
    const row = { kind: "message", key, message, opensDay, opensGroup, opensUnread } as const;
    rows.push({ ...row, readers: readers.get(message.seq) ?? nobody });
    speaker = message.kind === "text" ? { entityId: message.sender.id, at: message.createdAt } : null;
    before = message;
  }
  notesUpTo(Number.POSITIVE_INFINITY);
  return rows;
};

const speakerOf = (row: Row | undefined): Speaker => {
  if (row?.kind === "message" && row.message.kind === "text") {
    return { entityId: row.message.sender.id, at: row.message.createdAt };
  }
  return null;
};

/** Messages with what stands between them; then what is being said; then what is under way. */
export const timelineRows = (state: SpaceState, unreadFromSeq: number | null): Row[] => {
  const rows = messageRows(state, unreadFromSeq);
  let speaker = speakerOf(rows.at(-1));
  for (const stream of state.streams) {
    rows.push({ kind: "stream", key: stream.streamId, stream, opensGroup: !continues(speaker, stream.entityId, null) });
    speaker = { entityId: stream.entityId, at: null };
  }
  const youId = state.you?.id ?? "";
  for (const outgoing of state.outgoing) {
    const opensGroup = outgoing.replyTo !== undefined || !continues(speaker, youId, outgoing.createdAt);
    rows.push({ kind: "outgoing", key: outgoing.clientKey, outgoing, opensGroup });
    speaker = { entityId: youId, at: outgoing.createdAt };
  }
  return rows;
};

/** The first of the newest `count` messages that others wrote; null for none, or where they are not all loaded. */
export const firstUnreadSeq = (state: SpaceState, count: number): number | null => {
  const others = state.messages.filter((message) => message.sender.id !== state.you?.id);
  return count > 0 ? (others.at(-count)?.seq ?? null) : null;
};
