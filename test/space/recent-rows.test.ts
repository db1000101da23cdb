import { expect, test } from "vitest";
import { createRecentRows } from "../../src/space/log/recent-rows.ts";

const rowOf = (seq: number, length = 10) => ({ seq, frame: "x".repeat(length) });

const kept = (maxLength: number, ...seqs: number[]) => {
  const rows = createRecentRows(maxLength);
  for (const seq of seqs) rows.keep(rowOf(seq));
  return rows;
};
const seqs = (page: { seq: number }[] | undefined): number[] | undefined => page?.map(({ seq }) => seq);

test("rows between two places are answered where all are kept; undefined where one is missing", () => {
  const rows = kept(1000, 5, 6, 7, 8);
  expect(seqs(rows.between(4, 6))).toEqual([5, 6]);
  expect(seqs(rows.between(8, 8))).toEqual([]);
  expect(rows.between(3, 6)).toBeUndefined();
  expect(rows.between(6, 9)).toBeUndefined();
});

test("[B3] at most maxLength characters are kept: what was kept first goes first", () => {
  const rows = kept(100, 11, 12, 1, 2, 3, 4, 5, 6, 7, 8);
  rows.keep(rowOf(9));
  expect(rows.between(10, 11)).toBeUndefined();
  expect(seqs(rows.between(11, 12))).toEqual([12]);
  rows.keep(rowOf(10, 101));
  expect(rows.between(8, 9)).toBeUndefined();
  expect(rows.between(9, 10)).toBeUndefined();
});

test("a row that is read again is the one that was kept", () => {
  const rows = createRecentRows(100);
  const row = rowOf(3);
  expect(rows.keep(row)).toBe(row);
  expect(rows.keep(rowOf(3))).toBe(row);
});
