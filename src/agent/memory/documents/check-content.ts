import type { Json, UpdateBlock } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { inOneBudget } from "../../../shared/check-budget.ts";
import { schemaProblems } from "../../../shared/check-json-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { type Cell, declaredSections, type Held, type Part, partsOf, valueOfPart } from "./cells.ts";
import { render } from "./render.ts";
import { checkField, checkItem, checkLength, counted, noSuchSection, ownField, refusedEdit } from "./values.ts";

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
  const detail = `The block would hold ${size} characters; its charLimit is ${charLimit}, and it holds ${before} now`;
  throw new ColloquyError("text_too_long", detail);
};

/** Keeps the newest `maxItems` of a list. Throws where a content is more than any block holds. */
export const bounded = ({ schema, field }: Cell, held: Held): Held => {
  // Two editors may have counted at once: the sum may be too large.
  if (typeof held === "number") return counted(field.name, held);
  if (!Array.isArray(held)) return held;
  const { maxItems = held.length } = schema.type === "list" ? schema : {};
  const newest = held.map(({ key }) => key).sort((one, other) => other - one);
  const kept = held.length > maxItems ? held.filter(({ key }) => key >= (newest[maxItems - 1] ?? 0)) : held;
  checkLength(schema.type, kept.length);
  return kept;
};

/** Throws what is wrong within a schema: defaults that are not of their fields' types, schemas of items that cannot be applied. */
export const checkBlockSchema = (schema: BlockSchema): void => inOneBudget(() => checkParts(schema));

const checkParts = (schema: BlockSchema): void => {
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

/** The schema as it is changed. The same object where nothing changes. */
export const changedSchema = (
  old: BlockSchema,
  { schema: next = old, viewport, section }: Pick<UpdateBlock, "schema" | "viewport" | "section">,
): BlockSchema => {
  if (viewport === undefined) return next;
  const parts = partsOf(next);
  if (!parts.some(({ name }) => name === section)) {
    if (section === undefined) throw refusedEdit("a composite has a viewport for each section: give section");
    throw noSuchSection(section, declaredSections(parts));
  }
  if (next.type !== "composite") return withViewport(next, viewport);
  return {
    ...next,
    sections: next.sections.map((each) =>
      each.name === section ? { ...each, schema: withViewport(each.schema, viewport) } : each,
    ),
  };
};

const conflict = (detail: string): ColloquyError => new ColloquyError("conflict", detail);

const requireSameType = (old: BlockSchema, next: BlockSchema): void => {
  if (old.type !== next.type) throw conflict(`a ${old.type} block does not become a ${next.type}: make another block`);
};

const checkPart = ({ schema }: Part, old: PlainSchema | undefined, value: Json | undefined): void => {
  for (const field of schema.type === "map" ? schema.fields : []) {
    const held = ownField(value, field.name);
    if (held !== undefined) checkField(field, held);
  }
  if (schema.type !== "list" || !Array.isArray(value)) return;
  const { itemSchema, maxItems = value.length } = schema;
  if (value.length > maxItems) throw refusedEdit(`it holds ${value.length} items, more than ${maxItems} (maxItems)`);
  if (old?.type === "list" && sameJson(old.itemSchema, itemSchema)) return;
  for (const item of value) checkItem(itemSchema, item);
};

/** Throws `conflict` where a content that is there would change its kind, or breaks the schema that it would get. */
export const checkFits = (before: BlockSchema, after: BlockSchema, value: Json): void => {
  requireSameType(before, after);
  const parts = partsOf(after).map((part) => ({ part, old: partsOf(before).find(({ name }) => name === part.name) }));
  for (const { part, old } of parts) {
    if (old) requireSameType(old.schema, part.schema);
    for (const { field } of part.cells) {
      const known = old?.cells.find((cell) => cell.field.name === field.name)?.field.type ?? field.type;
      if (known !== field.type)
        throw conflict(`field '${field.name}' is a ${known} and does not become a ${field.type}`);
    }
  }
  try {
    inOneBudget(() => {
      for (const { part, old } of parts) checkPart(part, old?.schema, valueOfPart(part, value));
    });
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    throw conflict(`what the block holds does not fit that schema, change it first: ${error.message}`);
  }
};
