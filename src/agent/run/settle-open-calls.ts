import { eventLine } from "../context/consciousness/inbox-message.ts";
import type { JournalRow } from "../journal.ts";
import type { CallRequest, Failure } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { CallRow } from "../schema.ts";
import { RunRef } from "../tools/builtin/runs.ts";
import { factsOf } from "../tools/registry.ts";
import { interruptedCall } from "../tools/unknown-outcome.ts";
import { type Result, recordResult } from "./result.ts";
import type { RunServices } from "./run-services.ts";
import { openCalls } from "./side-effects.ts";

export const cancellation: Failure = {
  code: "run_canceled",
  message: "the run was canceled before this call was executed",
};

const failure = (error: Failure): Result => ({ value: { success: false, error }, error: true });

/** Whether a call without a result has certainly had no effect: it was not begun, or it still asks people. */
export const isUndone = (row: CallRow | undefined, begun: boolean): boolean =>
  !begun || row?.phase === "asked" || row?.phase === "ready";

/** The known result of a call that has none in the journal; undefined if the call may have been carried out. */
const knownOf = (row: CallRow | undefined, begun: boolean, error: Failure): Result | undefined => {
  if (row?.phase === "answered" && row.outcome) {
    return { value: row.outcome.value, error: row.outcome.status !== "complete" };
  }
  return isUndone(row, begun) ? failure(error) : undefined;
};

/** The run that this call of `run` has ended. */
const endedBy = (services: RunServices, run: RunRow, { toolName, input }: CallRequest): RunRow | undefined => {
  const named = factsOf(toolName).endsRun === "other" ? RunRef.safeParse(input).data : undefined;
  const other = named && services.runs.get(named.runId);
  return other?.endedBy === run.id ? other : undefined;
};

/**
 * Gives every open call of a run that is ended a result, since each call is paired with one. A call that was not
 * executed gets `error`; one that was begun has an unknown outcome (R3). `atRest`: no call is under way any more.
 * Until then calls that were begun are left to record their own result.
 */
export const settleOpenCalls = (
  services: RunServices,
  run: RunRow,
  rows: JournalRow[],
  error: Failure,
  atRest: boolean,
): void => {
  for (const { step, call, begun } of openCalls(rows)) {
    const known = knownOf(services.calls.get(call.callId), begun, error);
    if (!known && !atRest) continue;
    recordResult(services, run, step, call, known ?? failure({ code: "outcome_unknown", message: interruptedCall }));
    // A run that this call ended may have open calls too, and nobody else settles them.
    const other = endedBy(services, run, call);
    if (other) settleOpenCalls(services, other, services.journal.ofRun(other), cancellation, true);
  }
};

/**
 * Journals what became of calls that the model knows only as pending. Later cycles read it, and so does the run that
 * absorbed this one.
 */
export const tellCutOff = (services: RunServices, run: RunRow, rows: JournalRow[], cutOff: CallRow[]): void => {
  if (cutOff.length === 0) return;
  const lines = cutOff.map(({ callId, tool, outcome, activeSpaceId, root }) =>
    eventLine({
      ...{ eventId: callId, type: "tool_result", toolCallId: callId, tool: tool.name, result: outcome?.value ?? null },
      ...{ failed: outcome?.status !== "complete", activeSpaceId, root },
    }),
  );
  services.journal.tell(run.ordinal, rows.at(-1)?.step ?? 0, [cutOffHead, ...lines].join("\n"));
};

const cutOffHead = "ENDED WITH THE RUN THAT BEGAN IT:";

/** The texts that `tellCutOff` journaled. */
export const cutOffIn = (rows: JournalRow[]): string[] =>
  rows.flatMap(({ kind, content }) => {
    const said = kind === "preview" && "role" in content && content.role === "user" ? content.content : undefined;
    return typeof said === "string" && said.startsWith(cutOffHead) ? [said] : [];
  });
