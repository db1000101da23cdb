import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import { type BlockSchema, maxListItems, maxLogEntries } from "../../../protocol/block-schema.ts";
import { schemaProblems } from "../../../shared/check-json-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { counterCell, itemsCell, pathOf } from "./cells.ts";
import { partsOf } from "./parts.ts";
import { render } from "./render.ts";
import { checkField, countedTooFar, maxCount, refusedEdit, tooManyItems } from "./values.ts";

const highSurrogate = /[\ud800-\udbff](?=[\udc00-\udfff])/g;

/** Characters of a block's whole content, whatever of it is shown. */
export const sizeOf = (schema: BlockSchema, value: Json): number => {
  const text = render(schema, value, { whole: true });
  // Counted this way for long texts, of which an array of characters would be a large one.
  return text.length - (text.match(highSurrogate)?.length ?? 0);
};

/** Throws where a content grew past its limit. One that was larger already may still be made smaller. */
export const checkSize = (schema: BlockSchema, value: Json, charLimit: number, valueBefore?: () => Json): void => {
  const size = sizeOf(schema, value);
  if (size <= charLimit) return;
  const before = valueBefore ? sizeOf(schema, valueBefore()) : 0;
  if (size < before) return;
  throw new ColloquyError(
    "text_too_long",
    `The block would hold ${size} characters; its charLimit is ${charLimit}, and it holds ${before} now`,
  );
};

/** Deletes the oldest items beyond `maxItems`: those of the least keys. */
const dropOldest = (doc: LoroDoc, path: string, maxItems: number): void => {
  const cell = itemsCell(path);
  const items = cell.read(doc);
  const newest = items.map(({ key }) => key).sort((one, other) => other - one);
  const oldestKept = newest[maxItems - 1] ?? 0;
  if (items.length > maxItems)
    cell.write(
      doc,
      items.filter(({ key }) => key >= oldestKept),
    );
};

const checkCount = (doc: LoroDoc, path: string, most: number, bound: string): void => {
  const { length } = doc.getMovableList(path);
  if (length > most) throw tooManyItems(length, most, bound);
};

/** Keeps lists and counters within their bounds: those of their schemas by dropping, the house's own by refusing. */
export const keepBounds = (doc: LoroDoc, schema: BlockSchema): void => {
  for (const { schema: part, prefix } of partsOf(schema)) {
    if (part.type === "list" && part.maxItems !== undefined) dropOldest(doc, pathOf(prefix, "items"), part.maxItems);
    if (part.type === "list") checkCount(doc, pathOf(prefix, "items"), maxListItems, "maxListItems");
    if (part.type === "log") checkCount(doc, pathOf(prefix, "items"), maxLogEntries, "maxLogEntries");
    for (const { name, type } of part.type === "map" ? part.fields : []) {
      if (type === "list") checkCount(doc, pathOf(prefix, "items", name), maxListItems, "maxListItems");
      // Two editors may have counted at once: the sum may be too large.
      const isTooFar =
        type === "counter" && Math.abs(counterCell(pathOf(prefix, "counter", name)).read(doc)) > maxCount;
      if (isTooFar) throw countedTooFar(name);
    }
  }
};

/** Throws what is wrong within a schema: defaults that are not of their fields' types, schemas of items that cannot be applied. */
export const checkBlockSchema = (schema: BlockSchema): void => {
  for (const { schema: part } of partsOf(schema)) {
    const itemSchema = part.type === "list" ? part.itemSchema : undefined;
    if (itemSchema && !["map", "text"].includes(String(itemSchema.type))) {
      const [problem] = schemaProblems(itemSchema, { ofObject: false });
      if (problem) throw refusedEdit(`itemSchema ${problem.path}: ${problem.message}`);
    }
    for (const field of part.type === "map" ? part.fields : []) {
      if (field.default !== undefined && field.default !== null) checkField(field, field.default);
    }
  }
};
