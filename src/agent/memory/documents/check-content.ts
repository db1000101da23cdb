import type { Json, UpdateBlock } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { schemaProblems } from "../../../shared/check-json-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { type Cell, type Held, type Part, partsOf, valueOfPart } from "./cells.ts";
import { render } from "./render.ts";
import { checkCount, checkField, checkItem, checkLength, noSuchField, ownField, refusedEdit } from "./values.ts";

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

const withViewport = (schema: PlainSchema, viewport: Viewport | null): PlainSchema => {
  if (schema.type !== "text") throw refusedEdit(`a ${schema.type} has no viewport: only a text has`);
  return viewport === null ? { type: "text" } : { type: "text", viewport };
};

/** The parts of the next schema, each with what it was. */
const pairsOf = (old: BlockSchema, next: BlockSchema): (Part & { old: PlainSchema | undefined })[] =>
  partsOf(next).map((part) => ({ ...part, old: partsOf(old).find(({ name }) => name === part.name)?.schema }));

const requireSameType = (old: BlockSchema, next: BlockSchema): void => {
  if (old.type === next.type) return;
  throw new ColloquyError("conflict", `a ${old.type} block does not become a ${next.type}: make another block`);
};

const requireSameTypes = (before: BlockSchema, after: BlockSchema): void => {
  requireSameType(before, after);
  for (const { old, schema: next } of pairsOf(before, after)) {
    if (old) requireSameType(old, next);
    if (old?.type !== "map" || next.type !== "map") continue;
    for (const { name, type } of next.fields) {
      const known = old.fields.find((field) => field.name === name);
      if (known && known.type !== type) {
        throw new ColloquyError("conflict", `field '${name}' is a ${known.type} and does not become a ${type}`);
      }
    }
  }
};

/** The schema as it is changed: a content that is there keeps its kind. The same object where nothing changes. */
export const changedSchema = (
  old: BlockSchema,
  { schema, viewport, section }: Pick<UpdateBlock, "schema" | "viewport" | "section">,
): BlockSchema => {
  if (schema) requireSameTypes(old, schema);
  const next = schema ?? old;
  if (viewport === undefined) return next;
  if (next.type !== "composite") {
    if (section !== undefined) throw noSuchField(section);
    return withViewport(next, viewport);
  }
  if (!next.sections.some(({ name }) => name === section)) throw noSuchField(section ?? "section");
  return {
    ...next,
    sections: next.sections.map((each) =>
      each.name === section ? { ...each, schema: withViewport(each.schema, viewport) } : each,
    ),
  };
};

const checkPart = (old: PlainSchema | undefined, next: PlainSchema, value: Json | undefined): void => {
  for (const field of next.type === "map" ? next.fields : []) {
    const held = ownField(value, field.name);
    if (held !== undefined) checkField(field, held);
  }
  if (next.type !== "list" || !Array.isArray(value)) return;
  const { itemSchema, maxItems = value.length } = next;
  if (value.length > maxItems) throw refusedEdit(`it holds ${value.length} items, more than ${maxItems} (maxItems)`);
  if (old?.type === "list" && sameJson(old.itemSchema, itemSchema)) return;
  for (const item of value) checkItem(itemSchema, item);
};

/** Throws `conflict` where what the block holds breaks the schema that it would get. */
export const checkFits = (old: BlockSchema, next: BlockSchema, value: Json): void => {
  try {
    for (const part of pairsOf(old, next)) checkPart(part.old, part.schema, valueOfPart(part, value));
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    const reason = `what the block holds does not fit that schema, change it first: ${error.message}`;
    throw new ColloquyError("conflict", reason);
  }
};
