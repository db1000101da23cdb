import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
import { sameJson } from "../../../shared/same-json.ts";
import { checkField, checkItem } from "../documents/check-value.ts";
import { ownField } from "../documents/in-words.ts";
import { noSuchField, refusedEdit } from "../documents/refused-edit.ts";

type Changes = {
  schema?: BlockSchema | undefined;
  viewport?: Viewport | null | undefined;
  section?: string | undefined;
};

const withViewport = (schema: PlainSchema, viewport: Viewport | null): PlainSchema => {
  if (schema.type !== "text") throw refusedEdit(`a ${schema.type} has no viewport: only a text has`);
  return viewport === null ? { type: "text" } : { type: "text", viewport };
};

const ofType = (old: BlockSchema, next: BlockSchema): void => {
  if (old.type !== next.type) {
    throw new ColloquyError("conflict", `a ${old.type} block does not become a ${next.type}: make another block`);
  }
  if (old.type === "map" && next.type === "map") {
    for (const { name, type } of next.fields) {
      const known = old.fields.find((field) => field.name === name);
      if (known && known.type !== type) {
        throw new ColloquyError("conflict", `field '${name}' is a ${known.type} and does not become a ${type}`);
      }
    }
  }
  if (old.type !== "composite" || next.type !== "composite") return;
  for (const { name, schema } of next.sections) {
    const known = old.sections.find((section) => section.name === name);
    if (known) ofType(known.schema, schema);
  }
};

/** The schema as it is changed: a content that is there keeps its kind. The same object where nothing changes. */
export const changedSchema = (old: BlockSchema, { schema, viewport, section }: Changes): BlockSchema => {
  if (schema) ofType(old, schema);
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

type Part = { old: PlainSchema | undefined; next: PlainSchema; value: Json | undefined };

const checkPart = ({ old, next, value }: Part): void => {
  if (next.type === "map") {
    for (const field of next.fields) {
      const held = ownField(value, field.name);
      if (held !== undefined) checkField(field, held);
    }
  }
  if (next.type !== "list" || !Array.isArray(value)) return;
  const { itemSchema, maxItems = value.length } = next;
  if (value.length > maxItems) throw refusedEdit(`it holds ${value.length} items, more than ${maxItems} (maxItems)`);
  if (old?.type === "list" && sameJson(old.itemSchema, itemSchema)) return;
  for (const item of value) checkItem(itemSchema, item);
};

const partsOf = (old: BlockSchema, next: BlockSchema, value: Json): Part[] => {
  if (next.type !== "composite") return [{ old: old.type === "composite" ? undefined : old, next, value }];
  const known = old.type === "composite" ? old.sections : [];
  return next.sections.map(({ name, schema }) => ({
    old: known.find((section) => section.name === name)?.schema,
    next: schema,
    value: ownField(value, name),
  }));
};

/** Throws `conflict` where what the block holds breaks the schema that it would get. */
export const checkFits = (old: BlockSchema, next: BlockSchema, value: Json): void => {
  try {
    for (const part of partsOf(old, next, value)) checkPart(part);
  } catch (error) {
    if (!(error instanceof ColloquyError)) throw error;
    const reason = `what the block holds does not fit that schema, change it first: ${error.message}`;
    throw new ColloquyError("conflict", reason);
  }
};
