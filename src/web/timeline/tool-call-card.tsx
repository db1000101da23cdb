import type { Message } from "../../client/index.ts";
import { Icon } from "../look/icon.tsx";
import "./tool-call-card.css";

type ToolCall = NonNullable<Message["toolCall"]>;

const statusWords: Record<ToolCall["status"], string> = {
  running: "running",
  requires_action: "waits for an answer",
  complete: "done",
  error: "failed",
  expired: "expired",
  canceled: "canceled",
};

/** A visible tool call: its name and where it stands; what went in and came out on demand. */
export const ToolCallCard = ({ call }: { call: ToolCall }) => (
  <details className="tool-call" data-status={call.status}>
    <summary>
      <Icon name="tool" size={16} />
      <code>{call.name}</code>
      <span className="tool-call-status">{statusWords[call.status]}</span>
    </summary>
    <pre>{JSON.stringify(call.input, null, 2)}</pre>
    {call.output !== undefined && <pre>{JSON.stringify(call.output, null, 2)}</pre>}
  </details>
);
