import * as z from "zod";
import type { ToolCallOutcome } from "../../protocol/rpc.ts";
import { jsonHash } from "../../shared/canonical-json.ts";
import { ColloquyError } from "../../shared/errors.ts";
import { quote } from "../../shared/quote.ts";
import type { CallOutcome } from "../records.ts";
import type { CallRow } from "../schema.ts";

/** A call that came to nothing, as the model and the space are told. */
export const failed = (
  status: Exclude<CallOutcome["status"], "complete">,
  code: string,
  message: string,
): CallOutcome => ({ status, value: { success: false, error: { code, message } }, error: { code, message } });

/** Wraps an outside answer that has an `approval`: only the runtime's own record may have that form. */
export const brought = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "approval" in value ? { result: value } : value;

/** An approval may carry words of the person, which the agent must know. */
export const completed = (value: unknown, approval: CallRow["approval"]): CallOutcome => ({
  status: "complete",
  value:
    approval && approval.notes.length > 0
      ? { result: value, approval: { by: approval.by, notes: approval.notes } }
      : value,
});

/**
 * Why a call must not be done: its arguments are not those that people approved. Undefined where they are. `isBegun`: it may
 * have been done with those (R3).
 */
export const changedSinceApproval = (
  { approval, input }: Pick<CallRow, "approval" | "input">,
  isBegun = false,
): CallOutcome | undefined => {
  if (approval?.inputHash === undefined || approval.inputHash === jsonHash(input)) return undefined;
  const why = "its arguments are not those that people approved";
  return isBegun
    ? failed("error", "outcome_unknown", unknownInWords(why))
    : failed("error", "approval_changed", `not done, ${why}: ask again`);
};

/** The call's outcome by what people said, other than yes. */
export const outcomeOf = ({ outcome, output, note, by }: ToolCallOutcome): CallOutcome => {
  const who = by.length === 0 ? "somebody" : by.map(({ name }) => quote(name)).join(", ");
  const why = note === undefined ? "" : `: ${quote(note)}`;
  switch (outcome) {
    case "rejected":
      return failed("error", "approval_rejected", `${who} rejected it${why}`);
    case "failed":
      return failed("error", "tool_failed", `${who} answered with an error${why}`);
    case "expired":
      return failed("expired", "gone", "nobody answered in time");
    default:
      return completed(brought(output ?? null), null);
  }
};

/** `what` went wrong, and what whoever would do it again has to know. */
export const unknownInWords = (what: string): string =>
  `${what}; whether it took effect is not known: find out before you do it again`;

/** A call that may have been carried out, and of which no answer tells (R3). */
export const unknownOutcome = (what: string, cause?: unknown): ColloquyError =>
  new ColloquyError("outcome_unknown", unknownInWords(what), { cause });

/** Turns an `unavailable` change into an unknown outcome: a try may have been heard and its answer lost (R3). */
export const asUnknownOutcome = async <T>(asking: Promise<T>): Promise<T> => {
  try {
    return await asking;
  } catch (error) {
    throw error instanceof ColloquyError && error.code === "unavailable" ? unknownOutcome(error.message, error) : error;
  }
};

/** The result of a call whose agent was cut while it ran. */
export const interruptedCall = unknownInWords("the call was interrupted");

const Unknown = z.object({ error: z.object({ code: z.literal("outcome_unknown") }) });

/** Whether a call's result says so. */
export const isUnknownOutcome = (result: unknown): boolean => Unknown.safeParse(result).success;
