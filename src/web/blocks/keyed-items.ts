import { useState } from "react";
import type { Json } from "../../client/index.ts";

export type KeyedItem = { key: number; item: Json };

/**
 * Gives each item its earlier key, so that a row keeps its focus while other rows come and go. Equal items keep their
 * keys first; then an item that changed in its place keeps the key of that place.
 */
export const keyItems = (before: readonly KeyedItem[], items: readonly Json[]): KeyedItem[] => {
  const left = new Set(before);
  const same = items.map((item) => {
    const text = JSON.stringify(item);
    const found = [...left].find((one) => JSON.stringify(one.item) === text);
    if (found) left.delete(found);
    return found?.key;
  });
  let newest = Math.max(0, ...before.map(({ key }) => key));
  return items.map((item, index) => {
    const known = same[index];
    if (known !== undefined) return { key: known, item };
    const stood = before[index];
    if (stood && left.delete(stood)) return { key: stood.key, item };
    newest += 1;
    return { key: newest, item };
  });
};

/** Rows that keep their keys while the items change. A key above `first` came after the first showing. */
export const useKeyedItems = (items: readonly Json[]): { rows: readonly KeyedItem[]; first: number } => {
  const [known, setKnown] = useState(() => ({ items, rows: keyItems([], items), first: items.length }));
  if (known.items === items) return known;
  const next = { ...known, items, rows: keyItems(known.rows, items) };
  setKnown(next);
  return next;
};
