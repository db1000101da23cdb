import { diffArrays } from "diff";
import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, Field, PlainSchema } from "../../../protocol/block-schema.ts";
import { sameJson } from "../../../shared/same-json.ts";
import type { DeclaredField } from "./declared-fields.ts";
import { changesBetween, mergeText, type Splice } from "./text-changes.ts";
import { ownField, rounded } from "./values.ts";

/**
 * A document's content, as containers of the CRDT by name. All of them are roots. A root is always there, so two
 * editors never make it twice, and nothing that is undone comes back as another one.
 *
 * Invariants
 * 1. Values stand in fields and items as JSON text: what is read is what was written, whatever the CRDT's own types.
 * 2. An item has a key that no other item of its document ever had; the least one is the oldest. It keeps it when it is
 *    set, moved, deleted and put back.
 */
export type Item = { key: number; json: string };

/** The content of a cell: a text, a value as JSON text (undefined where none is set), a count, or items. */
export type Held = string | undefined | number | Item[];

/** How one container, or one entry of it, is kept. */
interface Store<Its = Held> {
  /** Its content in a new document. */
  empty: Its;
  read(doc: LoroDoc): Its;
  /** Makes as few changes as lead from `now` to `next`: what others change beside them merges. */
  write(doc: LoroDoc, now: Its, next: Its, splices?: Splice[]): void;
  /** `ours` with the changes that lead from `base` to `theirs`. Where both changed the same, ours has the last word. */
  merge(base: Its, ours: Its, theirs: Its): Its;
  /** Undefined for a field that is not set. */
  json(held: Its): Json | undefined;
}

/**
 * The whole of a text, list or log, or one field of a map. Agents may not change what is `readOnly`. The field of what
 * is no map has no name.
 */
export type Cell = Store & { schema: PlainSchema; field: Field; readOnly: boolean };

/** A section of a composite, or the whole of any other block. */
export type Part = { name: string | undefined; schema: PlainSchema; readOnly: boolean; cells: Cell[] };

const textStore = (path: string): Store<string> => ({
  empty: "",
  read: (doc) => doc.getText(path).toString(),
  write(doc, now, next, splices = changesBetween(now, next)) {
    const text = doc.getText(path);
    // From the end, so that each place is still where it was.
    for (const { at, remove, insert } of splices.toReversed()) {
      if (remove > 0) text.delete(at, remove);
      if (insert !== "") text.insert(at, insert);
    }
  },
  merge: mergeText,
  json: (text) => text,
});

const mergeValue = <Value>(base: Value, ours: Value, theirs: Value): Value => (ours === base ? theirs : ours);

/** One entry of a map, as JSON text. */
const valueStore = (path: string, name: string): Store<string | undefined> => ({
  empty: undefined,
  read(doc) {
    const json = doc.getMap(path).get(name);
    return json === undefined ? undefined : String(json);
  },
  write(doc, _, next) {
    if (next === undefined) doc.getMap(path).delete(name);
    else doc.getMap(path).set(name, next);
  },
  merge: mergeValue,
  json: (json) => (json === undefined ? undefined : JSON.parse(json)),
});

const counterStore = (path: string): Store<number> => ({
  empty: 0,
  read: (doc) => rounded(doc.getCounter(path).getShallowValue()),
  write(doc, _, next) {
    const counter = doc.getCounter(path);
    counter.increment(next - counter.getShallowValue());
    // Next to a large number a small one is lost in the difference: what is left of it is little then.
    const rest = next - counter.getShallowValue();
    if (rest !== 0) counter.increment(rest);
  },
  merge: (base, ours, theirs) => (ours === base ? theirs : rounded(ours + (theirs - base))),
  json: (count) => count,
});

const keysOf = (items: Item[]): number[] => items.map(({ key }) => key);
const jsonByKey = (items: Item[]): Map<number, string> => new Map(items.map(({ key, json }) => [key, json]));

/**
 * Puts into `order` what `to` has that `from` lacks, or has elsewhere: after the nearest one before it that is there. The
 * fewest move, except where the two differ in so much that a comparison would take long.
 */
const arrange = (
  order: number[],
  from: number[],
  to: number[],
  put?: (key: number, was: number, at: number) => void,
) => {
  const compared = diffArrays(from, to, { maxEditLength: 400 });
  const astray = new Set(compared ? compared.flatMap(({ added, value }) => (added ? value : [])) : to);
  for (const [index, key] of to.entries()) {
    if (!astray.has(key)) continue;
    const was = order.indexOf(key);
    if (was >= 0) order.splice(was, 1);
    const before = to.slice(0, index).findLast((each) => order.includes(each));
    const at = before === undefined ? 0 : order.indexOf(before) + 1;
    order.splice(at, 0, key);
    put?.(key, was, at);
  }
};

