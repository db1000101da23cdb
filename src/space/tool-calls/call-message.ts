import type { Message } from "../../protocol/message.ts";
import type { ToolCall } from "../../protocol/tool-call.ts";

/** A message of kind `tool_call`. */
export type CallMessage = Message & { kind: "tool_call"; toolCall: ToolCall };
