import { ColloquyError } from "../../src/shared/errors.ts";

/** What the work throws. Fails where it throws nothing, or another error. */
export const refusal = (work: () => unknown): ColloquyError => {
  try {
    work();
  } catch (error) {
    if (error instanceof ColloquyError) return error;
    throw error;
  }
  throw new Error("it was not refused");
};
