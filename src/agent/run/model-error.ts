import { classifyFailure, type ModelFailure } from "../../models/failure.ts";

/** What a model's call ended with, sorted. Whatever else a run ends with is no fault of its model. */
export class ModelError extends Error {
  readonly failure: ModelFailure;

  constructor(cause: unknown) {
    const failure = classifyFailure(cause);
    super(failure.message, { cause });
    this.failure = failure;
  }
}
