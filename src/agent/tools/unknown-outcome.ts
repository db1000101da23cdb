import { z } from "zod";
import { ColloquyError } from "../../shared/errors.ts";

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

/** What a call is told whose agent was cut while it ran. */
export const interruptedCall = unknownInWords("the call was interrupted");

const Unknown = z.object({ error: z.object({ code: z.literal("outcome_unknown") }) });

/** Whether a call's result says so. */
export const isUnknownOutcome = (result: unknown): boolean => Unknown.safeParse(result).success;
