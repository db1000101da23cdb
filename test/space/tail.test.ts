import { expect, test } from "vitest";
import { createTail } from "../../src/space/log/tail.ts";

type Row = { seq: number; frame: string };

const rowOf = (seq: number, length = 10): Row => ({ seq, frame: "x".repeat(length) });

const rows = (from: number, to: number): Row[] =>
  Array.from({ length: to - from + 1 }, (_, index) => rowOf(from + index));

const seqs = (page: Row[] | undefined): number[] | undefined => page?.map(({ seq }) => seq);

test("the newest rows are answered where all are kept; undefined where one is missing", () => {
  const tail = createTail<Row>(1000);
  expect(tail.after(0, 10)).toBeUndefined();
  for (const row of rows(5, 8)) tail.add(row);
  expect(seqs(tail.after(4, 2))).toEqual([5, 6]);
  expect(seqs(tail.after(6, 10))).toEqual([7, 8]);
  expect(seqs(tail.after(8, 10))).toEqual([]);
  expect(seqs(tail.after(9, 10))).toEqual([]);
  expect(tail.after(3, 10)).toBeUndefined();
  tail.forget();
  expect(tail.after(8, 10)).toBeUndefined();
});

test("[B3] at most maxLength characters are kept: the oldest rows go first", () => {
  const tail = createTail<Row>(100);
  for (const row of rows(1, 10)) tail.add(row);
  expect(seqs(tail.after(0, 20))).toHaveLength(10);
  tail.add(rowOf(11));
  expect(tail.after(0, 20)).toBeUndefined();
  expect(seqs(tail.after(6, 20))).toEqual([7, 8, 9, 10, 11]);
  tail.add(rowOf(12, 101));
  expect(tail.after(11, 20)).toBeUndefined();
  tail.add(rowOf(13));
  expect(seqs(tail.after(12, 20))).toEqual([13]);
});

test("rows that were read are kept before the newer ones as far as there is room", () => {
  const tail = createTail<Row>(60);
  tail.adopt(rows(3, 6));
  expect(seqs(tail.after(2, 10))).toEqual([3, 4, 5, 6]);
  tail.adopt(rows(5, 6));
  expect(seqs(tail.after(2, 10))).toEqual([3, 4, 5, 6]);
  tail.add(rowOf(7));
  const [third] = tail.after(2, 1) ?? [];
  tail.adopt(rows(1, 7));
  expect(tail.after(0, 10)).toBeUndefined();
  expect(seqs(tail.after(1, 10))).toEqual([2, 3, 4, 5, 6, 7]);
  expect(tail.after(2, 1)?.[0]).toBe(third);
});
