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
export class Tail<Row extends Placed> {
  readonly #maxLength: number;
  #rows: Row[] = [];
  #length = 0;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  /** The row is the log's newest. */
  add(row: Row): void {
    this.#rows.push(row);
    this.#length += row.frame.length;
    if (this.#length > this.#maxLength) this.#shorten();
  }

  /** `rows` are the log's last, as read: those that come before what is kept are kept too, as far as there is room. */
  adopt(rows: Row[]): void {
    const first = this.#rows[0]?.seq ?? Number.POSITIVE_INFINITY;
    const older: Row[] = [];
    for (const row of rows.filter(({ seq }) => seq < first).reverse()) {
      if (this.#length + row.frame.length > this.#maxLength) break;
      this.#length += row.frame.length;
      older.unshift(row);
    }
    this.#rows = [...older, ...this.#rows];
  }

  /** At most `limit` rows after `cursor`; undefined where they are not all kept. */
  after(cursor: number, limit: number): Row[] | undefined {
    const [first] = this.#rows;
    if (!first || cursor < first.seq - 1) return undefined;
    const from = cursor + 1 - first.seq;
    return this.#rows.slice(from, from + limit);
  }

  forget(): void {
    this.#rows = [];
    this.#length = 0;
  }

  /** Leaves half of what may be kept, so that not every row that comes moves all others. */
  #shorten(): void {
    let from = 0;
    for (; from < this.#rows.length && this.#length > this.#maxLength / 2; from += 1) {
      this.#length -= this.#rows[from]?.frame.length ?? 0;
    }
    this.#rows = this.#rows.slice(from);
  }
}
