import type { ToolCall } from "../../client/index.ts";
import { toolTitle } from "./titles.ts";

const words: Record<ToolCall["status"], string> = {
  running: "runs",
  requires_action: "waits for an answer",
  complete: "is done",
  error: "failed",
  expired: "has expired",
  canceled: "was canceled",
};

/** A call in a line, for where there is no room for its card: "Deploy app waits for approval". */
export const callWords = ({ name, status, awaits, error }: ToolCall): string => {
  const { title } = toolTitle(name);
  if (status === "requires_action" && awaits?.kind === "approval") return `${title} waits for approval`;
  if (error?.code === "outcome_unknown") return `${title} may have been done`;
  return `${title} ${error?.code === "approval_rejected" ? "was rejected" : words[status]}`;
};
