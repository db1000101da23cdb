import type { ToolCallOutcome } from "../../protocol/rpc.ts";
import { quote } from "../context/quote.ts";
import type { CallApproval, CallOutcome } from "../records.ts";

/** A call that came to nothing, as the model and the space are told. */
export const failed = (
  status: Exclude<CallOutcome["status"], "complete">,
  code: string,
  message: string,
): CallOutcome => ({ status, value: { success: false, error: { code, message } }, error: { code, message } });

/** What a person approved may carry a word of theirs, which the agent must know. */
export const completed = (value: unknown, approval: CallApproval | null): CallOutcome => ({
  status: "complete",
  value: approval && approval.notes.length > 0 ? { result: value, approval } : value,
});

const names = (by: ToolCallOutcome["by"]): string =>
  by.length === 0 ? "somebody" : by.map(({ name }) => quote(name)).join(", ");

/** What people said, other than yes. */
export const outcomeOf = ({ outcome, output, note, by }: ToolCallOutcome): CallOutcome => {
  const why = note === undefined ? "" : `: ${quote(note)}`;
  switch (outcome) {
    case "rejected":
      return failed("error", "approval_rejected", `${names(by)} rejected it${why}`);
    case "failed":
      return failed("error", "tool_failed", `${names(by)} answered with an error${why}`);
    case "expired":
      return failed("expired", "gone", "nobody answered in time");
    default:
      return completed(output ?? null, null);
  }
};
