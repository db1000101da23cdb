/** An event in its place in the log. */
type Placed = { seq: number; frame: string };

/**
 * The newest rows of the log in memory: those who follow it are told of what was just appended, each of the same rows,
 * and none reads them from the database.
 *
 * Invariants
 * 1. The rows follow each other without a gap up to the log's end; rows never change.
 * 2. Their frames have `maxLength` characters at most; of a longer row nothing is kept.
 */
export const createTail = <Row extends Placed>(maxLength: number) => {
  let rows: Row[] = [];
  let length = 0;
  return {
    /** The row is the log's newest. Beyond `maxLength` half of that is left, so that not every row moves all others. */
    add(row: Row): void {
      rows.push(row);
      length += row.frame.length;
      if (length <= maxLength) return;
      let from = 0;
      for (; from < rows.length && length > maxLength / 2; from += 1) length -= rows[from]?.frame.length ?? 0;
      rows = rows.slice(from);
    },

    /** `read` are the log's last, as read: those that come before what is kept are kept too, as far as there is room. */
    adopt(read: Row[]): void {
      const first = rows[0]?.seq ?? Number.POSITIVE_INFINITY;
      const older: Row[] = [];
      for (const row of read.filter(({ seq }) => seq < first).reverse()) {
        if (length + row.frame.length > maxLength) break;
        length += row.frame.length;
        older.unshift(row);
      }
      rows = [...older, ...rows];
    },

    /** At most `limit` rows after `cursor`; undefined where they are not all kept. */
    after(cursor: number, limit: number): Row[] | undefined {
      const [first] = rows;
      if (!first || cursor < first.seq - 1) return undefined;
      const from = cursor + 1 - first.seq;
      return rows.slice(from, from + limit);
    },

    forget(): void {
      rows = [];
      length = 0;
    },
  };
};
