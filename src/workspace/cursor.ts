import type { Page } from "../protocol/rpc.ts";
import { ColloquyError } from "../shared/errors.ts";

/** A list's cursor is the position of the last thing on the page before. */
export const positionOf = (cursor: string | undefined): number | undefined => {
  if (cursor === undefined) return undefined;
  if (!/^\d{1,15}$/.test(cursor)) {
    throw new ColloquyError("invalid_cursor", "Send the nextCursor of the page before, unchanged.");
  }
  return Number(cursor);
};

/** A page out of up to `limit + 1` rows: one more than asked for says that there is more. */
export const pageOf = <Row extends { position: number }, Item>(
  rows: Row[],
  limit: number,
  read: (row: Row) => Item,
): Page<Item> => {
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { items: page.map(read), nextCursor: rows.length > limit && last ? String(last.position) : null };
};
