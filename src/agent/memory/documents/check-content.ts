import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import { type BlockSchema, maxListItems, maxLogEntries, type PlainSchema } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { counterOf, fieldItemsOf, itemsOf, maxCount, prefixOf, readCounter, readItems } from "./cells.ts";
import { countedTooFar, tooManyItems } from "./refused-edit.ts";
import { render } from "./render.ts";

const highSurrogate = /[\ud800-\udbff](?=[\udc00-\udfff])/g;

/** Characters of a block's whole content, whatever of it is shown. */
export const sizeOf = (schema: BlockSchema, value: Json): number => {
  const text = render(schema, value, { whole: true });
  // Counted this way for long texts, of which an array of characters would be a large one.
  return text.length - (text.match(highSurrogate)?.length ?? 0);
};

/** Throws where a content grew past its limit. One that was larger already may still be made smaller. */
export const checkSize = (size: number, charLimit: number, sizeBefore: () => number): void => {
  if (size <= charLimit) return;
  const before = sizeBefore();
  if (size < before) return;
  throw new ColloquyError(
    "text_too_long",
    `The block would hold ${size} characters; its charLimit is ${charLimit}, and it holds ${before} now`,
  );
};

const partsOf = (schema: BlockSchema): [PlainSchema, string][] =>
  schema.type === "composite" ? schema.sections.map(({ name, schema: of }) => [of, prefixOf(name)]) : [[schema, ""]];

/** Deletes the oldest items beyond `maxItems`. */
const dropOldest = (doc: LoroDoc, path: string, maxItems: number): void => {
  const items = readItems(doc, path);
  if (items.length <= maxItems) return;
  const newest = new Set(
    items
      .map(({ key }) => key)
      .sort((one, other) => other - one)
      .slice(0, maxItems),
  );
  for (let index = items.length - 1; index >= 0; index -= 1) {
    if (!newest.has(items[index]?.key ?? 0)) doc.getMovableList(path).delete(index, 1);
  }
};

const checkCount = (doc: LoroDoc, path: string, most: number, bound: string): void => {
  const { length } = doc.getMovableList(path);
  if (length > most) throw tooManyItems(length, most, bound);
};

/** Keeps lists and counters within their bounds: those of their schemas by dropping, the house's own by refusing. */
export const keepBounds = (doc: LoroDoc, schema: BlockSchema): void => {
  for (const [part, prefix] of partsOf(schema)) {
    if (part.type === "list" && part.maxItems !== undefined) dropOldest(doc, itemsOf(prefix), part.maxItems);
    if (part.type === "list") checkCount(doc, itemsOf(prefix), maxListItems, "maxListItems");
    if (part.type === "log") checkCount(doc, itemsOf(prefix), maxLogEntries, "maxLogEntries");
    if (part.type !== "map") continue;
    for (const { name, type } of part.fields) {
      // Two editors may have counted at once: the sum may be too large.
      if (type === "counter" && Math.abs(readCounter(doc, counterOf(prefix, name))) > maxCount)
        throw countedTooFar(name);
      if (type === "list") checkCount(doc, fieldItemsOf(prefix, name), maxListItems, "maxListItems");
    }
  }
};
