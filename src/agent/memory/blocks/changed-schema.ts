import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { type Part, partsOf, valueOfPart } from "../documents/cells.ts";
import { checkField, checkItem, noSuchField, ownField, refusedEdit } from "../documents/values.ts";

type Changes = {
  schema?: BlockSchema | undefined;
  viewport?: Viewport | null | undefined;
  section?: string | undefined;
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
export const changedSchema = (old: BlockSchema, { schema, viewport, section }: Changes): BlockSchema => {
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
