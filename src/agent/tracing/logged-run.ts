import type { CallRow } from "../calls/call-row.ts";
import type { RunRow } from "../runs.ts";

type Identified = { identity: { get(): { id: string } } };

/** The ids by which a line of the log is of this run, and of the event that it was begun by. */
export const loggedRun = (
  { identity }: Identified,
  { id: runId, trigger }: Pick<RunRow, "id" | "trigger">,
): { agentId: string; runId: string; eventId: string } => ({
  agentId: identity.get().id,
  runId,
  eventId: trigger.eventId,
});

/** The same of a call: of the run that made it, as long as that is known. */
export const loggedCall = (
  parts: Identified & { runs: { at(ordinal: number): RunRow | undefined } },
  { callId, runOrdinal }: Pick<CallRow, "callId" | "runOrdinal">,
): { agentId: string; callId: string; runId?: string; eventId?: string } => {
  const run = parts.runs.at(runOrdinal);
  return { ...(run ? loggedRun(parts, run) : { agentId: parts.identity.get().id }), callId };
};
