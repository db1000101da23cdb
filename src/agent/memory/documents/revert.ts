import type { LoroDoc } from "loro-crdt/web";
import { type Cell, type Item, readCounter, readFields, readItems, readText } from "./cells.ts";
import { applySplices, changesBetween, type Splice } from "./text-changes.ts";
import { spliceText, writeCounter, writeFields, writeItems } from "./write-cells.ts";

/**
 * Takes an edit back long after it was made: what it changed becomes as it was before, and what others changed since
 * stays. A merge of three states by content, so it needs nothing that was kept in memory.
 */
export type Contents = {
  texts: Map<string, string>;
  fields: Map<string, Map<string, string>>;
  items: Map<string, Item[]>;
  counters: Map<string, number>;
};

export const readContents = (doc: LoroDoc, cells: Cell[]): Contents => {
  const contents: Contents = { texts: new Map(), fields: new Map(), items: new Map(), counters: new Map() };
  for (const { kind, path } of cells) {
    if (kind === "text") contents.texts.set(path, readText(doc, path));
    else if (kind === "fields") contents.fields.set(path, readFields(doc, path));
    else if (kind === "items") contents.items.set(path, readItems(doc, path));
    else contents.counters.set(path, readCounter(doc, path));
  }
  return contents;
};

const mergeFields = (
  base: Map<string, string>,
  ours: Map<string, string>,
  theirs: Map<string, string>,
): Map<string, string> => {
  const merged = new Map(ours);
  for (const name of new Set([...base.keys(), ...theirs.keys()])) {
    if (base.get(name) === theirs.get(name) || ours.get(name) !== base.get(name)) continue;
    const value = theirs.get(name);
    if (value === undefined) merged.delete(name);
    else merged.set(name, value);
  }
  return merged;
};

const byKey = (items: Item[]): Map<number, Item> => new Map(items.map((item) => [item.key, item]));

const sameItems = (one: Item[], other: Item[]): boolean =>
  one.length === other.length &&
  one.every(({ key, json }, index) => key === other[index]?.key && json === other[index]?.json);

/** Keys of those that stand elsewhere among the others than in `order`: the fewest whose moving mends it. */
const displaced = (keys: number[], order: number[]): Set<number> => {
  const places = new Map(order.map((key, place) => [key, place]));
  // The longest run of keys that already stand in order stays.
  const best: { length: number; before: number }[] = [];
  for (const [index, key] of keys.entries()) {
    const place = places.get(key) ?? 0;
    let own = { length: 1, before: -1 };
    for (let earlier = 0; earlier < index; earlier += 1) {
      const run = best[earlier];
      if (run && (places.get(keys[earlier] ?? -1) ?? 0) < place && run.length + 1 > own.length) {
        own = { length: run.length + 1, before: earlier };
      }
    }
    best.push(own);
  }
  let at = best.reduce((longest, { length }, index) => (length > (best[longest]?.length ?? 0) ? index : longest), 0);
  const moved = new Set(keys);
  while (at >= 0 && best[at]) {
    moved.delete(keys[at] ?? -1);
    at = best[at]?.before ?? -1;
  }
  return moved;
};

const mergeItems = (base: Item[], ours: Item[], theirs: Item[]): Item[] => {
  if (sameItems(ours, base)) return theirs;
  if (sameItems(theirs, base)) return ours;
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

/** Makes the document hold just this. */
export const writeContents = (doc: LoroDoc, { texts, fields, items, counters }: Contents): void => {
  for (const [path, text] of texts) spliceText(doc, path, changesBetween(readText(doc, path), text));
  for (const [path, held] of fields) writeFields(doc, path, held);
  for (const [path, held] of items) writeItems(doc, path, held);
  for (const [path, held] of counters) writeCounter(doc, path, held);
};

/** Changes the document, which holds `ours` now, by what leads from `base` to `theirs`. */
export const mergeContents = (doc: LoroDoc, base: Contents, theirs: Contents): void => {
  for (const [path, before] of base.texts) {
    const now = readText(doc, path);
    spliceText(doc, path, changesBetween(now, mergeText(before, now, theirs.texts.get(path) ?? "")));
  }
  for (const [path, before] of base.fields) {
    writeFields(doc, path, mergeFields(before, readFields(doc, path), theirs.fields.get(path) ?? new Map()));
  }
  for (const [path, before] of base.items) {
    writeItems(doc, path, mergeItems(before, readItems(doc, path), theirs.items.get(path) ?? []));
  }
  for (const [path, before] of base.counters) {
    const [now, then] = [readCounter(doc, path), theirs.counters.get(path) ?? 0];
    writeCounter(doc, path, now === before ? then : now + (then - before));
  }
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
