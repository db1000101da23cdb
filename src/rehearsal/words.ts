import type { PropertyView } from "./tool-view.ts";

/** Plain words as data: labels, lists and the inputs of tools. */
export const withoutEnd = (text: string): string => text.trim().replace(/[.!?\s]+$/, "");

/** A literal text within a regular expression. */
export const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** A label: lower case, joined by `_`, at most 64 characters of [a-z0-9_]. Empty if no letter is left. */
export const slug = (text: string): string =>
  text
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .slice(0, 64)
    .replace(/^_+|_+$/g, "");

export const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const longestNameFirst = (one: { name: string }, other: { name: string }): number =>
  other.name.length - one.name.length;

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

const typed = (text: string, type: PropertyView["type"] | undefined): unknown => {
  if (type === "string") return text;
  return type === "boolean" ? /^(?:yes|true|on)$/i.test(text) : valueIn(text);
};

/** The properties in "a: 1, b: two"; undefined where any part has another form. */
const namedIn = (words: string, properties: PropertyView[]): Record<string, unknown> | undefined => {
  const entries: [string, unknown][] = [];
  for (const part of words.split(/\s*,\s*/)) {
    const [, name, text] = /^([\w.-]+)\s*[:=]\s*(.+)$/s.exec(part) ?? [];
    if (name === undefined || text === undefined) return undefined;
    entries.push([name, typed(text, properties.find((property) => property.name === name)?.type)]);
  }
  return Object.fromEntries(entries);
};

const placeNames = /^(?:to|env|environment|target|stage|where)$/i;

/** The properties that free words give: "the website to production" is a thing and a place. */
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
  const place = texts.length > 1 ? texts.find(({ name }) => placeNames.test(name)) : undefined;
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

/** A tool's input: the properties that the words name, or else what fits. */
export const inputFrom = (words: string, properties: PropertyView[]): Record<string, unknown> => {
  const plain = withoutEnd(words);
  return (plain === "" ? {} : namedIn(plain, properties)) ?? readFrom(plain, properties);
};
