import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, Field } from "../../../protocol/block-schema.ts";
import { type Item, mergeItems, mergeText } from "./merge.ts";
import { type Part, partsOf } from "./parts.ts";
import { changesBetween, type Splice } from "./text-changes.ts";

/**
 * A document's content, as containers of the CRDT by name. All of them are roots: such a container is always there, so
 * two editors never make it twice, and nothing that is undone comes back as another one.
 *
 * Invariants
 * 1. Values stand in fields and items as JSON text: what is read is what was written, whatever the CRDT's own types.
 * 2. An item has a key that no other item of its document ever had; the least one is the oldest. It keeps it when it is
 *    set, moved, deleted and put back.
 */
export interface Cell<Held = unknown> {
  /** The cell's place in the document, which no other cell has. */
  path: string;
  /** What it holds at first. */
  empty: Held;
  read(doc: LoroDoc): Held;
  /** Makes as few changes as lead to `next`: what others change beside them merges. */
  write(doc: LoroDoc, next: Held): void;
  /** `ours` with the changes that lead from `base` to `theirs`. Where both changed the same, ours has the last word. */
  merge(base: Held, ours: Held, theirs: Held): Held;
  /** Undefined for a field that is not set. */
  json(held: Held): Json | undefined;
}

export const spliceText = (doc: LoroDoc, path: string, splices: Splice[]): void => {
  const text = doc.getText(path);
  // From the end, so that each place is still where it was.
  for (const { at, remove, insert } of splices.toReversed()) {
    if (remove > 0) text.delete(at, remove);
    if (insert !== "") text.insert(at, insert);
  }
};

export const textCell = (path: string): Cell<string> => ({
  path,
  empty: "",
  read: (doc) => doc.getText(path).toString(),
  write: (doc, next) => spliceText(doc, path, changesBetween(doc.getText(path).toString(), next)),
  merge: mergeText,
  json: (text) => text,
});

/** One field of a map, as JSON text. */
const valueCell = (path: string, name: string): Cell<string | undefined> => {
  const read = (doc: LoroDoc): string | undefined => {
    const json = doc.getMap(path).get(name);
    return json === undefined ? undefined : String(json);
  };
  return {
    path: `${path}.${name}`,
    empty: undefined,
    read,
    write(doc, next) {
      if (read(doc) === next) return;
      if (next === undefined) doc.getMap(path).delete(name);
      else doc.getMap(path).set(name, next);
    },
    merge: (base, ours, theirs) => (ours === base ? theirs : ours),
    json: (json) => (json === undefined ? undefined : JSON.parse(json)),
  };
};

export const storedItem = ({ key, json }: Item): string => `${key} ${json}`;

const itemOf = (stored: unknown): Item => {
  const text = String(stored);
  const space = text.indexOf(" ");
  return { key: Number(text.slice(0, space)), json: text.slice(space + 1) };
};

export const itemsCell = (path: string): Cell<Item[]> => {
  const read = (doc: LoroDoc): Item[] => doc.getMovableList(path).toArray().map(itemOf);
  return {
    path,
    empty: [],
    read,
    write(doc, next) {
      const list = doc.getMovableList(path);
      const now = read(doc);
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
    },
    merge: mergeItems,
    json: (items) => items.map(({ json }) => JSON.parse(json)),
  };
};

export const counterCell = (path: string): Cell<number> => {
  /** Nine decimals: fractions add up with an error in their last digits, which depends on the order. */
  const read = (doc: LoroDoc): number => {
    const count = Number(doc.getCounter(path).getShallowValue().toFixed(9));
    return count === 0 ? 0 : count; // never -0
  };
  return {
    path,
    empty: 0,
    read,
    write(doc, next) {
      const counter = doc.getCounter(path);
      if (read(doc) === next) return;
      counter.increment(next - counter.getShallowValue());
      // Next to a large number a small one is lost in the difference: what is left of it is little then.
      const rest = next - counter.getShallowValue();
      if (rest !== 0) counter.increment(rest);
    },
    merge: (base, ours, theirs) => (ours === base ? theirs : ours + (theirs - base)),
    json: (count) => count,
  };
};

/** The name of a part's container, or of a field's own. */
export const pathOf = (prefix: string, kind: "text" | "fields" | "items" | "counter", field?: string): string =>
  `${prefix}${kind}${field === undefined ? "" : `.${field}`}`;

export const fieldCell = (prefix: string, { name, type }: Field): Cell => {
  if (type === "list") return itemsCell(pathOf(prefix, "items", name));
  return type === "counter" ? counterCell(pathOf(prefix, "counter", name)) : valueCell(pathOf(prefix, "fields"), name);
};

/** The cell of a part that is no map. */
const wholeCell = ({ schema, prefix }: Part): Cell =>
  schema.type === "text" ? textCell(pathOf(prefix, "text")) : itemsCell(pathOf(prefix, "items"));

/** All cells that a schema shows. Agents may not change a cell that is `readOnly`. */
export const cellsOf = (schema: BlockSchema): (Cell & { readOnly: boolean })[] =>
  partsOf(schema).flatMap((part) =>
    part.schema.type === "map"
      ? part.schema.fields.map((field) => ({
          ...fieldCell(part.prefix, field),
          readOnly: part.readOnly || field.readOnly === true,
        }))
      : [{ ...wholeCell(part), readOnly: part.readOnly }],
  );

const contentOfPart = (doc: LoroDoc, part: Part): Json => {
  const jsonIn = (cell: Cell): Json | undefined => cell.json(cell.read(doc));
  const { schema, prefix } = part;
  if (schema.type !== "map") return jsonIn(wholeCell(part)) ?? null;
  const entries = schema.fields.flatMap((field): [string, Json][] => {
    const json = jsonIn(fieldCell(prefix, field));
    const isUnset = json === undefined || (Array.isArray(json) && json.length === 0);
    return isUnset ? [] : [[field.name, json]];
  });
  return Object.fromEntries(entries);
};

/** A document's whole content as data, also what is not shown. A log's entries are oldest first. */
export const contentOf = (doc: LoroDoc, schema: BlockSchema): Json => {
  const contents = partsOf(schema).map((part): [string, Json] => [part.name ?? "", contentOfPart(doc, part)]);
  return schema.type === "composite" ? Object.fromEntries(contents) : (contents[0]?.[1] ?? null);
};
