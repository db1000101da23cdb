import type { z } from "zod";
import type { MemberReadEvent, RunFrame } from "../protocol/events.ts";
import type { RunNote, SpaceState } from "./space-state.ts";

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

/** One note for each run: what is told later adds to what was told, and the place stays. */
export const withNote = (state: SpaceState, note: RunNote | null): SpaceState => {
  if (note === null) return state;
  const index = state.notes.findIndex((one) => one.runId === note.runId);
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
