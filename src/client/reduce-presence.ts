import type { z } from "zod";
import type { PresenceFrame } from "../protocol/events.ts";
import { type ErrorCode, errorCodes, errorKind } from "../shared/errors.ts";
import type { SpaceState } from "./space-state.ts";

/** Whether a run rests with a fault that passes. It left for another reason where it waits, ended or was cut. */
const isPassing = (reason: string | undefined): boolean => {
  const code = errorCodes.find((one: ErrorCode) => one === reason);
  return code !== undefined && "retryable" in errorKind(code);
};

/** A run of which something new is told is not backing off any more. */
export const leftBackingOff = (state: SpaceState, runId: string): SpaceState =>
  state.backingOff.some((one) => one.runId === runId)
    ? { ...state, backingOff: state.backingOff.filter((one) => one.runId !== runId) }
    : state;

/** Which agents are at work here, and which will try again. */
export const reducePresence = (before: SpaceState, frame: z.infer<typeof PresenceFrame>): SpaceState => {
  const { entityId, runId } = frame;
  const state = leftBackingOff(before, runId);
  if (frame.type === "agent.active") {
    if (state.active.some((agent) => agent.runId === runId)) return state;
    return { ...state, active: [...state.active, { entityId, runId }] };
  }
  const active = state.active.filter((agent) => agent.runId !== runId);
  // A cut channel is told as interrupted, and the run goes on at once.
  if (!isPassing(frame.reason) || frame.reason === "interrupted") return { ...state, active };
  return { ...state, active, backingOff: [...state.backingOff, { entityId, runId }] };
};
