import { sameJson } from "../../../shared/same-json.ts";
import { applySplices, changesBetween, type Splice } from "./text-changes.ts";

/**
 * Merges three states by content, so that an edit can be taken back long after it was made: what it changed becomes as
 * it was before, and what others changed since stays. Needs nothing that was kept in memory.
 */
export type Item = { key: number; json: string };

const byKey = (items: Item[]): Map<number, Item> => new Map(items.map((item) => [item.key, item]));

const longestOf = (runs: number[][]): number[] =>
  runs.reduce((longest, run) => (run.length > longest.length ? run : longest), []);

/** The fewest keys whose moving brings the same keys in `order`: the longest run that is in order already stays. */
const displaced = (keys: number[], order: number[]): Set<number> => {
  const runs: number[][] = [];
  for (const place of keys.map((key) => order.indexOf(key))) {
    const before = longestOf(runs.filter((run) => (run.at(-1) ?? 0) < place));
    runs.push([...before, place]);
  }
  const staying = new Set(longestOf(runs));
  return new Set(order.filter((_, place) => !staying.has(place)));
};

export const mergeItems = (base: Item[], ours: Item[], theirs: Item[]): Item[] => {
  if (sameJson(ours, base)) return theirs;
  if (sameJson(theirs, base)) return ours;
  const [before, wanted] = [byKey(base), byKey(theirs)];
  const merged = ours
    .filter(({ key, json }) => wanted.has(key) || before.get(key)?.json !== json)
    .map((item) => {
      const target = wanted.get(item.key);
      const isOurs = before.get(item.key)?.json !== item.json;
      return target === undefined || isOurs ? item : target;
    });
  const here = byKey(merged);
  const common = base.map(({ key }) => key).filter((key) => wanted.has(key));
  const order = theirs.map(({ key }) => key).filter((key) => before.has(key));
  const astray = displaced(common, order);
  for (const [index, item] of theirs.entries()) {
    const isBack = !before.has(item.key) && !here.has(item.key);
    if (!isBack && !(astray.has(item.key) && here.has(item.key))) continue;
    const held = here.get(item.key) ?? item;
    const from = merged.indexOf(held);
    if (from >= 0) merged.splice(from, 1);
    // After the nearest one before it that is still there.
    const after = theirs.slice(0, index).findLast(({ key }) => here.has(key));
    merged.splice(after ? merged.findIndex(({ key }) => key === after.key) + 1 : 0, 0, held);
    here.set(item.key, held);
  }
  return merged;
};

/** A place of a text after the splices are applied. Text that is inserted at the place itself stands before it. */
const moved = (place: number, splices: Splice[]): number => {
  let by = 0;
  for (const { at, remove, insert } of splices) {
    if (at > place) break;
    if (at + remove <= place) by += insert.length - remove;
    else return at + by + insert.length;
  }
  return place + by;
};

/** The ranges of `from`–`to` that the splices do not remove, as places of the text before the splices. */
const survivors = (from: number, to: number, splices: Splice[]): [number, number][] => {
  const left: [number, number][] = [];
  let start = from;
  for (const { at, remove } of splices) {
    if (at + remove <= start) continue;
    if (at >= to) break;
    // Text that others inserted inside stays: it splits the range.
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
