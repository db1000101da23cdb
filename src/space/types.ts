import type { Message } from "../protocol/message.ts";
import type { ToolCallOutcome } from "../protocol/rpc.ts";
import type { ToolCall } from "../protocol/tool-call.ts";

/** A message of kind `tool_call`. */
export type CallMessage = Message & { kind: "tool_call"; toolCall: ToolCall };

/** How people's part in a call ended. It is kept beside the event that ended it. */
export type CallOutcome = ToolCallOutcome["outcome"];
