import type { z } from "zod";
import type { MemberReadEvent, MessageRoutedEvent, RunFrame } from "../protocol/events.ts";
import type { Note, RouterNote, RunNote, SpaceState } from "./space-state.ts";

/** Notes are a help to whoever watches, not history: the runs API keeps that. */
const maxNotes = 50;

/** What a run's end leaves to be told, or null where its message tells it. */
export const noteOfRun = (frame: z.infer<typeof RunFrame>, afterSeq: number): RunNote | null => {
  const kind = kindOfRun(frame);
  if (kind === null) return null;
  const reason = frame.error?.message ?? frame.reason;
  return { runId: frame.runId, entityId: frame.entityId, kind, afterSeq, ...(reason ? { reason } : {}) };
};

/** The same from an agent's durable read mark, which a client that was away gets too. */
export const noteOfRead = (frame: z.infer<typeof MemberReadEvent>, afterSeq: number): RunNote | null => {
  const { runId, entityId, outcome, reason } = frame;
  if (runId === undefined || (outcome !== "silent" && outcome !== "failed") || afterSeq === 0) return null;
  return { runId, entityId, kind: outcome, afterSeq, ...(reason ? { reason } : {}) };
};

/** A router that failed; whom it woke shows by what they do, and nobody is nothing to tell. */
export const noteOfRouter = (frame: z.infer<typeof MessageRoutedEvent>, afterSeq: number): RouterNote | null => {
  if (frame.outcome !== "failed" || afterSeq === 0) return null;
  const { messageId, error } = frame;
  return { messageId, kind: "unrouted", afterSeq, ...(error ? { reason: error.message } : {}) };
};

/** What a note is about, as its key. */
export const keyOfNote = (note: Note): string => (note.kind === "unrouted" ? note.messageId : note.runId);

/** One note for each run or message: what is told later adds to what was told, and the place stays. */
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
