import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema } from "../../../protocol/block-schema.ts";
import { schemaProblems } from "../../../shared/check-json-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { type Cell, type Held, partsOf } from "./cells.ts";
import { render } from "./render.ts";
import { checkCount, checkField, checkLength, refusedEdit } from "./values.ts";

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

/** What a cell may keep: of a list the newest `maxItems`. Throws where it is more than any block holds. */
export const bounded = ({ schema, field }: Cell, held: Held): Held => {
  // Two editors may have counted at once: the sum may be too large.
  if (typeof held === "number") checkCount(field.name, held);
  if (!Array.isArray(held)) return held;
  const { maxItems = held.length } = schema.type === "list" ? schema : {};
  const newest = held.map(({ key }) => key).sort((one, other) => other - one);
  const kept = held.length > maxItems ? held.filter(({ key }) => key >= (newest[maxItems - 1] ?? 0)) : held;
  checkLength(schema.type, kept.length);
  return kept;
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
