import { ColloquyError } from "../../../shared/errors.ts";

/** An edit that does not apply to the block as it is. */
export const refusedEdit = (detail: string): ColloquyError => new ColloquyError("edit_refused", detail);

export const outOfBounds = (index: number, length: number): ColloquyError =>
  refusedEdit(`Index ${index} out of bounds (len=${length})`);

export const noSuchField = (name: string): ColloquyError => refusedEdit(`Field not found: ${name}`);
