import type { CallRequest } from "../../protocol/exported-history.ts";
import { eventLine } from "../context/consciousness/inbox-message.ts";
import { inboxEvents } from "../context/grammar.ts";
import { quote } from "../context/wording.ts";
import { questionOf, toolResultOf } from "../inbox/deliver.ts";
import type { CallOutcome, Failure } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { CallRow } from "../schema.ts";
import { RunRef } from "../tools/builtin/runs.ts";
import { failed, interruptedCall } from "../tools/outcome.ts";
import { factsOf, findTool } from "../tools/registry.ts";
import type { ToolOutput } from "../tools/tool.ts";
import { kindOf } from "./composing.ts";
import { cutOffText, openCalls, type RunCall, readRows } from "./run-rows.ts";
import type { RunServices } from "./run-services.ts";

/** The outcome of one call. `refused`: it broke a tool rule and was not executed. */
export type Result = ToolOutput & { error: boolean; refused?: true };

export const resultOf = ({ value, status }: CallOutcome): Result => ({ value, error: status !== "complete" });

export const failure = (code: string, message: string): Result => resultOf(failed("error", code, message));

export const cancellation: Failure = {
  code: "run_canceled",
  message: "the run was canceled before this call was executed",
};

/** Journals it: the call's `result` row, which is also the message that the model reads. The call's span is over. */
export const recordResult = (
  services: RunServices,
  run: RunRow,
  { step, call, begunAt }: Omit<RunCall, "result">,
  { value, ...facts }: Result,
): void => {
  const { callId, toolName } = call;
  const startedAt = begunAt ?? services.clock.now();
  const isTool = (): boolean => findTool(toolName, kindOf(services, run)) !== undefined;
  services.tracer.call(run, { step, startedAt, call, isTool, value, error: facts.error });
  // Undefined is no JSON; through text, what is stored is what a replay reads.
  const output = { type: "json", value: JSON.parse(JSON.stringify(value ?? null)) } as const;
  const row = services.journal.append({
    runOrdinal: run.ordinal,
    step,
    kind: "result",
    content: { role: "tool", content: [{ type: "tool-result", toolCallId: callId, toolName, output }] },
    meta: { kind: "result", callId, toolName, ...facts },
  });
  // It was under way when its run was ended: it belongs to that run all the same.
  const now = services.runs.at(run.ordinal);
  if (now?.journalTo != null && !now.kept) services.runs.update(run.ordinal, { journalTo: row.seq });
};

/** Whether a call without a result has certainly had no effect: it was not begun, or it still asks people. */
export const isUndone = (row: CallRow | undefined, { begunAt }: RunCall): boolean =>
  begunAt === undefined || row?.phase === "asked" || row?.phase === "ready";

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
export const settleOpenCalls = (services: RunServices, run: RunRow, error: Failure, atRest: boolean): void => {
  for (const open of openCalls(readRows(services.journal.ofRun(run)))) {
    const row = services.calls.get(open.call.callId);
    const undone = isUndone(row, open) ? failure(error.code, error.message) : undefined;
    const known = row?.phase === "answered" && row.outcome ? resultOf(row.outcome) : undone;
    if (!known && !atRest) continue;
    recordResult(services, run, open, known ?? failure("outcome_unknown", interruptedCall));
    // A run that this call ended may have open calls too, and nobody else settles them.
    const other = endedBy(services, run, open.call);
    if (other) settleOpenCalls(services, other, cancellation, true);
  }
};

/** Who is awaited no longer once a run has ended. */
const unansweredIn = (services: RunServices, run: RunRow): string[] =>
  services.waits.ofRun(run.ordinal).flatMap((wait) => {
    const names = wait.awaited.filter(({ replyId }) => replyId === null).map(({ name }) => quote(name));
    if (names.length === 0 || wait.questionSeq === null) return [];
    const { messageId, text: question } = questionOf(services, wait);
    const spaceName = services.spaces.get(wait.spaceId)?.snapshot.name ?? "";
    const silent = `${names.join(", ")}: nobody waits for it any more`;
    return [inboxEvents.unanswered.write({ silent, spaceName, spaceId: wait.spaceId, messageId, question })];
  });

/**
 * Journals what became of calls that the model knows only as pending, and of questions that are open. Later cycles read
 * it, and so does the run that absorbed this one.
 */
export const tellCutOff = (services: RunServices, run: RunRow, step: number, cutOff: CallRow[]): void => {
  const lines = [...cutOff.map((call) => eventLine(toolResultOf(call))), ...unansweredIn(services, run)];
  if (lines.length > 0) services.journal.tell(run.ordinal, step, cutOffText(lines));
};
