import { fieldsOf, type Json, type PlainSchema } from "../../client/index.ts";

/** How an item of a list is shown and edited: its words, its done state and its other fields. */
export type ItemShape = {
  /** The field with the words; null for an item that is a text, undefined for an item without words. */
  wordsIn: string | null | undefined;
  words: string;
  isDone: boolean | undefined;
  rest: [name: string, value: Json][];
};

const usualNames = ["text", "title", "name", "item", "label", "task", "what"];

const wordsFieldAmong = (names: readonly string[]): string | undefined =>
  usualNames.find((name) => names.includes(name)) ?? names[0];

export const shapeOf = (item: Json): ItemShape => {
  if (typeof item !== "object" || item === null || Array.isArray(item)) {
    return { wordsIn: typeof item === "string" ? null : undefined, words: inWords(item), isDone: undefined, rest: [] };
  }
  const wordsIn = wordsFieldAmong(Object.keys(item).filter((name) => typeof item[name] === "string"));
  const { done } = item;
  const rest = Object.entries(item).filter(
    ([name, value]) => name !== wordsIn && !(name === "done" && typeof value === "boolean"),
  );
  const isDone = typeof done === "boolean" ? done : undefined;
  if (wordsIn !== undefined) return { wordsIn, words: String(item[wordsIn]), isDone, rest };
  return { wordsIn, words: rest.map(([name, value]) => `${name}: ${inWords(value)}`).join(", "), isDone, rest: [] };
};

/** A value in readable words. */
export const inWords = (value: Json | undefined): string => {
  if (value === undefined || value === null) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(inWords).join(", ");
  if (typeof value !== "object") return String(value);
  return Object.entries(value)
    .map(([name, held]) => `${name}: ${inWords(held)}`)
    .join(", ");
};

/** The same item with other words. */
export const withWords = (item: Json, words: string): Json => {
  const { wordsIn } = shapeOf(item);
  return typeof wordsIn === "string" ? { ...fieldsOf(item), [wordsIn]: words } : words;
};

type ListSchema = Extract<PlainSchema, { type: "list" }>;

const declaredFields = ({ itemSchema }: ListSchema): [name: string, type: unknown][] => {
  if (!itemSchema) return [];
  if (itemSchema.type === "map" && Array.isArray(itemSchema.fields)) {
    return itemSchema.fields.flatMap((field): [string, unknown][] => {
      const { name, type } = fieldsOf(field as Json);
      return typeof name === "string" ? [[name, type]] : [];
    });
  }
  const properties = "properties" in itemSchema ? fieldsOf(itemSchema.properties as Json) : {};
  return Object.entries(properties).map(([name, property]) => [name, fieldsOf(property).type]);
};

/**
 * A new item in the form of the list's schema, or of its last item. Undefined if words alone do not make an item.
 */
export const itemFrom = (words: string, schema: ListSchema, items: readonly Json[]): Json | undefined => {
  const fields = declaredFields(schema);
  if (fields.length > 0) {
    const texts = fields.filter(([, type]) => type === "text" || type === "string");
    const wordsIn = wordsFieldAmong(texts.map(([name]) => name));
    if (wordsIn === undefined) return undefined;
    const hasDone = fields.some(([name, type]) => name === "done" && type === "boolean");
    return { [wordsIn]: words, ...(hasDone ? { done: false } : {}) };
  }
  const last = items.at(-1);
  if (last === undefined || typeof last === "string" || schema.itemSchema?.type === "text") return words;
  const { wordsIn, isDone } = shapeOf(last);
  if (typeof wordsIn !== "string") return undefined;
  return { [wordsIn]: words, ...(isDone === undefined ? {} : { done: false }) };
};
