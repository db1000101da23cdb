import type { LoroDoc } from "loro-crdt/web";
import { type Item, readCounter, readFields, readItems, storedItem } from "./cells.ts";
import type { Splice } from "./text-changes.ts";

/** Changes of containers, as few as lead to what is wanted: what others change beside them merges. */

export const spliceText = (doc: LoroDoc, path: string, splices: Splice[]): void => {
  const text = doc.getText(path);
  // From the end, so that each place is still where it was.
  for (const { at, remove, insert } of splices.toReversed()) {
    if (remove > 0) text.delete(at, remove);
    if (insert !== "") text.insert(at, insert);
  }
};

export const writeFields = (doc: LoroDoc, path: string, next: Map<string, string>): void => {
  const map = doc.getMap(path);
  const now = readFields(doc, path);
  for (const name of now.keys()) if (!next.has(name)) map.delete(name);
  for (const [name, json] of next) if (now.get(name) !== json) map.set(name, json);
};

export const writeItems = (doc: LoroDoc, path: string, next: Item[]): void => {
  const list = doc.getMovableList(path);
  const now = readItems(doc, path);
  const kept = new Set(next.map(({ key }) => key));
  for (let index = now.length - 1; index >= 0; index -= 1) {
    const item = now[index];
    if (!item || kept.has(item.key)) continue;
    list.delete(index, 1);
    now.splice(index, 1);
  }
  for (const [index, item] of next.entries()) {
    const from = now.findIndex(({ key }, place) => place >= index && key === item.key);
    if (from < 0) {
      list.insert(index, storedItem(item));
      now.splice(index, 0, item);
      continue;
    }
    if (from !== index) {
      list.move(from, index);
      now.splice(index, 0, ...now.splice(from, 1));
    }
    if (now[index]?.json !== item.json) list.set(index, storedItem(item));
  }
};

export const writeCounter = (doc: LoroDoc, path: string, next: number): void => {
  const counter = doc.getCounter(path);
  if (readCounter(doc, path) === next) return;
  counter.increment(next - counter.getShallowValue());
  // Next to a large number a small one is lost in the difference: what is left of it is little then.
  const rest = next - counter.getShallowValue();
  if (rest !== 0) counter.increment(rest);
};
