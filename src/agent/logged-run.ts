import type { RunRow } from "./runs.ts";

/** The ids by which a line of the log is of this run, and of the event that it was begun by. */
export const loggedRun = (
  { identity }: { identity: { get(): { id: string } } },
  { id: runId, trigger }: Pick<RunRow, "id" | "trigger">,
): { agentId: string; runId: string; eventId: string } => ({
  agentId: identity.get().id,
  runId,
  eventId: trigger.eventId,
});
