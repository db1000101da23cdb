import { ColloquyError } from "./errors.ts";

/**
 * A page of rows in the order of their positions; its cursor is the position of the last thing on the page before.
 * `read` answers up to `limit` rows from there on: one more than the page holds says that there is more.
 */
export const pageOf = <Row extends { position: number }, Item>(
  { cursor, limit }: { cursor?: string | undefined; limit: number },
  read: (place: { from: number | undefined; limit: number }) => Row[],
  itemOf: (row: Row) => Item,
): { items: Item[]; nextCursor: string | null } => {
  if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) {
    throw new ColloquyError("invalid_cursor", "Send the nextCursor of the page before, unchanged.");
  }
  const rows = read({ from: cursor === undefined ? undefined : Number(cursor), limit: limit + 1 });
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  return { items: page.map(itemOf), nextCursor: rows.length > limit && last ? String(last.position) : null };
};
