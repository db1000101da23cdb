import { maxBlockCharacters } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";

/** An edit that does not apply to the block as it is. */
export const refusedEdit = (detail: string): ColloquyError => new ColloquyError("edit_refused", detail);

export const countedTooFar = (name: string): ColloquyError =>
  refusedEdit(`Field '${name}' cannot count that far: set it to a smaller number`);

/** The text would be longer than any block may be. Checked before the text is built. */
export const textTooLong = (length: number): ColloquyError =>
  new ColloquyError(
    "text_too_long",
    `The text would have ${length} characters; a block holds at most ${maxBlockCharacters} (maxBlockCharacters)`,
  );

/** The list would be longer than any list may be. Checked before the list is built. */
export const tooManyItems = (items: number, most: number, bound: string): ColloquyError =>
  new ColloquyError("limit_reached", `${items} are more than ${most} (${bound}): delete some first`);

export const outOfBounds = (index: number, length: number): ColloquyError =>
  refusedEdit(`Index ${index} out of bounds (len=${length})`);

export const noSuchField = (name: string): ColloquyError => refusedEdit(`Field not found: ${name}`);
