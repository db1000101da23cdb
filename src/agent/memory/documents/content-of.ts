import type { LoroDoc } from "loro-crdt/web";
import type { Json } from "../../../protocol/block.ts";
import type { BlockSchema, PlainSchema } from "../../../protocol/block-schema.ts";
import {
  counterOf,
  fieldItemsOf,
  fieldsOf,
  type Item,
  itemsOf,
  prefixOf,
  readCounter,
  readFields,
  readItems,
  readText,
  textOf,
} from "./cells.ts";

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

/** What a document holds, as data: all of it, whatever is shown. A log's entries are oldest first. */
export const contentOf = (doc: LoroDoc, schema: BlockSchema): Json =>
  schema.type === "composite"
    ? Object.fromEntries(schema.sections.map(({ name, schema: of }) => [name, plainValue(doc, of, prefixOf(name))]))
    : plainValue(doc, schema, "");
