import { applySplices, changesBetween, type Splice } from "./text-changes.ts";

/** Where a place of a text is once the splices were applied to it; what came in at the very place stands before it. */
const moved = (place: number, splices: Splice[]): number => {
  let by = 0;
  for (const { at, remove, insert } of splices) {
    if (at > place) break;
    if (at + remove <= place) by += insert.length - remove;
    else return at + by + insert.length;
  }
  return place + by;
};

/** What of `from`–`to` the splices left standing, in places of the text that they were made on. */
const survivors = (from: number, to: number, splices: Splice[]): [number, number][] => {
  const left: [number, number][] = [];
  let start = from;
  for (const { at, remove } of splices) {
    if (at + remove <= start) continue;
    if (at >= to) break;
    // What others put inside stays: it parts the range.
    if (at > start) left.push([start, at]);
    start = at + remove;
  }
  if (start < to) left.push([start, to]);
  return left;
};

/**
 * `ours` with the changes that lead from `base` to `theirs`. What was changed otherwise meanwhile stays as it is: of a
 * place that both changed, ours has the last word; one of which less than half still stands is such a place.
 */
export const mergeText = (base: string, ours: string, theirs: string): string => {
  if (ours === base) return theirs;
  if (theirs === base || ours === theirs) return ours;
  const meanwhile = changesBetween(base, ours);
  const splices: Splice[] = [];
  for (const { at, remove, insert } of changesBetween(base, theirs)) {
    const standing = survivors(at, at + remove, meanwhile);
    const left = standing.reduce((sum, [from, to]) => sum + to - from, 0);
    if (left * 2 < remove) continue;
    const ranges = standing.map(([from, to]) => ({ at: moved(from, meanwhile), remove: to - from, insert: "" }));
    const [first] = ranges;
    if (first) first.insert = insert;
    else splices.push({ at: moved(at, meanwhile), remove: 0, insert });
    splices.push(...ranges);
  }
  return applySplices(ours, splices);
};
