import type { z } from "zod";
import type { MemberReadEvent, MessageRoutedEvent, RunFrame } from "../protocol/events.ts";
import type { Note, RouterNote, RunNote, SpaceState } from "./space-state.ts";

/** Notes help people who watch. The runs API keeps the history. */
const maxNotes = 50;

/** The note of a run that ended without a message, or null. */
export const noteOfRun = (frame: z.infer<typeof RunFrame>, afterSeq: number): RunNote | null => {
  const kind = kindOfRun(frame);
  if (kind === null) return null;
  const reason = frame.error?.message ?? frame.reason;
  return { runId: frame.runId, entityId: frame.entityId, kind, afterSeq, ...(reason ? { reason } : {}) };
};

/** The same note from an agent's durable read mark, which also reaches a client that was away. */
export const noteOfRead = (frame: z.infer<typeof MemberReadEvent>, afterSeq: number): RunNote | null => {
  const { runId, entityId, outcome, reason } = frame;
  if (runId === undefined || (outcome !== "silent" && outcome !== "failed") || afterSeq === 0) return null;
  return { runId, entityId, kind: outcome, afterSeq, ...(reason ? { reason } : {}) };
};

/** The note of a failed router. A router that decided leaves none: the woken agents show by themselves. */
export const noteOfRouter = (frame: z.infer<typeof MessageRoutedEvent>, afterSeq: number): RouterNote | null => {
  if (frame.outcome !== "failed" || afterSeq === 0) return null;
  const { messageId, error } = frame;
  return { messageId, kind: "unrouted", afterSeq, ...(error ? { reason: error.message } : {}) };
};

/** The id of the run or message that a note is about. */
export const keyOfNote = (note: Note): string => (note.kind === "unrouted" ? note.messageId : note.runId);

/** Keeps one note for each run or message, in its first place. A later note only adds missing fields. */
export const withNote = (state: SpaceState, note: Note | null): SpaceState => {
  if (note === null) return state;
  const index = state.notes.findIndex((one) => keyOfNote(one) === keyOfNote(note));
  const known = state.notes[index];
  if (known !== undefined) {
    return { ...state, notes: state.notes.with(index, { ...note, ...known }) };
  }
  return { ...state, notes: [...state.notes, note].slice(-maxNotes) };
};

const kindOfRun = (frame: z.infer<typeof RunFrame>): RunNote["kind"] | null => {
  if (frame.type === "run.failed") return "failed";
  if (frame.type === "run.canceled") return "canceled";
  return frame.type === "run.completed" && frame.outcome === "silent" ? "silent" : null;
};
