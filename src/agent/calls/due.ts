import type { ToolCall } from "../../protocol/tool-call.ts";
import { lateAnswerMs } from "../bounds.ts";
import type { CallRow } from "../schema.ts";

/** The action of a call outside its run. It follows from the call's row alone, so an interrupted action goes on (R1, R2). */
export type CallAction =
  /** The space does not show yet what has become of it. */
  | "tell"
  /** It may run, and no run waits for it; or it ran, and was cut. */
  | "execute"
  /** A server is to be sent it. */
  | "push"
  /** The workspace's list of calls that wait for servers must name it, or no longer name it. */
  | "list"
  /** Nobody answered in time. */
  | "expire"
  /** Its result goes to the inbox. */
  | "hand_over"
  /** Nothing more can come of it. */
  | "forget";

/** Whether it takes as long as somebody's server takes. `Calls.due` says the same of rows. */
export const isSlow = (action: CallAction): boolean => action === "execute" || action === "push";

/** The status that the space should show. */
export const statusOf = ({ phase, outcome }: CallRow): ToolCall["status"] => {
  if (outcome) return outcome.status;
  return phase === "asked" ? "requires_action" : "running";
};

/** Whether its server is sent it; if not, servers ask for it. */
const isSent = ({ tool }: CallRow): boolean => tool.executionType === "external" && tool.execution !== undefined;

const isWithServer = ({ phase }: CallRow): boolean => phase === "out" || phase === "late";

export const shouldBeListed = (row: CallRow): boolean => isWithServer(row) && !isSent(row);

/** A run that waits looks at the time itself. */
const expires = (row: CallRow): boolean => row.phase === "late" || (row.phase === "out" && !row.attached);

/** The next action of a row, or null where there is none for now. */
export const actionOf = (row: CallRow, now: number): CallAction | null => {
  if (row.spaceId !== null && row.told !== statusOf(row)) return "tell";
  if (expires(row) && (row.dueAt ?? 0) <= now) return "expire";
  if (!row.attached && (row.phase === "ready" || row.phase === "running")) return "execute";
  if (isWithServer(row) && isSent(row) && !row.pushed) return "push";
  if (row.listed !== shouldBeListed(row)) return "list";
  if (!row.attached && row.phase === "answered") return "hand_over";
  if (row.phase === "done" && (row.keptUntil ?? 0) <= now) return "forget";
  return null;
};

/** When the row is to be looked at next; null while it waits for others alone. */
export const lookAt = (row: CallRow, now: number): number | null => {
  if (actionOf(row, now) !== null) return now;
  if (expires(row)) return row.dueAt;
  return row.phase === "done" ? row.keptUntil : null;
};

/** When nobody waits for a server's answer any more. */
export const serverDueAt = ({ tool, attached }: Pick<CallRow, "tool" | "attached">, now: number): number =>
  now + ((attached ? tool.timeoutMs : undefined) ?? lateAnswerMs);