const mergeItems = (base: Item[], ours: Item[], theirs: Item[]): Item[] => {
  if (sameJson(theirs, base)) return ours;
  if (sameJson(ours, base)) return theirs;
  const [before, here, wanted] = [jsonByKey(base), jsonByKey(ours), jsonByKey(theirs)];
  const order = keysOf(ours);
  arrange(order, keysOf(base), keysOf(theirs));
  return order.flatMap((key) => {
    const json = mergeValue(before.get(key), here.get(key), wanted.get(key));
    return json === undefined ? [] : [{ key, json }];
  });
};

const storedItem = (key: number, json: string | undefined): string => `${key} ${json}`;

const itemOf = (stored: unknown): Item => {
  const text = String(stored);
  const space = text.indexOf(" ");
  return { key: Number(text.slice(0, space)), json: text.slice(space + 1) };
};

const itemsStore = (path: string): Store<Item[]> => ({
  empty: [],
  read: (doc) => doc.getMovableList(path).toArray().map(itemOf),
  write(doc, now, next) {
    const list = doc.getMovableList(path);
    const changed = now.findIndex((item, index) => item !== next[index]);
    const start = changed < 0 ? now.length : changed;
    const [old, wanted] = [now.slice(start), next.slice(start)];
    const [known, left] = [jsonByKey(old), jsonByKey(wanted)];
    for (const [index, { key }] of [...old.entries()].reverse()) if (!left.has(key)) list.delete(start + index, 1);
    const order = keysOf(old).filter((key) => left.has(key));
    arrange(order, keysOf(old), keysOf(wanted), (key, was, at) => {
      if (was < 0) list.insert(start + at, storedItem(key, left.get(key)));
      else if (was !== at) list.move(start + was, start + at);
    });
    for (const [index, { key, json }] of wanted.entries()) {
      if (known.has(key) && known.get(key) !== json) list.set(start + index, storedItem(key, json));
    }
  },
  merge: mergeItems,
  json: (items) => items.map(({ json }) => JSON.parse(json)),
});

const storeOf = (schema: PlainSchema, prefix: string, { name, type }: Field): Store => {
  if (schema.type === "text") return textStore(`${prefix}text`);
  if (schema.type !== "map") return itemsStore(`${prefix}items`);
  if (type === "list") return itemsStore(`${prefix}items.${name}`);
  return type === "counter" ? counterStore(`${prefix}counter.${name}`) : valueStore(`${prefix}fields`, name);
};

const partOf = (schema: PlainSchema, name?: string, readOnly = false): Part => {
  const fields: Field[] = schema.type === "map" ? schema.fields : [{ name: "", type: "list" }];
  const prefix = name === undefined ? "" : `${name}:`;
  const cells = fields.map((field) => ({
    ...storeOf(schema, prefix, field),
    ...{ schema, field, readOnly: readOnly || field.readOnly === true },
  }));
  return { name, schema, readOnly, cells };
};

export const partsOf = (schema: BlockSchema): Part[] =>
  schema.type === "composite"
    ? schema.sections.map((section) => partOf(section.schema, section.name, section.readOnly))
    : [partOf(schema)];

/** The sections of a composite, as errors name them. */
export const declaredSections = (parts: Part[]): DeclaredField[] =>
  parts.flatMap(({ name, schema: { type }, readOnly }) => (name === undefined ? [] : { name, type, readOnly }));

/** A part's value within the value of its block. */
export const valueOfPart = ({ name }: Part, value: Json | undefined): Json | undefined =>
  name === undefined ? value : ownField(value, name);

/** The cells' contents as data, also those that are not shown. A log's entries are oldest first. */
export const contentIn = (parts: Part[], heldIn: (cell: Cell) => Held): Json => {
  const contents = parts.map(({ name, schema, cells }): [string, Json] => {
    const fields = cells.flatMap((cell): [string, Json][] => {
      const json = cell.json(heldIn(cell));
      const isUnset = json === undefined || (schema.type === "map" && Array.isArray(json) && json.length === 0);
      return isUnset ? [] : [[cell.field.name, json]];
    });
    return [name ?? "", schema.type === "map" ? Object.fromEntries(fields) : (fields[0]?.[1] ?? null)];
  });
  return parts[0]?.name === undefined ? (contents[0]?.[1] ?? null) : Object.fromEntries(contents);
};

/** A document's whole content as data. */
export const contentOf = (doc: LoroDoc, schema: BlockSchema): Json =>
  contentIn(partsOf(schema), (cell) => cell.read(doc));
