import type { ToolCallOutcome } from "../../protocol/rpc.ts";
import type { ToolCall } from "../../protocol/tool-call.ts";

/** How people's part in a call ended; kept beside the event that ended it. */
export type CallOutcome = ToolCallOutcome["outcome"];

/**
 * What the event at `seq` decided about a call, as its agent is told of it. `by`: all who approved, or the one who
 * rejected or answered; nobody where it expired. `note`: the deciding one's, or why there is no answer.
 */
export const toldOutcome = (seq: number, toolCall: ToolCall, outcome: CallOutcome): ToolCallOutcome => {
  const answers = outcome === "expired" ? [] : (toolCall.awaits?.answers ?? []);
  const deciding = outcome === "rejected" ? answers.slice(-1) : answers;
  const note = outcome === "failed" ? toolCall.error?.message : deciding.at(-1)?.note;
  return {
    seq,
    toolCallId: toolCall.id,
    outcome,
    ...(outcome === "answered" ? { output: toolCall.output } : {}),
    ...(note === undefined ? {} : { note }),
    by: deciding.map(({ entityId: id, name, note: word }) => ({
      id,
      name,
      ...(word === undefined ? {} : { note: word }),
    })),
  };
};
