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

/** Whether nothing can have come of a call without a result: it was not begun, or what it begins with is to ask people. */
export const isUndone = (row: CallRow | undefined, begun: boolean): boolean =>
  !begun || row?.phase === "asked" || row?.phase === "ready";

/** What is known of a call without a result; undefined where it may have been carried out. */
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
 * A run is ended in the middle of a step. A call and its result are always paired: what was not executed is told why, by
 * `error`; what was begun may be done (R3). `atRest`: nothing of it is under way any more. Until then, what comes of a
 * call that was begun is told as it was.
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
    // It was cut before it had heard what that one had begun; nobody else asks.
    const other = endedBy(services, run, call);
    if (other) settleOpenCalls(services, other, services.journal.ofRun(other), cancellation, true);
  }
};

/**
 * The model read of these calls that they are pending, and nothing else will tell what became of them: it is journaled for
 * who remembers the run, and for the run that absorbed it.
 */
export const tellCutOff = (services: RunServices, run: RunRow, rows: JournalRow[], cutOff: CallRow[]): void => {
  if (cutOff.length === 0) return;
  const lines = cutOff.map(({ callId, tool, outcome, activeSpaceId, root }) =>
    eventLine({
      ...{ eventId: callId, type: "tool_result", toolCallId: callId, tool: tool.name, result: outcome?.value ?? null },
      ...{ failed: outcome?.status !== "complete", activeSpaceId, root },
    }),
  );
  services.journal.append({
    runOrdinal: run.ordinal,
    step: rows.at(-1)?.step ?? 0,
    kind: "preview",
    content: { role: "user", content: [cutOffHead, ...lines].join("\n") },
  });
};

const cutOffHead = "ENDED WITH THE RUN THAT BEGAN IT:";

/** What `tellCutOff` journaled of a run. */
export const cutOffIn = (rows: JournalRow[]): string[] =>
  rows.flatMap(({ kind, content }) => {
    const said = kind === "preview" && "role" in content && content.role === "user" ? content.content : undefined;
    return typeof said === "string" && said.startsWith(cutOffHead) ? [said] : [];
  });
