import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema } from "../../../protocol/block-schema.ts";

/**
 * A document's content, as containers of the CRDT by name. All of them are roots: such a container is always there, so
 * two editors never make it twice, and nothing that is undone comes back as another one.
 *
 * Invariants
 * 1. Values stand in fields and items as JSON text: what is read is what was written, whatever the CRDT's own types.
 * 2. An item has a key that no other item of its document ever had; the least one is the oldest. It keeps it when it is
 *    set, moved, deleted and put back.
 */
export type Cell = { kind: "text" | "fields" | "items" | "counter"; path: string };

export type Item = { key: number; json: string };

export const textOf = (prefix: string): string => `${prefix}text`;
export const fieldsOf = (prefix: string): string => `${prefix}fields`;
export const itemsOf = (prefix: string): string => `${prefix}items`;
export const fieldItemsOf = (prefix: string, field: string): string => `${prefix}items.${field}`;
export const counterOf = (prefix: string, field: string): string => `${prefix}counter.${field}`;
export const prefixOf = (section: string): string => `${section}:`;

const plainCells = (schema: PlainSchema, prefix: string): Cell[] => {
  switch (schema.type) {
    case "text":
      return [{ kind: "text", path: textOf(prefix) }];
    case "map":
      return [
        { kind: "fields", path: fieldsOf(prefix) },
        ...schema.fields.flatMap(({ name, type }): Cell[] => {
          if (type === "list") return [{ kind: "items", path: fieldItemsOf(prefix, name) }];
          return type === "counter" ? [{ kind: "counter", path: counterOf(prefix, name) }] : [];
        }),
      ];
    case "list":
    case "log":
      return [{ kind: "items", path: itemsOf(prefix) }];
  }
};

/** All containers that a schema shows. */
export const cellsOf = (schema: BlockSchema): Cell[] =>
  schema.type === "composite"
    ? schema.sections.flatMap((section) => plainCells(section.schema, prefixOf(section.name)))
    : plainCells(schema, "");

export const readText = (doc: LoroDoc, path: string): string => doc.getText(path).toString();

export const readFields = (doc: LoroDoc, path: string): Map<string, string> =>
  new Map(
    doc
      .getMap(path)
      .entries()
      .map(([name, json]) => [name, String(json)]),
  );

const itemOf = (stored: unknown): Item => {
  const text = String(stored);
  const space = text.indexOf(" ");
  return { key: Number(text.slice(0, space)), json: text.slice(space + 1) };
};
export const storedItem = ({ key, json }: Item): string => `${key} ${json}`;

export const readItems = (doc: LoroDoc, path: string): Item[] => doc.getMovableList(path).toArray().map(itemOf);

/** A counter counts as far as whole numbers are exact. */
export const maxCount = Number.MAX_SAFE_INTEGER;

/** Nine decimals: fractions add up with an error in their last digits, which depends on the order. */
export const readCounter = (doc: LoroDoc, path: string): number => {
  const count = Number(doc.getCounter(path).getShallowValue().toFixed(9));
  return count === 0 ? 0 : count; // never -0
};

const parsed = ({ json }: Item): Json => JSON.parse(json) as Json;

const plainValue = (doc: LoroDoc, schema: PlainSchema, prefix: string): Json => {
  switch (schema.type) {
    case "text":
      return readText(doc, textOf(prefix));
    case "map": {
      const fields = readFields(doc, fieldsOf(prefix));
      const entries = schema.fields.flatMap(({ name, type }): [string, Json][] => {
        if (type === "counter") return [[name, readCounter(doc, counterOf(prefix, name))]];
        if (type === "list") {
          const items = readItems(doc, fieldItemsOf(prefix, name));
          return items.length === 0 ? [] : [[name, items.map(parsed)]];
        }
        const json = fields.get(name);
        return json === undefined ? [] : [[name, JSON.parse(json) as Json]];
      });
      return Object.fromEntries(entries);
    }
    case "list":
    case "log":
      return readItems(doc, itemsOf(prefix)).map(parsed);
  }
};

/** A document's whole content as data, also what is not shown. A log's entries are oldest first. */
export const contentOf = (doc: LoroDoc, schema: BlockSchema): Json =>
  schema.type === "composite"
    ? Object.fromEntries(schema.sections.map(({ name, schema: of }) => [name, plainValue(doc, of, prefixOf(name))]))
    : plainValue(doc, schema, "");
