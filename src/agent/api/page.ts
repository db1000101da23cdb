import type { Page } from "../../protocol/rpc.ts";
import { ColloquyError } from "../../shared/errors.ts";

/** A page of rows as they are shown. `rows` are one more than `limit`, if there are more. */
export const page = <Row, Item>(
  rows: Row[],
  limit: number,
  cursorOf: (row: Row) => number,
  view: (row: Row) => Item,
): Page<Item> => {
  const shown = rows.slice(0, limit);
  const last = shown.at(-1);
  return { items: shown.map(view), nextCursor: rows.length > limit && last ? String(cursorOf(last)) : null };
};

/** Where the page before ended. Throws `invalid_cursor`. */
export const cursorOf = (cursor: string | undefined): number | undefined => {
  if (cursor === undefined) return undefined;
  if (!/^\d{1,15}$/.test(cursor)) throw new ColloquyError("invalid_cursor", "use the nextCursor of the page before");
  return Number(cursor);
};
