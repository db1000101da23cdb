import type { CallRequest } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { Speech } from "./speech.ts";

/** One call of a step that is to be executed. */
export type Execution = {
  run: RunRow;
  step: number;
  call: CallRequest;
  /** Its `call` row is there already: an earlier life of this run began it. */
  started: boolean;
  activeSpaceId: string | null;
  /** What the step said while it was generated; undefined in a replay. */
  speech: Speech | undefined;
  signal: AbortSignal;
  /** Called while a tool takes its time, which its own timeout bounds: the run has not stalled. */
  progressed: () => void;
};
