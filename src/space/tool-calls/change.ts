import type { ToolCall } from "../../protocol/tool-call.ts";
import type { Append, Parts } from "../parts.ts";
import type { CallMessage } from "./call-message.ts";
import type { CallOutcome } from "./call-outcome.ts";
import type { CallRow } from "./tool-calls.ts";

/** Stores how a call stands from now on, and tells it: the calling agent too where people decided. In a transaction. */
export const changeCall = (
  { toolCalls }: Pick<Parts, "toolCalls">,
  append: Append,
  row: CallRow,
  call: ToolCall,
  outcome: CallOutcome | null,
): CallMessage => {
  const message = { ...row.message, toolCall: call };
  const { seq } = append({ type: "space.message.updated", message, outcome });
  toolCalls.store(message, seq);
  return message;
};
