import type { PropertyView } from "./tool-view.ts";

/** Plain words as data, for the inputs of tools. */
export const withoutEnd = (text: string): string => text.trim().replace(/[.!?\s]+$/, "");

/** The items of "a, b or c", each once. */
export const itemsIn = (text: string): string[] => [
  ...new Set(
    withoutEnd(text)
      .split(/\s*[,;\n]\s*(?:(?:or|and)\s+)?|\s+(?:or|and)\s+/i)
      .map((item) => item.trim())
      .filter(Boolean),
  ),
];

/** A number as it is, anything else as text. */
export const valueIn = (text: string): string | number => {
  const plain = text.trim();
  return /^[+-]?\d+(?:\.\d+)?$/.test(plain) ? Number(plain) : plain;
};

const typed = (text: string, property: PropertyView | undefined): unknown => {
  if (property?.type === "string") return text;
  if (property?.type === "boolean") return /^(?:yes|true|on)$/i.test(text);
  return valueIn(text);
};

/** The properties in "a: 1, b: two"; undefined where a part of it is none. */
const namedIn = (words: string, properties: PropertyView[]): Record<string, unknown> | undefined => {
  const pairs = words.split(/\s*,\s*/).map((part) => /^([\w.-]+)\s*[:=]\s*(.+)$/s.exec(part));
  const entries = pairs.flatMap((pair): [string, unknown][] => {
    const [, name, text] = pair ?? [];
    if (name === undefined || text === undefined) return [];
    return [
      [
        name,
        typed(
          text,
          properties.find((property) => property.name === name),
        ),
      ],
    ];
  });
  return entries.length === pairs.length ? Object.fromEntries(entries) : undefined;
};

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

const asks = { place: /^(?:to|env|environment|target|stage|where)$/i };

/** What a tool's properties get out of free words: "the website to production" is a thing and where it goes. */
const readFrom = (words: string, properties: PropertyView[]): Record<string, unknown> => {
  const input = new Map<string, unknown>();
  let rest = words;
  for (const { name, allowed } of properties) {
    const found = allowed.find((value) => new RegExp(`(?<!\\w)${escaped(value)}(?!\\w)`, "i").test(rest));
    if (found === undefined) continue;
    input.set(name, found);
    rest = rest.replace(new RegExp(`\\s*(?:\\b(?:to|on|in|at)\\s+)?(?<!\\w)${escaped(found)}(?!\\w)`, "i"), " ").trim();
  }
  const open = properties.filter(({ name, allowed }) => !input.has(name) && allowed.length === 0);
  const texts = open.filter(({ type }) => type === "string");
  const place = texts.length > 1 ? texts.find(({ name }) => asks.place.test(name)) : undefined;
  const [, what, where] = place ? (/^(.+?)\s+(?:to|on)\s+(.+)$/is.exec(rest) ?? []) : [];
  if (place && what !== undefined && where !== undefined) {
    input.set(place.name, where);
    rest = what;
  }
  const number = /[+-]?\d+(?:\.\d+)?/.exec(rest)?.[0];
  const counted = open.find(({ type }) => type === "number");
  if (counted && number !== undefined) input.set(counted.name, Number(number));
  const main = texts.find(({ name }) => !input.has(name) && name !== place?.name);
  if (main && rest !== "") input.set(main.name, rest);
  return Object.fromEntries(properties.flatMap(({ name }) => (input.has(name) ? [[name, input.get(name)]] : [])));
};

/** The input that words make for a tool of these properties: its names where they say them, else what fits. */
export const inputFrom = (words: string, properties: PropertyView[]): Record<string, unknown> => {
  const plain = withoutEnd(words);
  return (plain === "" ? {} : namedIn(plain, properties)) ?? readFrom(plain, properties);
};
