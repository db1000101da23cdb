import type { BlockSchema, PlainSchema, Viewport } from "../../../protocol/block-schema.ts";
import { ColloquyError } from "../../../shared/errors.ts";
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
