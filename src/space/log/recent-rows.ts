/**
 * The last rows of the log, in memory. All who follow the log are told of the same rows, and only the first reads them
 * from the database. Their frames have `maxLength` characters at most.
 */
export const createRecentRows = <Row extends { seq: number; frame: string }>(maxLength: number) => {
  const rows = new Map<number, Row>();
  let length = 0;
  return {
    /** Answers the row that is kept at its place, which is another where it was kept before. */
    keep(row: Row): Row {
      const known = rows.get(row.seq);
      if (known) return known;
      rows.set(row.seq, row);
      length += row.frame.length;
      for (const [seq, { frame }] of rows) {
        if (length <= maxLength) break;
        rows.delete(seq);
        length -= frame.length;
      }
      return row;
    },

    /** The row at this place has changed. */
    change(row: Row): void {
      const known = rows.get(row.seq);
      if (!known) return;
      rows.set(row.seq, row);
      length += row.frame.length - known.frame.length;
    },

    /** The rows after `cursor` up to and with `upTo`; undefined where they are not all kept. */
    between(cursor: number, upTo: number): Row[] | undefined {
      const found: Row[] = [];
      for (let seq = cursor + 1; seq <= upTo; seq += 1) {
        const row = rows.get(seq);
        if (!row) return undefined;
        found.push(row);
      }
      return found;
    },
  };
};
