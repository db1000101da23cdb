import { lateAnswerMs } from "../bounds.ts";
import type { CallRow } from "./call-row.ts";
import type { CallServices } from "./call-services.ts";

/** When nobody waits for a server's answer any more. */
export const serverDueAt = ({ tool, attached }: Pick<CallRow, "tool" | "attached">, now: number): number =>
  now + (attached ? tool.timeoutMs : lateAnswerMs);

/** A call that may run now does: here, or with a server from now on. */
export const beginExecution = ({ calls, clock }: Pick<CallServices, "calls" | "clock">, row: CallRow): CallRow => {
  const outside = row.tool.executionType === "external";
  const changes = outside
    ? ({ phase: "out", dueAt: serverDueAt(row, clock.now()) } as const)
    : ({ phase: "running" } as const);
  return calls.change(row.callId, changes) ?? row;
};
