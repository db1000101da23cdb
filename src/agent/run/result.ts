import type { CallRequest, Shown } from "../records.ts";
import type { RunRow } from "../runs.ts";
import type { RunServices } from "./run-services.ts";

/** What came of one call. */
export type Result = {
  value: unknown;
  error: boolean;
  activeSpaceId?: string | null;
  waits?: true;
  refused?: true;
  shown?: Shown[];
};

/** Journals it: the call's `result` row, which is also the message that the model reads. The call's span is over. */
export const recordResult = (
  services: RunServices,
  run: RunRow,
  step: number,
  call: CallRequest,
  result: Result,
): void => {
  if (services.tracer.isOn) {
    const startedAt = services.journal.startOf(run, call.callId) ?? services.clock.now();
    services.tracer.call(run, { step, startedAt, call, value: result.value, error: result.error });
  }
  const row = services.journal.append({
    runOrdinal: run.ordinal,
    step,
    kind: "result",
    content: {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: call.callId,
          toolName: call.toolName,
          // Undefined is no JSON; through text, what is stored is what a replay reads.
          output: { type: "json", value: JSON.parse(JSON.stringify(result.value ?? null)) },
        },
      ],
    },
    meta: {
      kind: "result",
      callId: call.callId,
      toolName: call.toolName,
      error: result.error,
      ...(result.activeSpaceId === undefined ? {} : { activeSpaceId: result.activeSpaceId }),
      ...(result.waits ? { waits: true as const } : {}),
      ...(result.refused ? { refused: true as const } : {}),
      ...(result.shown ? { shown: result.shown } : {}),
    },
  });
  // It was under way when its run was ended: it belongs to that run all the same.
  const now = services.runs.at(run.ordinal);
  if (now?.journalTo != null && !now.kept) services.runs.update(run.ordinal, { journalTo: row.seq });
};
